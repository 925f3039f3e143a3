"""Ports for organisations, members and plans."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Invitation, InvitationDetails, Member, Organisation, Plan


class OrgStore(Protocol):
    """Storage of the tenant's organisation with its members and invitations, in a tenant's transaction."""

    async def get_organisation(self) -> Organisation:
        """Return the tenant's organisation."""
        ...

    async def save_settings(self, name: str, api_version: str | None) -> None:
        """Set the organisation's name and API version."""
        ...

    async def add_member(self, member: Member) -> None:
        """Add a member. Raises Conflict if there is a member with the same address."""
        ...

    async def find_member(self, email: str) -> Member | None:
        """Return the member with that address, ignoring case, or None."""
        ...

    async def find_member_by_user(self, user: str) -> Member | None:
        """Return the member with that user ID, or None."""
        ...

    async def list_members(self, page_request: PageRequest) -> Page[Member]:
        """Return a page of members, longest membership first; the page's key is a user ID."""
        ...

    async def lock_members(self, users: Collection[str]) -> Mapping[str, Member]:
        """Lock and return the members with these user IDs and all owners, by user ID.

        Other transactions cannot change these memberships until the transaction ends.
        """
        ...

    async def change_role(self, user: str, role: str) -> None:
        """Set a member's role."""
        ...

    async def remove_member(self, user: str) -> None:
        """Remove a member."""
        ...

    async def add_invitation(self, invitation: Invitation) -> None:
        """Store a new invitation."""
        ...

    async def list_invitations(self, now: datetime, page_request: PageRequest) -> Page[Invitation]:
        """Return a page of open invitations, newest first."""
        ...

    async def lock_invitation(self, id: str) -> Invitation | None:
        """Lock the invitation with that ID until the transaction ends, and return it; None if there is none."""
        ...

    async def close_invitation(
        self, id: str, *, accepted_at: datetime | None = None, revoked_at: datetime | None = None
    ) -> None:
        """Store when the invitation was accepted or revoked, so that it is no longer open."""
        ...

    async def list_plans(self) -> Sequence[Plan]:
        """Return all available plans, cheapest first."""
        ...


class Memberships(Protocol):
    """Users' memberships in all organisations."""

    async def list_organisations(self, user: str, page_request: PageRequest) -> Page[Organisation]:
        """Return a page of the user's organisations, in order of IDs."""
        ...

    async def find_invitation(self, digest: bytes) -> InvitationDetails | None:
        """Return the invitation whose secret has that keyed hash, and its organisation; None if there is none.

        Invitations that are no longer open are returned as well.
        """
        ...

    async def delete_invitations(self, before: datetime) -> int:
        """Delete invitations that were accepted, revoked or expired before `before`; return their number."""
        ...


class OrgRegistry(Protocol):
    """Storage of all organisations, for operators."""

    async def create(self, organisation: Organisation) -> None:
        """Store a new organisation."""
        ...

    async def find(self, id_or_name: str) -> Organisation | None:
        """Return the organisation with that ID, or else the only one with exactly that name.

        None if no organisation, or more than one, has the name.
        """
        ...

    async def find_by_catalogue(self, catalogue: str) -> Organisation | None:
        """Return the organisation to which a catalogue belongs, in live or test mode; None if there is none."""
        ...

    async def find_names(self, ids: Sequence[str]) -> Mapping[str, str]:
        """Return the names of those of these organisations that exist, by ID."""
        ...

    async def list_by_name(self, name: str) -> Sequence[Organisation]:
        """Return the organisations with exactly that name, oldest first; an empty name returns all."""
        ...

    async def change_plan(self, id: str, plan: Plan) -> None:
        """Set an organisation's plan; nothing happens if it does not exist."""
        ...

    async def find_plan(self, code: str) -> Plan | None:
        """Return the plan with that code, or None."""
        ...


class Erasure(Protocol):
    """Deletion of an organisation, for operators."""

    async def revoke_access(self, org: str) -> None:
        """Delete the organisation's credentials and members, so that nobody can act for it."""
        ...

    async def delete_data(self, org: str) -> Mapping[str, int]:
        """Delete the data of an organisation and references to the data, except the organisation's row.

        Returns the numbers of deleted rows by table.
        """
        ...

    async def delete_organisation(self, org: str) -> None:
        """Delete the row of an organisation whose data is deleted."""
        ...
