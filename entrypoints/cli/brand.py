"""Commands for vendor profiles, claims and claim invitations."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Annotated, Any

from cyclopts import Parameter

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.brand.model import (
    MAX_INVITATION_DAYS,
    BrandClaim,
    ClaimStatus,
    DecisionOutcome,
    VendorProfile,
)
from domain.brand.ports import BrandRegistry, ClaimInvitationStore, VendorProfileStore
from domain.brand.usecases.claims import ClaimService
from domain.brand.usecases.invitations import ClaimInvitations
from domain.brand.usecases.profiles import ProfileService
from domain.kernel.json_values import to_json_value
from domain.kernel.resource import require_found
from domain.kernel.tenancy import AuditContext, Tenant
from domain.publishing.usecases.service import PublishingService
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, Mode, select_attributes
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import OPERATOR
from ports.unit_of_work import Tx, UnitOfWork

MAX_LISTED = 200
_NO_ORGANISATION = ""
"""Organisation of work on profiles that the service holds; no row of a tenant has it."""


@asynccontextmanager
async def _begin(dependencies: Dependencies, operation: str, tenant: Tenant) -> AsyncIterator[Tx]:
    """Begin a change by the operator."""
    async with dependencies[UnitOfWork].begin(tenant, AuditContext(OPERATOR, operation)) as tx:
        yield tx


def _build_service_tenant(mode: Mode) -> Tenant:
    return Tenant(_NO_ORGANISATION, mode == "live")


def _build_profile_json(profile: VendorProfile) -> dict[str, Any]:
    names = ("name", "slug", "brands", "website_domain", "status", "verified", "catalogue", "merged_into")
    return {"profile": profile.id, **select_attributes(profile, *names)}


async def create_profile(
    *,
    name: str,
    domain: str | None = None,
    brand: tuple[str, ...] = (),
    mode: Mode = "live",
    options: CommandOptions = DEFAULT_OPTIONS,
) -> int:
    """Create an unclaimed vendor profile from gathered data.

    Args:
        name: Name of the vendor.
        domain: Domain of the vendor's website.
        brand: Name of a brand of the vendor; may be repeated.
        mode: Mode of the profile.
    """
    values: dict[str, Any] = {"name": name, "brands": brand} | ({"website_domain": domain} if domain else {})
    async with (
        options.open_dependencies() as dependencies,
        _begin(dependencies, "profile.create", _build_service_tenant(mode)) as tx,
    ):
        profile = await dependencies[ProfileService].create_gathered(tx, values)
    return options.print_result(_build_profile_json(profile), f"Created {profile.name} ({profile.id}).")


async def merge_profiles(
    duplicate: str, into: str, /, *, mode: Mode = "live", options: CommandOptions = DEFAULT_OPTIONS
) -> int:
    """Merge a duplicate vendor profile into another one, which gets its brands.

    Args:
        duplicate: ID of the duplicate, which is no longer found.
        into: ID of the profile that remains.
        mode: Mode of the profiles.
    """
    async with options.open_dependencies() as dependencies:
        tenant = await _find_holder(dependencies, into, mode)
        async with _begin(dependencies, "profile.merge", tenant) as tx:
            merged, survivor = await dependencies[ProfileService].merge(tx, duplicate, into)
        if merged.holder not in (None, tenant.org):
            await _record_loss(dependencies, "profile.merge", replace(tenant, org=merged.holder), merged.id)
    result = {"merged": merged.id, **_build_profile_json(survivor)}
    return options.print_result(
        result, f"Merged {merged.name} into {survivor.name}. Undo: joinery profile unmerge {merged.id}"
    )


async def unmerge_profile(duplicate: str, /, *, mode: Mode = "live", options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Undo the merge of a vendor profile, which gets its brands back.

    Args:
        duplicate: ID of the merged profile.
        mode: Mode of the profiles.
    """
    async with options.open_dependencies() as dependencies:
        async with _begin(dependencies, "profile.unmerge", _build_service_tenant(mode)) as tx:
            found = require_found(await tx[VendorProfileStore].get(duplicate, merged=True))
        tenant = await _find_holder(dependencies, found.merged_into or duplicate, mode)
        async with _begin(dependencies, "profile.unmerge", tenant) as tx:
            restored, survivor = await dependencies[ProfileService].unmerge(tx, duplicate)
    result = {"unmerged": restored.id, **_build_profile_json(survivor)}
    return options.print_result(result, f"{restored.name} is a separate profile again.")


