"""Storage of organisations, members and plans."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Invitation, Invited, Member, Organisation, Plan


class OrgStore(Protocol):
    """The tenant's own organisation, in its transaction."""

    async def own(self) -> Organisation:
        """Return the tenant's organisation."""
        ...

    async def change(self, name: str, api_version: str | None) -> None:
        """Set the organisation's name and pinned version."""
        ...

    async def add_member(self, member: Member) -> None:
        """Add a member. Raises Conflict if the address is a member already."""
        ...

    async def member(self, email: str) -> Member | None:
        """Return the member with that address, ignoring case, or None."""
        ...

    async def members(self, page_request: PageRequest) -> Page[Member]:
        """Return a page of members, longest known first; the key is the user's id."""
        ...

    async def hold_members(self, users: Collection[str]) -> Mapping[str, Member]:
        """Lock and return those members and every owner, by user.

        Other transactions cannot change them until this one ends.
        """
        ...

    async def change_role(self, user: str, role: str) -> None:
        """Set a member's role."""
        ...

    async def remove_member(self, user: str) -> None:
        """Remove a member."""
        ...

    async def invite(self, invitation: Invitation) -> None:
        """Store a new invitation."""
        ...

    async def invitations(self, now: datetime, page_request: PageRequest) -> Page[Invitation]:
        """Return a page of open invitations, newest first."""
        ...

    async def invitation(self, id: str) -> Invitation | None:
        """Lock and return an invitation, or None."""
        ...

    async def settle_invitation(
        self, id: str, *, accepted_at: datetime | None = None, revoked_at: datetime | None = None
    ) -> None:
        """Mark the invitation as accepted or revoked."""
        ...

    async def plans(self) -> Sequence[Plan]:
        """Return every plan on offer, cheapest first."""
        ...


class Memberships(Protocol):
    """Memberships of people, across tenants."""

    async def of_user(self, user: str, page_request: PageRequest) -> Page[Organisation]:
        """Return a page of the user's organisations, by id."""
        ...

    async def invited(self, digest: bytes) -> Invited | None:
        """Return the invitation with that keyed hash and its organisation, also when it has ended."""
        ...

    async def forget_invitations(self, before: datetime) -> int:
        """Delete invitations that ended before then; return their number."""
        ...


class OrgRegistry(Protocol):
    """All organisations, for operators."""

    async def create(self, organisation: Organisation) -> None:
        """Store a new organisation."""
        ...

    async def find(self, id_or_name: str) -> Organisation | None:
        """Return an organisation by id, or by its exact name if that is unique."""
        ...

    async def named(self, name: str) -> Sequence[Organisation]:
        """Return the organisations with exactly that name, or all for an empty name, oldest first."""
        ...

    async def change_plan(self, id: str, plan: Plan) -> None:
        """Set an organisation's plan; an unknown organisation is ignored."""
        ...

    async def plan(self, code: str) -> Plan | None:
        """Return a plan, or None."""
        ...


class Erasure(Protocol):
    """Deletion of an organisation, across tenants, for operators."""

    async def close(self, org: str) -> None:
        """Delete the organisation's credentials and members, so that nobody can act for it."""
        ...

    async def erase(self, org: str) -> Mapping[str, int]:
        """Delete all its rows except its own, and references in others' rows; return the numbers by table."""
        ...

    async def forget(self, org: str) -> None:
        """Delete the organisation's row, once nothing else is left."""
        ...
