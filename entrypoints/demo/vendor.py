"""Requirements of the demo's vendor before it publishes: a verified profile, an accepted agreement, and the retailer's licence."""

from domain.agreements.model import AgreementKind, NewAcceptance
from domain.agreements.ports import AgreementRegistry, AgreementStore
from domain.agreements.usecases.publication import AgreementPublisher
from domain.agreements.usecases.service import AgreementService
from domain.brand.grades import Observations
from domain.brand.model import ClaimRequest, ClaimStatus, EvidenceInput, EvidenceKind
from domain.brand.ports import BrandClaimStore, VendorProfileStore
from domain.brand.usecases.claims import ClaimService
from domain.brand.usecases.invitations import ClaimInvitations
from domain.brand.usecases.profiles import ProfileService
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.orgs.model import Organisation
from domain.people.model import User
from domain.people.usecases.sessions import ClientInfo
from domain.publishing.ports import LicenceStore
from domain.publishing.usecases.licences import LicenceService
from entrypoints.demo import messages
from entrypoints.dependencies import Dependencies
from entrypoints.provisioning import begin_operator_change
from ports.unit_of_work import UnitOfWork

LICENSED_GROUP = "stock"
"""Field group that the retailer reads in addition to those that every organisation reads."""
_INVITATION_DAYS = 14


async def prepare_publication(
    dependencies: Dependencies, vendor: Organisation, owner: User, retailer: Organisation
) -> None:
    """Complete what the vendor needs to publish its catalogue to the retailer. Completed steps are not repeated.

    Args:
        dependencies: The dependency container.
        vendor: The vendor's organisation.
        owner: The owner of the vendor's organisation, who claims the profile and accepts the agreement.
        retailer: The organisation that gets a licence.
    """
    await _verify_profile(dependencies, vendor, owner)
    await _accept_agreement(dependencies, vendor, owner)
    async with begin_operator_change(dependencies, vendor, "licences.grant") as tx:
        if retailer.id not in [licence.holder for licence in await tx[LicenceStore].list_licences()]:
            await LicenceService().grant(tx, retailer.id, [LICENSED_GROUP])


async def _verify_profile(dependencies: Dependencies, vendor: Organisation, owner: User) -> None:
    """Claim the vendor's own profile by an invitation of the operator, who then approves the claim."""
    claims = dependencies[ClaimService]
    async with dependencies[UnitOfWork].begin(*_build_owner_context(vendor, owner, "brand.create_claim")) as tx:
        own = await tx[VendorProfileStore].find_own()
        if own is not None and own.verified:
            return
        profile = await dependencies[ProfileService].update_own(tx, {"brands": [vendor.name]})
        pending = await tx[BrandClaimStore].lock_claims(profile.id, ClaimStatus.PENDING)
        if not pending:
            _, code = await dependencies[ClaimInvitations].create(tx, profile.id, owner.email, _INVITATION_DAYS)
            evidence = [EvidenceInput(EvidenceKind.INVITATION, code)]
            claim = await claims.create_claim(tx, ClaimRequest(profile.id, evidence))
            # the brand is the vendor's own statement, so the rules leave the decision to the operator
            pending = [await claims.conclude(tx, claim.id, Observations(acting_address=owner.email_key))]
    async with begin_operator_change(dependencies, vendor, "claim.approve") as tx:
        for claim in pending:
            await claims.approve(tx, claim.id, messages.APPROVAL_REASON)


async def _accept_agreement(dependencies: Dependencies, vendor: Organisation, owner: User) -> None:
    """Publish the demo's data agreement, unless the service has one, and accept the newest version as the owner."""
    kind = AgreementKind.VENDOR_DATA
    if await dependencies[AgreementRegistry].get_newest(kind) is None:
        text = messages.AGREEMENT_TEXT.encode()
        await dependencies[AgreementPublisher].publish(kind, messages.AGREEMENT_TITLE, text, 30)
    async with dependencies[UnitOfWork].begin(*_build_owner_context(vendor, owner, "agreements.accept")) as tx:
        newest = await tx[AgreementStore].get_newest(kind)
        if newest is not None:
            acceptance = NewAcceptance(newest.version, newest.sha256, *messages.SIGNER, authority_confirmed=True)
            await AgreementService().accept(tx, kind, acceptance, owner.id, ClientInfo(""))


def _build_owner_context(vendor: Organisation, owner: User, operation: str) -> tuple[Tenant, AuditContext]:
    return Tenant(vendor.id, True), AuditContext(Actor("user", owner.id), operation)