async def _record_loss(dependencies: Dependencies, operation: str, former: Tenant, profile: str) -> None:
    """Add an entry to the audit log of an organisation that no longer holds its unverified profile."""
    async with _begin(dependencies, operation, former) as tx:
        await tx[AuditLog].add(Change("vendor_profile", profile, "update", {"held": True}, {"held": False}))


async def _find_holder(dependencies: Dependencies, profile: str, mode: Mode) -> Tenant:
    """Return the tenant that holds the profile, whose audit log records the change; or the service's."""
    async with _begin(dependencies, "profile.read", _build_service_tenant(mode)) as tx:
        found = require_found(await tx[VendorProfileStore].get(profile))
    return Tenant(found.holder or _NO_ORGANISATION, mode == "live")


async def list_claims(
    *,
    status: Annotated[str | None, Parameter(choices=[*ClaimStatus])] = None,
    options: CommandOptions = DEFAULT_OPTIONS,
) -> int:
    """List the newest claims of all organisations; those marked * wait for a decision.

    Args:
        status: Status of the claims.
    """
    async with options.open_dependencies() as dependencies:
        found = await dependencies[BrandRegistry].list_claims(ClaimStatus(status) if status else None, MAX_LISTED)
    lines = [
        f"{'*' if _needs_review(claim) else ' '} {claim.id}  {claim.status:<9} {tenant.mode:<4} {tenant.org}  {claim.profile}"
        for tenant, claim in found
    ]
    result = {"claims": [_build_claim_json(tenant, claim) for tenant, claim in found]}
    return options.print_result(result, *lines or ["No claims."])


