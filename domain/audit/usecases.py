"""Listing, undoing and verification of audit entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from domain.audit.chain import ChainCheck, ChainReport
from domain.audit.model import Act, AuditEntry, AuditFilter
from domain.audit.ports import AuditLog
from domain.kernel import retention
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, PreconditionFailed, UndoUnavailable, Unprocessable
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import existing
from domain.orgs.ports import OrgStore
from ports.unit_of_work import Tx

_NOTHING: Final[Mapping[int, bytes]] = {}
_CLOCK_TOLERANCE = timedelta(days=1)
"""Tolerance for clock differences and for entries that are numbered in another order than made."""
_MOST_EXAMINED = 2_000
"""Maximum number of entries examined for one page that is filtered by whether they can be undone."""
_WINDOW = 500
"""Entries examined at a time after the first, smaller batch."""
BEFORE = "It was made before changes could be undone."
KEPT_NO_LONGER = (
    f"What was replaced or taken away is kept for {retention.KEPT_FOR_UNDOING.days} days, and these are over."
)
_AS_BEFORE = "Everything is as it was before already."


class Reversals(Protocol):
    """Registry of how each area's operations are undone."""

    def refusal(self, action: str) -> str | None:
        """Return why changes of such an operation can never be undone, or None."""
        ...

    def permit(self, action: str) -> None:
        """Raise PermissionDenied or FeatureUnavailable if the caller may not undo such an operation."""
        ...

    async def take_back(self, tx: Tx, act: Act) -> None:
        """Undo the act by the use cases of its area. Raises what these raise."""
        ...


@dataclass(frozen=True, slots=True)
class ToldEntry:
    """An audit entry with the act that undid it and the reason why it cannot be undone, if any."""

    entry: AuditEntry
    undone_by: str | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class AuditService:
    """The audit log of one tenant."""

    async def list_entries(
        self, tx: Tx, filter: AuditFilter, undoable: bool | None, page_request: PageRequest, reversals: Reversals
    ) -> Page[ToldEntry]:
        """Return a page of entries, newest first; with `undoable` only those that can, or cannot, be undone now."""
        if undoable is None:
            page = await tx[AuditLog].page(page_request, filter)
            return Page(tuple(await self._describe(tx, page.items, reversals)), page.has_more, page.next_key)
        return await self._page_by_undoable(
            tx, replace(filter, reversible=undoable or None), undoable, page_request, reversals
        )

    async def _page_by_undoable(
        self, tx: Tx, filter: AuditFilter, undoable: bool, request: PageRequest, reversals: Reversals
    ) -> Page[ToldEntry]:
        """Return a page of the entries that match `undoable`, which is known only after examining each entry."""
        found: list[ToldEntry] = []
        examined, key = 0, request.key
        while examined < _MOST_EXAMINED:
            window = replace(request, key=key, limit=_WINDOW if examined else max(20, 2 * request.limit))
            page = await tx[AuditLog].page(window, filter)
            described = await self._describe(tx, page.items, reversals)
            matching = [one for one in described if (one.refusal is None) == undoable]
            found = [*matching, *found] if request.backwards else [*found, *matching]
            examined, key = examined + len(described), page.next_key
            if len(found) > request.limit or not page.has_more or len(described) < window.limit:
                break
        items = found[-request.limit :] if request.backwards else found[: request.limit]
        if len(found) > request.limit:
            key = items[0 if request.backwards else -1].entry.id
        return Page(tuple(items), key is not None, key)

    async def undo(self, tx: Tx, id: str, reversals: Reversals) -> ToldEntry:
        """Undo the whole act of an entry.

        Raises:
            NotFound: There is no such entry.
            PermissionDenied: The caller lacks the permission for the inverse operation.
            Conflict: The act is already undone.
            UndoUnavailable: The act cannot be undone, or a later entry, which is named, depends on it.
        """
        entry = existing(await tx[AuditLog].get(id))
        await tx[AuditLog].take_turn(entry.act)
        entries = await tx[AuditLog].acts([entry.act])
        act = Act(tuple(entries), await _find_original(tx, entry))
        reversals.permit(act.first.context.operation)
        if (by := (await tx[AuditLog].undone_by([entry.act])).get(entry.act)) is not None:
            raise Conflict(f"{id} was undone by {by} already. To have it done again, undo that.")
        refusals = await _refusals(tx, act.entries, reversals)
        if act.id in refusals:
            raise UndoUnavailable(refusals[act.id])
        await tx[AuditLog].take_back(entries)
        done = len(tx.recorded.changes)
        await self._take_back(tx, act, reversals)
        if len(tx.recorded.changes) == done:
            raise UndoUnavailable(_AS_BEFORE)
        if later := (await tx[AuditLog].standing_on(entries)).get(
            act.id
        ):  # written while this waited for what it changes
            raise UndoUnavailable(_dependency_detail(later))
        return ToldEntry(entry, tx.recorded.changes[done].entry, _undone_detail(tx.recorded.changes[done].entry))

    async def _take_back(self, tx: Tx, act: Act, reversals: Reversals) -> None:
        try:
            await reversals.take_back(tx, act)
        except (Conflict, InvalidRequest, NotFound, PreconditionFailed, Unprocessable) as error:
            later = await _find_latest_entry(tx, getattr(error.__cause__, "later", None))
            detail = error.detail if later is None else f"{error.detail} {_dependency_detail(later)}"
            raise UndoUnavailable(detail) from error

    async def _describe(self, tx: Tx, entries: Sequence[AuditEntry], reversals: Reversals) -> list[ToldEntry]:
        undone = await tx[AuditLog].undone_by([entry.act for entry in entries]) if entries else {}
        standing = [entry for entry in entries if entry.act not in undone and entry.context.reversible]
        shared = await tx[AuditLog].acts(sorted({entry.act for entry in standing})) if standing else ()
        refusals = await _refusals(tx, shared, reversals)
        return [
            ToldEntry(
                one, by, _undone_detail(by) if by else _permanent_refusal(one, reversals) or refusals.get(one.act)
            )
            for one in entries
            for by in [undone.get(one.act)]
        ]

    async def verify(self, tx: Tx, noted: Mapping[int, bytes] = _NOTHING) -> ChainReport:
        """Check the tenant's whole chain; `noted` are expected hashes by number."""
        oldest = tx.now - retention.AUDIT_ENTRIES
        old = (await tx[OrgStore].own()).created_at < oldest
        async with tx[AuditLog].chain() as (head, entries):
            check = ChainCheck(tx.tenant, head, noted, oldest + _CLOCK_TOLERANCE, may_be_purged=old)
            async for some in entries:
                check.look_at(some)
        return check.report()


