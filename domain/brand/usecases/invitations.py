"""Use cases of claim invitations: the operator invites an address, and its owner sees what the code is for."""

from dataclasses import dataclass
from datetime import timedelta

from domain.access.usecases import AccessService, generate_secret
from domain.brand.model import INVITATION_PREFIX, ClaimInvitation, VendorProfile
from domain.brand.ports import BrandRegistry, ClaimInvitationStore, VendorProfileStore
from domain.brand.usecases.claims import ClaimService
from domain.kernel.errors import NotFound
from domain.kernel.ids import new_id
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Tenant
from domain.outbox.usecases import OutgoingMail
from domain.people.ports import People
from domain.people.usecases.invitations import parse_email_address
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

_NOT_OPEN = "This code is unknown, or was used, revoked or has expired. Ask the operator for another one."
_SUBJECT = "Claim your vendor profile on Joinery"
_LETTER = """\
The operator of Joinery invites you to claim the vendor profile {name}.

Sign in with this address, and enter this code in the console under Brand, until {until}:

{code}

The code works once, and only for this address. If you did not expect this invitation, ignore this message.
"""


@dataclass(frozen=True, slots=True)
class InvitationPreview:
    """Invitation with its profile, and whether the acting person may accept it."""

    invitation: ClaimInvitation
    profile: VendorProfile
    usable: bool


@dataclass(frozen=True, slots=True)
class ClaimInvitations:
    """Use cases of claim invitations."""

    uow: UnitOfWork
    claims: ClaimService
    access: AccessService
    registry: BrandRegistry
    people: People
    mail: OutgoingMail
    clock: Clock

    async def create(self, tx: Tx, profile: str, email: str, days: int) -> tuple[ClaimInvitation, str]:
        """Create an invitation for an address, and return it with its code, which is not stored.

        Raises NotFound for an unknown profile, InvalidRequest for an invalid address.
        """
        require_found(await tx[VendorProfileStore].get(profile))
        code = generate_secret(INVITATION_PREFIX)
        invitation = ClaimInvitation(
            new_id("vci"), profile, parse_email_address(email), self.access.compute_digest(code), tx.now,
            tx.now + timedelta(days=days),
        )  # fmt: skip
        await tx[ClaimInvitationStore].add_invitation(invitation)
        return invitation, code

    async def send(self, invitation: ClaimInvitation, code: str, profile: VendorProfile) -> None:
        """Mail the code to the invited address."""
        until = f"{invitation.expires_at:%-d %B %Y}"
        body = _LETTER.format(name=profile.name, until=until, code=code)
        await self.mail.add_message(invitation.email, _SUBJECT, body, "claim_invitation")

    async def find_open(self, code: str, livemode: bool) -> ClaimInvitation:
        """Return the open invitation with the code. Raises NotFound."""
        digest = self.claims.compute_digest(code)
        found = await self.registry.find_open_invitation(digest, livemode, self.clock.now()) if digest else None
        if found is None:
            raise NotFound(_NOT_OPEN)
        return found

    async def preview(self, tenant: Tenant, code: str, user: str | None) -> InvitationPreview:
        """Return the open invitation with the code, and whether the person may accept it. Raises NotFound."""
        invitation = await self.find_open(code, tenant.livemode)
        async with self.uow.begin_reading(tenant) as tx:
            profile = await tx[VendorProfileStore].get(invitation.profile)
        if profile is None:
            raise NotFound(_NOT_OPEN)
        return InvitationPreview(invitation, profile, await self._is_usable(invitation, user))

    async def _is_usable(self, invitation: ClaimInvitation, user: str | None) -> bool:
        person = await self.people.get(user) if user else None
        return person is not None and person.verified_at is not None and person.email_key == invitation.email_key