async def show_claim(id: str, /, *, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Show a claim with its evidence, decision and profile.

    Args:
        id: ID of the claim.
    """
    async with options.open_dependencies() as dependencies:
        tenant, claim = await _find_claim(dependencies, id)
        async with dependencies[UnitOfWork].begin_reading(tenant) as tx:
            profile = await tx[VendorProfileStore].get(claim.profile, merged=True)
    result = _build_claim_json(tenant, claim) | {"profile": _build_profile_json(profile) if profile else claim.profile}
    lines = [f"Claim {claim.id}: {claim.status}. Organisation: {tenant.org} ({tenant.mode} mode)."]
    if profile is not None:
        brands = ", ".join(profile.brands) or "none"
        lines.append(
            f"Profile {profile.id}: {profile.name}. Domain: {profile.website_domain or 'none'}. Brands: {brands}."
        )
    lines += [f"{item.kind:<13} {item.grade:<11} {item.value}  {item.detail}" for item in claim.evidence]
    if claim.decision is not None:
        lines.append(f"Decision: {claim.decision.outcome} by {claim.decision.by}. {claim.decision.reason}")
    return options.print_result(result, *lines)


async def approve_claim(id: str, /, *, reason: str, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Approve a pending claim: the organisation holds the verified profile.

    Args:
        id: ID of the claim.
        reason: Reason, which the organisation can read.
    """
    async with options.open_dependencies() as dependencies:
        tenant, _ = await _find_claim(dependencies, id)
        async with _begin(dependencies, "claim.approve", tenant) as tx:
            claim, former = await dependencies[ClaimService].approve(tx, id, reason)
        if former is not None:
            await _record_loss(dependencies, "claim.approve", Tenant(former, tenant.livemode), claim.profile)
    return options.print_result(_build_claim_json(tenant, claim), f"Approved {id}.")


async def reject_claim(id: str, /, *, reason: str, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Reject a pending claim.

    Args:
        id: ID of the claim.
        reason: Reason, which the organisation can read.
    """
    async with options.open_dependencies() as dependencies:
        tenant, _ = await _find_claim(dependencies, id)
        async with _begin(dependencies, "claim.reject", tenant) as tx:
            claim = await dependencies[ClaimService].reject(tx, id, reason)
    return options.print_result(_build_claim_json(tenant, claim), f"Rejected {id}.")


async def revoke_claim(
    id: str, /, *, reason: str, release: bool = False, options: CommandOptions = DEFAULT_OPTIONS
) -> int:
    """Revoke an approved claim: the profile is no longer verified, and its published catalogue is withdrawn.

    Args:
        id: ID of the claim.
        reason: Reason, which the organisation can read.
        release: Return the profile to the service, for example because the domain has a new owner.
    """
    async with options.open_dependencies() as dependencies:
        tenant, _ = await _find_claim(dependencies, id)
        async with _begin(dependencies, "claim.revoke", tenant) as tx:
            claim = await dependencies[ClaimService].revoke(tx, id, reason, is_released=release)
            await PublishingService().withdraw_everything(tx)
    return options.print_result(_build_claim_json(tenant, claim), f"Revoked {id}.")


async def create_invitation(
    *,
    profile: str,
    email: str,
    days: int = 14,
    send: bool = False,
    mode: Mode = "live",
    options: CommandOptions = DEFAULT_OPTIONS,
) -> int:
    """Create an invitation to claim a profile; its code is shown once.

    Args:
        profile: ID of the profile.
        email: Email address of the person who may use the code.
        days: Days for which the code can be used.
        send: Mail the code to the address.
        mode: Mode of the profile.
    """
    if not 1 <= days <= MAX_INVITATION_DAYS:
        raise CommandError(f"--days must be 1 to {MAX_INVITATION_DAYS}.")
    async with options.open_dependencies() as dependencies:
        invitations = dependencies[ClaimInvitations]
        async with _begin(dependencies, "invitation.create", _build_service_tenant(mode)) as tx:
            invitation, code = await invitations.create(tx, profile, email, days)
            found = require_found(await tx[VendorProfileStore].get(profile))
        if send:
            await invitations.send(invitation, code, found)
    result = {"invitation": invitation.id, "profile": profile, "email": invitation.email, "code": code}
    result["expires_at"] = to_json_value(invitation.expires_at)
    return options.print_result(
        result, f"Created {invitation.id} for {invitation.email}. The code is shown once:", code
    )


async def revoke_invitation(id: str, /, *, mode: Mode = "live", options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """Revoke an invitation to claim a profile that was not used.

    Args:
        id: ID of the invitation.
        mode: Mode of the profile.
    """
    async with (
        options.open_dependencies() as dependencies,
        _begin(dependencies, "invitation.revoke", _build_service_tenant(mode)) as tx,
    ):
        if not await tx[ClaimInvitationStore].revoke_invitation(id, tx.now):
            raise CommandError(f"There is no open invitation {id!r}.")
    return options.print_result({"invitation": id, "revoked": True}, f"Revoked {id}.")


def _needs_review(claim: BrandClaim) -> bool:
    return claim.decision is not None and claim.decision.outcome is DecisionOutcome.REVIEW


def _build_claim_json(tenant: Tenant, claim: BrandClaim) -> dict[str, Any]:
    names = ("profile", "status", "evidence", "decision", "created_at")
    return {"claim": claim.id, "organisation": tenant.org, "mode": tenant.mode, **select_attributes(claim, *names)}


async def _find_claim(dependencies: Dependencies, id: str) -> tuple[Tenant, BrandClaim]:
    found: tuple[Tenant, BrandClaim] | None = await dependencies[BrandRegistry].find_claim(id)
    if found is None:
        raise CommandError(f"There is no claim {id!r}. List them with `joinery claim list`.")
    return found
