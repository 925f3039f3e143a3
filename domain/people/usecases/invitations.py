"""Invitations: an owner or admin invites an email address, and the user with the address becomes a member."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from unicodedata import normalize

from domain.access.model import is_well_formed_secret
from domain.access.usecases import AccessService, generate_secret
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.names import displayable_address, displayable_name, validate_name
from domain.kernel.paging import PageRequest
from domain.orgs.model import INVITATION_LIFETIME, MAX_OPEN_INVITATIONS, Invitation, InvitationDetails, Member
from domain.orgs.ports import Memberships, OrgStore
from domain.outbox.usecases import OutgoingMail
from domain.people.model import User
from domain.people.ports import People
from domain.people.usecases.attempt_limits import AttemptLimiter
from domain.people.usecases.members import refuse_higher_role, refuse_unknown_role, require_manager
from domain.people.usecases.passwords import ACCOUNT_EXISTS
from ports.clock import Clock
from ports.unit_of_work import Tx

INVITATION_PREFIX = "svc_invite_"
"""Prefix of the secret in an invitation link."""
INVITATION_PATH = "/console/invitations/"
"""Start of the path of an invitation link; the secret follows."""
_LONGEST_EMAIL = 254
_EMAIL = re.compile(
    r"[^\s@<>\"(),:;\[\]\\\x00-\x1f\x7f]{1,64}@[^\s@<>\"(),:;\[\]\\_\x00-\x1f\x7f]+\.[^\s@.<>\"(),:;\[\]\\\x00-\x1f\x7f]{2,}"
)
_NOT_OPEN = "This invitation was used or revoked, or has expired. Ask for another one."


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """Open invitation, as shown to a person who opens its link.

    Attributes:
        details: The invitation and its organisation.
        inviter_name: The name of the inviter.
        has_account: Whether the invited address has an account, so that no new account may be created.
    """

    details: InvitationDetails
    inviter_name: str
    has_account: bool


@dataclass(frozen=True, slots=True)
class InvitationService:
    """Use cases of invitations. Only the user with the invited address can accept an invitation, and only once."""

    memberships: Memberships
    people: People
    access: AccessService
    mail: OutgoingMail
    throttle: AttemptLimiter
    clock: Clock
    base_url: str

    async def invite(self, tx: Tx, email: str, role: str) -> tuple[Invitation, str]:
        """Create an invitation and return it with its secret; earlier open invitations to the address are revoked.

        The caller sends the email with `send` after the commit.

        Raises:
            PermissionDenied: The caller may not invite members with this role.
            InvalidRequest: The address or role is invalid.
            Conflict: The address belongs to a member, or too many invitations are open.
            RateLimited: Too many invitations were sent to the address, by the organisation, or by the caller.
        """
        address = parse_email_address(email)
        refuse_unknown_role(role)
        manager = await require_manager(tx)
        refuse_higher_role(manager, role)
        if await tx[OrgStore].find_member(address) is not None:
            raise Conflict(f"{address} is already a member.")
        open_invitations = (await tx[OrgStore].list_invitations(tx.now, PageRequest(limit=MAX_OPEN_INVITATIONS))).items
        await self.throttle.count_invitation(address, tx.tenant.org, manager.user)
        secret = generate_secret(INVITATION_PREFIX)
        made = Invitation(
            new_id("mbi"), tx.tenant.org, address, role, manager.user, self.access.compute_digest(secret), tx.now,
            tx.now + INVITATION_LIFETIME,
        )  # fmt: skip
        earlier = [other for other in open_invitations if other.email_key == made.email_key]
        if len(open_invitations) - len(earlier) >= MAX_OPEN_INVITATIONS:
            raise Conflict(f"{MAX_OPEN_INVITATIONS} invitations are open, the maximum. Revoke some first.")
        for invitation in earlier:
            await self._revoke(tx, invitation)
        await tx[OrgStore].add_invitation(made)
        after = {"email": address, "role": role, "expires_at": made.expires_at.isoformat()}
        await tx[AuditLog].add(Change("invitation", made.id, "create", {}, after))
        return made, secret

    async def send(self, invitation: Invitation, secret: str, organisation_name: str) -> None:
        """Mail the invitation link to the invited address."""
        # The subject contains no text that the inviter chose; the body labels such text, so that no one takes it for the service's.
        inviter = await self.people.get(invitation.invited_by)
        inviter_address = (
            displayable_address(inviter.email, _UNKNOWN_INVITER) if inviter is not None else _UNKNOWN_INVITER
        )
        body = _LETTER.format(
            inviter=inviter_address, organisation=displayable_name(organisation_name, "an organisation"), role=invitation.role, link=f"{self.base_url}{INVITATION_PATH}{secret}",
            until=f"{invitation.expires_at:%-d %B %Y}",
        )  # fmt: skip
        await self.mail.add_message(invitation.email, _SUBJECT, body, "invitation")

    async def revoke(self, tx: Tx, id: str) -> None:
        """Revoke an open invitation. Raises PermissionDenied, NotFound."""
        manager = await require_manager(tx)
        found = await tx[OrgStore].lock_invitation(id)
        if found is None or not found.is_open(tx.now):
            raise NotFound("This invitation does not exist or is no longer open.")
        refuse_higher_role(manager, found.role)
        await self._revoke(tx, found)

    async def find_open(self, secret: str) -> OpenInvitation | None:
        """Return the open invitation whose link contains the secret, or None."""
        if not is_well_formed_secret(secret, (INVITATION_PREFIX,)):
            return None
        invited = await self.memberships.find_invitation(self.access.compute_digest(secret))
        if invited is None or not invited.invitation.is_open(self.clock.now()):
            return None
        inviter = await self.people.get(invited.invitation.invited_by)
        has_account = await self.people.find_by_email(invited.invitation.email) is not None
        inviter_name = inviter.display_name if inviter is not None else _UNKNOWN_INVITER
        return OpenInvitation(invited, inviter_name, has_account)

    async def build_new_user(self, invitation: Invitation, name: str) -> User:
        """Return a new user with the invited address, which the caller stores with `PasswordService.create_account`.

        Raises InvalidRequest for an invalid name, Conflict if the address already has an account.
        """
        if await self.people.find_by_email(invitation.email) is not None:
            raise Conflict(ACCOUNT_EXISTS)
        return User(new_id("usr"), invitation.email, validate_name(name), None, self.clock.now())

    async def accept(self, tx: Tx, user: User, invitation: Invitation) -> Member:
        """Make the user a member of the inviting organisation; return the membership.

        Raises PermissionDenied if the user does not have the invited address, NotFound if the invitation is no longer
        open.
        """
        if user.email_key != invitation.email_key:
            raise PermissionDenied(
                f"This invitation is for {invitation.email}, but you are signed in as {user.email}. Sign in as "
                f"{invitation.email}."
            )
        found = await tx[OrgStore].lock_invitation(invitation.id)
        if found is None or not found.is_open(tx.now):
            raise NotFound(_NOT_OPEN)
        await self._refuse_former_inviter(tx, found)
        await tx[OrgStore].close_invitation(found.id, accepted_at=tx.now)
        member = Member(user.id, found.org, user.email, found.role, tx.now)
        await tx[OrgStore].add_member(member)
        after = {"email": member.email, "role": member.role, "invited_by": found.invited_by}
        await tx[AuditLog].add(Change("invitation", found.id, "update", {"accepted": False}, {"accepted": True}))
        await tx[AuditLog].add(Change("member", user.id, "create", {}, after))
        return member

    async def mark_verified(self, user: User) -> User:
        """Mark the user's email address as verified, because the user received an invitation there; return the user."""
        if user.verified_at is not None:
            return user
        changed = replace(user, verified_at=self.clock.now())
        await self.people.save(changed)
        return changed

    @staticmethod
    async def _refuse_former_inviter(tx: Tx, invitation: Invitation) -> None:
        """Raise NotFound if the inviter is no longer allowed to invite members with the invitation's role."""
        members: Mapping[str, Member] = await tx[OrgStore].lock_members((invitation.invited_by,))
        inviter = members.get(invitation.invited_by)
        if inviter is None or not inviter.is_manager or (invitation.role == "owner" and inviter.role != "owner"):
            raise NotFound(_NOT_OPEN)

    @staticmethod
    async def _revoke(tx: Tx, invitation: Invitation) -> None:
        """Revoke the invitation and record the change, without a check of permissions."""
        await tx[OrgStore].close_invitation(invitation.id, revoked_at=tx.now)
        await tx[AuditLog].add(Change("invitation", invitation.id, "update", {"revoked": False}, {"revoked": True}))


def parse_email_address(text: str) -> str:
    """Return the entered email address without surrounding spaces. Raises InvalidRequest if the address is invalid."""
    address = text.strip()
    if len(address) > _LONGEST_EMAIL or not _EMAIL.fullmatch(address) or not _is_unambiguous(address):
        raise InvalidRequest.for_field("email", "invalid_format", "Enter one email address, such as anna@example.com.")
    return address


def _is_unambiguous(address: str) -> bool:
    """Return whether the email address has no characters that a mail system may convert into others.

    All characters must be printable and have no compatibility equivalent (NFKC). Encoded words (RFC 2047) are not
    allowed.
    """
    return address.isprintable() and "=?" not in address and normalize("NFKC", address) == normalize("NFC", address)


_UNKNOWN_INVITER = "An administrator"
_SUBJECT = "You are invited to an organisation on Joinery"
_LETTER = """\
{inviter} invites you to their organisation on Joinery, as {role}.
Organisation (named by its members): {organisation}

To accept, open this link until {until}:

{link}

The link is personal and works once. If you did not expect this invitation, ignore this message.
"""
