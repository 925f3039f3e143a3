"""Invitations: a manager invites by mail; the owner of the address becomes a member."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from unicodedata import normalize

from domain.access.model import is_secret
from domain.access.usecases import AccessService, secret_with
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.names import displayable_address, displayable_name, validate_name
from domain.kernel.paging import PageRequest
from domain.orgs.model import INVITATION_LASTS, OPEN_INVITATIONS, Invitation, Invited, Member
from domain.orgs.ports import Memberships, OrgStore
from domain.outbox.usecases import OutgoingMail
from domain.people.model import User
from domain.people.ports import People
from domain.people.usecases.members import managing, refuse_beyond, refuse_unknown
from domain.people.usecases.passwords import THERE
from domain.people.usecases.throttling import Throttle
from ports.clock import Clock
from ports.unit_of_work import Tx

PREFIX = "svc_invite_"
PAGE = "/console/invitations/"
"""The path of the link in the mail; the secret follows."""
_LONGEST_EMAIL = 254
_EMAIL = re.compile(
    r"[^\s@<>\"(),:;\[\]\\\x00-\x1f\x7f]{1,64}@[^\s@<>\"(),:;\[\]\\_\x00-\x1f\x7f]+\.[^\s@.<>\"(),:;\[\]\\\x00-\x1f\x7f]{2,}"
)
_OVER = "This invitation was used or revoked, or has expired. Ask for another one."


@dataclass(frozen=True, slots=True)
class Offer:
    """An open invitation as shown to the holder of its secret.

    `by` is the inviter's name; `known`: an account with the address exists, so that none may be created.
    """

    invited: Invited
    by: str
    known: bool


@dataclass(frozen=True, slots=True)
class InvitationService:
    """Creates invitations, which the owner of the address accepts once."""

    memberships: Memberships
    people: People
    access: AccessService
    mail: OutgoingMail
    throttle: Throttle
    clock: Clock
    base_url: str

    async def invite(self, tx: Tx, email: str, role: str) -> tuple[Invitation, str]:
        """Create an invitation, replacing an earlier one to that address, and return it with its secret.

        Call `send` after the commit.

        Raises:
            PermissionDenied: The caller may not invite to the role.
            InvalidRequest: The address or role is invalid.
            Conflict: The address is a member, or too many invitations are open.
            RateLimited: Too many were sent to the address, by the organisation or by the person.
        """
        address = address_of(email)
        refuse_unknown(role)
        manager = await managing(tx)
        refuse_beyond(manager, role)
        if await tx[OrgStore].member(address) is not None:
            raise Conflict(f"{address} is a member already.")
        open_invitations = (await tx[OrgStore].invitations(tx.now, PageRequest(limit=OPEN_INVITATIONS))).items
        await self.throttle.invitation(address, tx.tenant.org, manager.user)
        secret = secret_with(PREFIX)
        made = Invitation(
            new_id("mbi"), tx.tenant.org, address, role, manager.user, self.access.digest(secret), tx.now,
            tx.now + INVITATION_LASTS,
        )  # fmt: skip
        earlier = [other for other in open_invitations if other.email_key == made.email_key]
        if len(open_invitations) - len(earlier) >= OPEN_INVITATIONS:
            raise Conflict(f"{OPEN_INVITATIONS} invitations are open, the maximum. Revoke some first.")
        for invitation in earlier:
            await self._revoke(tx, invitation)
        await tx[OrgStore].invite(made)
        after = {"email": address, "role": role, "expires_at": made.expires_at.isoformat()}
        await tx[AuditLog].add(Change("invitation", made.id, "create", {}, after))
        return made, secret

    async def send(self, invitation: Invitation, secret: str, organisation: str) -> None:
        """Mail the link to the invited address; `organisation` is its name.

        The subject contains no text that the inviter chose, and the body none that could pass for the service's own.
        """
        by = await self.people.get(invitation.invited_by)
        who = displayable_address(by.email, _UNKNOWN_INVITER) if by is not None else _UNKNOWN_INVITER
        body = _LETTER.format(
            who=who, organisation=displayable_name(organisation, "an organisation"), role=invitation.role, link=f"{self.base_url}{PAGE}{secret}",
            until=f"{invitation.expires_at:%-d %B %Y}",
        )  # fmt: skip
        await self.mail.queue(invitation.email, _SUBJECT, body, "invitation")

    async def take_back(self, tx: Tx, id: str) -> None:
        """Revoke an open invitation. Raises PermissionDenied, NotFound."""
        manager = await managing(tx)
        found = await tx[OrgStore].invitation(id)
        if found is None or not found.is_open(tx.now):
            raise NotFound("There is no such open invitation.")
        refuse_beyond(manager, found.role)
        await self._revoke(tx, found)

    async def look(self, secret: str) -> Offer | None:
        """Return the invitation with that secret while it is open, or None."""
        if not is_secret(secret, (PREFIX,)):
            return None
        invited = await self.memberships.invited(self.access.digest(secret))
        if invited is None or not invited.invitation.is_open(self.clock.now()):
            return None
        by = await self.people.get(invited.invitation.invited_by)
        known = await self.people.by_email(invited.invitation.email) is not None
        return Offer(invited, by.called if by is not None else _UNKNOWN_INVITER, known)

    async def newcomer(self, invitation: Invitation, name: str) -> User:
        """Return a new person with the invited address, for `PasswordService.set_up`.

        Raises InvalidRequest for an invalid name; Conflict if an account exists, because an invitation must not set its
        password.
        """
        if await self.people.by_email(invitation.email) is not None:
            raise Conflict(THERE)
        return User(new_id("usr"), invitation.email, validate_name(name), None, self.clock.now())

    async def accept(self, tx: Tx, user: User, invitation: Invitation) -> Member:
        """Make the person a member and return the membership.

        Raises PermissionDenied for another address than the invited one; NotFound if the invitation is no longer open.
        """
        if user.email_key != invitation.email_key:
            raise PermissionDenied(
                f"This invitation is for {invitation.email}, and you are signed in as {user.email}. Sign in with that address."
            )
        found = await tx[OrgStore].invitation(invitation.id)
        if found is None or not found.is_open(tx.now):
            raise NotFound(_OVER)
        await self._refuse_withdrawn(tx, found)
        await tx[OrgStore].settle_invitation(found.id, accepted_at=tx.now)
        member = Member(user.id, found.org, user.email, found.role, tx.now)
        await tx[OrgStore].add_member(member)
        after = {"email": member.email, "role": member.role, "invited_by": found.invited_by}
        await tx[AuditLog].add(Change("invitation", found.id, "update", {"accepted": False}, {"accepted": True}))
        await tx[AuditLog].add(Change("member", user.id, "create", {}, after))
        return member

    async def verified(self, user: User) -> User:
        """Mark the address as verified after an accepted invitation."""
        if user.verified_at is not None:
            return user
        changed = replace(user, verified_at=self.clock.now())
        await self.people.change(changed)
        return changed

    @staticmethod
    async def _refuse_withdrawn(tx: Tx, invitation: Invitation) -> None:
        """Refuse an invitation whose inviter could no longer make it. Raises NotFound."""
        held: Mapping[str, Member] = await tx[OrgStore].hold_members((invitation.invited_by,))
        by = held.get(invitation.invited_by)
        if by is None or not by.manages or (invitation.role == "owner" and by.role != "owner"):
            raise NotFound(_OVER)

    @staticmethod
    async def _revoke(tx: Tx, invitation: Invitation) -> None:
        await tx[OrgStore].settle_invitation(invitation.id, revoked_at=tx.now)
        await tx[AuditLog].add(Change("invitation", invitation.id, "update", {"revoked": False}, {"revoked": True}))


def address_of(text: str) -> str:
    """Return the trimmed mail address. Raises InvalidRequest if it is invalid."""
    address = text.strip()
    if len(address) > _LONGEST_EMAIL or not _EMAIL.fullmatch(address) or not _is_legible(address):
        raise InvalidRequest.of("email", "invalid_format", "Enter one address, such as anna@example.com.")
    return address


def _is_legible(address: str) -> bool:
    """Return whether every character stands for itself.

    Each is printable (a lone surrogate is not), none is a compatibility form of another, and none begins an encoded word (RFC 2047).
    """
    return address.isprintable() and "=?" not in address and normalize("NFKC", address) == normalize("NFC", address)


_UNKNOWN_INVITER = "An administrator"
_SUBJECT = "You are invited to an organisation on Joinery"
_LETTER = """\
{who} invites you to their organisation on Joinery, as {role}.
Organisation (named by its members): {organisation}

To accept, open this link until {until}:

{link}

It is for you alone, and good for one use. If you do not know what this is about, do nothing: without it nobody joins in your name.
"""
