"""Own profile and claims of a vendor: /v1/brand, /v1/brand/claims and POST /v1/brand/invitations/preview."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from adapters.api_json import brand as wire
from domain.access.model import Principal
from domain.brand.usecases.checks import ClaimChecker
from domain.brand.usecases.claims import ClaimService
from domain.brand.usecases.invitations import ClaimInvitations
from domain.brand.usecases.profiles import ProfileService, refuse_retailer
from domain.jobs.usecases.ticks import Tick
from entrypoints.operations.collection import Collection
from entrypoints.operations.operation import (
    AgentToolSettings,
    Area,
    ExternalCall,
    ReadContext,
    Reply,
    UndoSupport,
    WriteContext,
)

_EXPORT = "export"
"""Kind of the credential with which an organisation's export reads its datasets."""


@dataclass(frozen=True, slots=True)
class BrandServices:
    """Use cases of a vendor's profile, claims and invitations."""

    profiles: ProfileService
    claims: ClaimService
    checker: ClaimChecker
    invitations: ClaimInvitations


BrandReadContext: TypeAlias = ReadContext[BrandServices]
BrandWriteContext: TypeAlias = WriteContext[BrandServices]


def _require_vendor(caller: Principal) -> None:
    """Raise PermissionDenied for a retailer, except in its export, which has no claims."""
    if caller.via != _EXPORT:
        refuse_retailer(caller.organisation)


async def read_brand(context: BrandReadContext) -> Reply:
    """Return the organisation's own profile."""
    return context.build_resource_reply(wire.PROFILE, await context.service.profiles.get_own(context.tx))


async def update_brand(context: BrandWriteContext) -> Reply:
    """Change the organisation's own unverified profile, or create it."""
    profile = await context.service.profiles.update_own(context.tx, context.command)
    return context.build_resource_reply(wire.PROFILE, profile)


async def list_claims(context: BrandReadContext) -> Reply:
    """Return a page of the organisation's claims."""
    _require_vendor(context.principal)
    return context.build_list_reply(wire.CLAIM, await context.service.claims.page(context.tx, context.page_request))


async def read_claim(context: BrandReadContext) -> Reply:
    """Return one claim of the organisation."""
    _require_vendor(context.principal)
    return context.build_resource_reply(wire.CLAIM, await context.service.claims.get(context.tx, context.ids["id"]))


async def create_claim(context: BrandWriteContext) -> Reply:
    """Create a claim. After the commit, its evidence is checked, except what must be published first."""
    claim = await context.service.claims.create_claim(context.tx, context.command)
    reply = context.build_created_reply(wire.CLAIM, claim)
    reply.complete_later = _prepare_check(context, claim.id, is_new=True)
    return reply


async def check_claim(context: BrandWriteContext) -> Reply:
    """Check the evidence of a pending claim again, after the transaction."""
    claim = await context.service.claims.get_pending(context.tx, context.ids["id"])
    reply = context.build_resource_reply(wire.CLAIM, claim)
    reply.complete_later = _prepare_check(context, claim.id)
    return reply


def _prepare_check(context: BrandWriteContext, id: str, *, is_new: bool = False) -> Callable[[], Awaitable[Reply]]:
    """Return the function that checks a claim without a database connection, and returns the final reply."""
    caller, audit_context = context.principal, context.tx.context

    async def check() -> Reply:
        claim = await context.service.checker.check(caller.tenant, audit_context, id, caller.user, is_new=is_new)
        return (context.build_created_reply if is_new else context.build_resource_reply)(wire.CLAIM, claim)

    return check


async def withdraw_claim(context: BrandWriteContext) -> Reply:
    """Withdraw a pending claim."""
    _require_vendor(context.principal)
    claim = await context.service.claims.withdraw(context.tx, context.ids["id"])
    return context.build_resource_reply(wire.CLAIM, claim)


async def preview_invitation(context: BrandWriteContext) -> Callable[[], Awaitable[Reply]]:
    """Return the function that looks up an invitation by its code."""
    caller, code = context.principal, context.command
    refuse_retailer(caller.organisation)

    async def look_up() -> Reply:
        preview = await context.service.invitations.preview(caller.tenant, code, caller.user)
        return context.build_resource_reply(wire.INVITATION, preview)

    return look_up


