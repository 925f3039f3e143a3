"""Organisations, members and plans in store."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Invitation, Invited, Member, Organisation, Plan


class OrgStore(Protocol):
    """In a tenant's transaction: its own organisation."""

    async def own(self) -> Organisation:
        """Return the tenant's organisation."""
        ...

    async def change(self, name: str, api_version: str | None) -> None:
        """Give the organisation another name and pinned version."""
        ...

    async def add_member(self, member: Member) -> None:
        """Add a member. Raises Conflict when the address is a member already."""
        ...

    async def member(self, email: str) -> Member | None:
        """Return the member with the address, ignoring case."""
        ...

    async def members(self, page_request: PageRequest) -> Page[Member]:
        """Its members, those who were known first ahead; the key of one is the user's id."""
        ...

    async def hold_members(self, users: Collection[str]) -> Mapping[str, Member]:
        """Those members and every owner, by user, as they are now: no other transaction changes them until this one's end."""
        ...

    async def change_role(self, user: str, role: str) -> None:
        """Give a member another role."""
        ...

    async def remove_member(self, user: str) -> None:
        """Take a member away."""
        ...

    async def invite(self, invitation: Invitation) -> None:
        """Keep a new invitation."""
        ...

    async def invitations(self, now: datetime, page_request: PageRequest) -> Page[Invitation]:
        """Those that can be accepted yet, the newest first."""
        ...

    async def invitation(self, id: str) -> Invitation | None:
        """One invitation, locked until the transaction's end."""
        ...

    async def settle_invitation(
        self, id: str, *, accepted_at: datetime | None = None, revoked_at: datetime | None = None
    ) -> None:
        """Record that an invitation was accepted or revoked."""
        ...

    async def plans(self) -> Sequence[Plan]:
        """Every plan on offer, cheapest first."""
        ...


class Memberships(Protocol):
    """Across tenants: a person belongs to many."""

    async def of_user(self, user: str, page_request: PageRequest) -> Page[Organisation]:
        """Return a page of the organisations of a user, by ID."""
        ...

    async def invited(self, digest: bytes) -> Invited | None:
        """Return the invitation with the keyed hash and its organisation, also if it is over (the caller decides)."""
        ...

    async def forget_invitations(self, before: datetime) -> int:
        """Delete those that were over before then; answers how many."""
        ...


class OrgRegistry(Protocol):
    """Across tenants: for operators."""

    async def create(self, organisation: Organisation) -> None:
        """Keep a new organisation."""
        ...

    async def find(self, id_or_name: str) -> Organisation | None:
        """Return the organisation with the ID, or with the exact name if it is unique."""
        ...

    async def named(self, name: str) -> Sequence[Organisation]:
        """Return the organisations with exactly this name, or all for an empty name, oldest first."""
        ...

    async def change_plan(self, id: str, plan: Plan) -> None:
        """Put an organisation on another plan; nothing happens for an unknown one."""
        ...

    async def plan(self, code: str) -> Plan | None:
        """One plan."""
        ...


class Erasure(Protocol):
    """Across tenants, for operators: an organisation that leaves."""

    async def close(self, org: str) -> None:
        """Take its credentials and members away, so that nobody can act for it any more."""
        ...

    async def erase(self, org: str) -> Mapping[str, int]:
        """Delete all rows of it but itself, and what others' rows hold of it; answers how many, by table."""
        ...

    async def forget(self, org: str) -> None:
        """Delete the organisation itself, once nothing of it is left."""
        ...