def _permanent_refusal(entry: AuditEntry, reversals: Reversals) -> str | None:
    """Return why an entry can never be undone, or None."""
    return reversals.refusal(entry.context.operation) or (None if entry.context.reversible else BEFORE)


async def _refusals(tx: Tx, entries: Sequence[AuditEntry], reversals: Reversals) -> dict[str, str]:
    """Return, by act, why acts that are not undone yet cannot be undone; `entries` are all their entries."""
    found = (
        {act: _dependency_detail(later) for act, later in (await tx[AuditLog].standing_on(entries)).items()}
        if entries
        else {}
    )
    for entry in entries:
        if why := _permanent_refusal(entry, reversals):
            found[entry.act] = why
        elif entry.kept and _has_expired(entry, tx.now):
            found[entry.act] = KEPT_NO_LONGER
    return found


def _has_expired(entry: AuditEntry, now: datetime) -> bool:
    return now >= entry.created_at + retention.KEPT_FOR_UNDOING


async def _find_original(tx: Tx, entry: AuditEntry) -> AuditEntry:
    """Return the first entry of the act that a chain of undoing and redoing started from."""
    first = (await tx[AuditLog].acts([entry.act]))[0]
    while first.undoes is not None:
        found = await tx[AuditLog].acts([first.undoes])
        if not found:
            raise UndoUnavailable(
                "What it has undone is so old that it is not kept any more; make the change yourself."
            )
        first = found[0]
    return first


async def _find_latest_entry(tx: Tx, target: object) -> str | None:
    """Return the id of the latest entry about the conflicting resource, or None."""
    if not isinstance(target, str):
        return None
    page = await tx[AuditLog].page(PageRequest(1), AuditFilter(target=target))
    return page.items[0].id if page.items else None


def _dependency_detail(later: str) -> str:
    return f"The later change {later} stands on it; undo that first, or make the opposite change yourself."


def _undone_detail(by: str) -> str:
    return f"It was undone by {by}; undo that to have it done again."