def _create_ticks(checker: ClaimChecker) -> Sequence[Tick]:
    return [Tick("brand claims", 900, checker.recheck_due)]


PROFILE = Collection("brand", wire.PROFILE, "brand")
CLAIMS = Collection("brand", wire.CLAIM, "brand", noun="claim")
_WITH_APPROVAL = AgentToolSettings(requires_approval=True)
_OUTSIDE = AgentToolSettings(requires_approval=True, contacts_external_systems=True)

AREA = Area(
    "brand",
    "Brand",
    "A vendor's own profile, and claims that prove that a brand belongs to the vendor.",
    create_service=BrandServices,
    operations=(
        PROFILE.read(
            "Read your vendor profile",
            "Returns the organisation's own profile. Returns 404 for a retailer, and for a vendor without a profile.",
            path="/v1/brand",
            handler=read_brand,
            ids={},
            errors=("not_found",),
        ),
        PROFILE.write(
            "update",
            "Change your vendor profile",
            "Changes name, website domain or brands of the organisation's own profile, or creates the profile. Omitted fields "
            "keep their values. Returns 409 if the profile is verified, or if a brand already has another profile, which "
            "can be claimed. Retailers get 403.",
            handler=update_brand,
            method="PATCH",
            path="/v1/brand",
            ids={},
            body=wire.PROFILE.build_patch_body(),
            errors=("conflict",),
            agent=_WITH_APPROVAL,
            undo=UndoSupport(
                "The changed fields get their previous values; a created profile is deleted.",
                lambda services, tx, act: services.profiles.undo(tx, act),
            ),
        ),
        CLAIMS.list(
            "List your claims",
            "Returns the organisation's claims to vendor profiles, newest first. Retailers get 403.",
            handler=list_claims,
            dataset="brand_claims",
        ),
        CLAIMS.write(
            "create_claim",
            "Claim a vendor profile",
            "Claims a profile for the organisation. `evidence` states how you prove that the brand is yours. For `dns_txt` and "
            "`site_tag`, `challenge` in the response says what to publish; then check the claim. Other evidence is "
            "checked at once. Conclusive evidence approves the claim; weaker or doubtful evidence is reviewed by "
            "the operator. Returns 409 if the organisation already has a pending claim to the profile, or a verified profile. "
            "Retailers get 403.",
            handler=create_claim,
            path="/v1/brand/claims",
            body=wire.CLAIM_BODY,
            status=201,
            errors=("conflict", "unprocessable"),
            agent=_OUTSIDE,
            undo="A claim may already be decided. Withdraw a pending claim instead.",
        ),
        CLAIMS.read("Read a claim", "Returns one claim with its evidence and decision.", handler=read_claim),
        CLAIMS.write(
            "check_claim",
            "Check a claim again",
            "Checks the evidence of a pending claim again, and returns the claim with the grades and, if the rules permit, "
            "the decision. Returns 409 if the claim is not pending.",
            handler=check_claim,
            path="/v1/brand/claims/{id}/check",
            errors=("conflict",),
            agent=_OUTSIDE,
            undo="A check only reads evidence; the decision that follows from it is the operator's to change.",
        ),
        CLAIMS.write(
            "withdraw_claim",
            "Withdraw a claim",
            "Withdraws a pending claim. Returns 409 if the claim is not pending.",
            handler=withdraw_claim,
            path="/v1/brand/claims/{id}/withdraw",
            errors=("conflict",),
            agent=_WITH_APPROVAL,
            undo="A withdrawn claim stays withdrawn. Create another claim instead.",
        ),
        ExternalCall(
            id="brand.preview_invitation",
            method="POST",
            path="/v1/brand/invitations/preview",
            summary="Preview a claim invitation",
            description="Returns the open invitation with the code, its profile, and whether the signed-in member may accept it, "
            "as evidence of a claim. The code is in the body, so that no log of URLs contains it. Returns 404 for a code that is "
            "unknown, used, revoked or expired. Retailers get 403.",
            handler=preview_invitation,
            scope="brand:write",
            reply=wire.INVITATION.schema,
            body=wire.PREVIEW_BODY,
            ignores_idempotency_key=True,
            errors=("not_found",),
            undo="A preview changes nothing.",
        ),
    ),
    create_ticks=_create_ticks,
)
