"""Use cases of saved views. People see their own views and the shared ones, and change their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.kernel.names import validate_name
from domain.kernel.resource import select_differing, with_changes
from domain.orgs.model import MANAGERS
from domain.orgs.ports import OrgStore
from domain.orgs.usecases.service import require_person
from domain.saved_views.model import AUDITED_VIEW, MAX_QUERY_CHARS, MAX_VIEWS, ListPreferences, SavedView
from domain.saved_views.ports import SavedViewStore
from ports.unit_of_work import Tx

_SHARED_BY_ANOTHER = "Only the person who created a shared view, owners and admins can change it. Save a copy instead."
_MAX_VIEWS = f"There are {MAX_VIEWS} views of this kind already. Delete one first."


@dataclass(frozen=True, slots=True)
class SavedViewService:
    """Use cases of saved views. Changes of shared views are recorded in the audit log."""

    async def list_visible(self, tx: Tx, person: str) -> Sequence[SavedView]:
        """Return a person's own views and the shared ones, by name."""
        return await tx[SavedViewStore].list_visible(person)

    async def get(self, tx: Tx, id: str, person: str) -> SavedView:
        """Return a view that a person sees. Raises NotFound."""
        view = await tx[SavedViewStore].get(id)
        if view is None or not (view.is_shared or view.person == person):
            raise NotFound
        return view

    async def create(self, tx: Tx, name: str, query: str, *, is_shared: bool = False) -> SavedView:
        """Create a view. Raises InvalidRequest for an invalid name; Conflict if there are too many views."""
        view = SavedView(
            id=new_id("svw"),
            person=require_person(tx),
            name=validate_name(name),
            query=query,
            is_shared=is_shared,
            created_at=tx.now,
            updated_at=tx.now,
        )
        _refuse_long_query(query)
        await self._require_room(tx, view)
        await tx[SavedViewStore].add(view)
        if is_shared:
            await tx[AuditLog].add(AUDITED_VIEW.describe_creation(view))
        return view

    async def update(self, tx: Tx, id: str, changes: Mapping[str, Any]) -> SavedView:
        """Change the name, the query or the sharing of a view.

        Raises NotFound, InvalidRequest, Conflict; PermissionDenied for a shared view of another person.
        """
        before = await self._get_changeable(tx, id)
        values = {**changes, **({"name": validate_name(changes["name"])} if "name" in changes else {})}
        if not (values := select_differing(before, values)):
            return before
        after: SavedView = with_changes(before, tx.now, **values)
        _refuse_long_query(after.query)
        if after.is_shared != before.is_shared:
            await self._require_room(tx, after)
        await tx[SavedViewStore].save(after)
        await _record(tx, before, after)
        return after

    async def delete(self, tx: Tx, id: str) -> None:
        """Delete a view. Raises NotFound; PermissionDenied for a shared view of another person."""
        view = await self._get_changeable(tx, id)
        await tx[SavedViewStore].remove(id)
        if view.is_shared:
            await tx[AuditLog].add(AUDITED_VIEW.describe_deletion(view))

    async def get_default(self, tx: Tx, person: str) -> str | None:
        """Return the ID of the view with which a person's list starts, or None. The view may no longer exist."""
        preferences = await tx.store(ListPreferences).get(person)
        return None if preferences is None else preferences.default_view

    async def set_default(self, tx: Tx, id: str | None) -> None:
        """Set the view with which the caller's list starts; None for no view. Raises NotFound."""
        store, person = tx.store(ListPreferences), require_person(tx)
        if id is not None:
            await self.get(tx, id, person)
        before = await store.get(person, lock=True)
        if before is None:
            await store.add(ListPreferences(id=person, default_view=id, created_at=tx.now, updated_at=tx.now))
        elif before.default_view != id:
            await store.save(with_changes(before, tx.now, default_view=id))

    async def delete_of_person(self, tx: Tx, person: str) -> None:
        """Delete the own views and preferences of a person who leaves the organisation. Shared views remain."""
        await tx[SavedViewStore].delete_of_person(person)

    async def _get_changeable(self, tx: Tx, id: str) -> SavedView:
        """Return a view that the caller may change. Raises NotFound, PermissionDenied."""
        person = require_person(tx)
        view = await self.get(tx, id, person)
        if view.person != person and (await tx[OrgStore].lock_members((person,)))[person].role not in MANAGERS:
            raise PermissionDenied(_SHARED_BY_ANOTHER)
        return view

    async def _require_room(self, tx: Tx, view: SavedView) -> None:
        """Raise Conflict if there are MAX_VIEWS shared views, or own views of the person."""
        if await tx[SavedViewStore].count_of(view.person, view.is_shared) >= MAX_VIEWS:
            raise Conflict(_MAX_VIEWS)


def _refuse_long_query(query: str) -> None:
    """Raise InvalidRequest if the query string is longer than MAX_QUERY_CHARS."""
    if len(query) > MAX_QUERY_CHARS:
        raise InvalidRequest.for_field("query", "too_long", "The view has too many filters. Remove some of them.")


async def _record(tx: Tx, before: SavedView, after: SavedView) -> None:
    """Record a change of a shared view. A view that becomes shared, or is no longer, appears as created or deleted."""
    change: Change | None = None
    if before.is_shared and after.is_shared:
        change = AUDITED_VIEW.describe_update(before, after)
    elif after.is_shared:
        change = AUDITED_VIEW.describe_creation(after)
    elif before.is_shared:
        change = AUDITED_VIEW.describe_deletion(before)
    if change is not None:
        await tx[AuditLog].add(change)
