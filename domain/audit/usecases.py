"""What people do with the audit log: read it, and undo what it tells of."""

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
_CLOCKS = timedelta(days=1)
"""By how much clocks, and the order in which entries are numbered and made, may differ."""
_LOOKED = 2_000
"""Entries that a page of those that can be undone looks at before it ends although it is not full."""
_WINDOW = 500
"""So many of them at a time, once the first few were not enough."""
BEFORE = "It was made before changes could be undone."
KEPT_NO_LONGER = (
    f"What was replaced or taken away is kept for {retention.KEPT_FOR_UNDOING.days} days, and these are over."
)
_AS_BEFORE = "Everything is as it was before already."


class Reversals(Protocol):
    """How the operations of all areas are taken back."""

    def refusal(self, action: str) -> str | None:
        """Why what such an operation did is never undone; None if it can be."""
        ...

    def permit(self, action: str) -> None:
        """Raise PermissionDenied or FeatureUnavailable if the caller may not undo the action."""
        ...

    async def take_back(self, tx: Tx, act: Act) -> None:
        """Bring what the act changed to what it was before, by the use cases of its area. Raises what these raise."""
        ...


@dataclass(frozen=True, slots=True)
class ToldEntry:
    """An entry as it is told: who has undone it, and whether it can be undone, or why not."""

    entry: AuditEntry
    undone_by: str | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class AuditService:
    """The audit log of one tenant."""

    async def list_entries(
        self, tx: Tx, filter: AuditFilter, undoable: bool | None, page_request: PageRequest, reversals: Reversals
    ) -> Page[ToldEntry]:
        """Entries, newest first; with `undoable` only those that can, or cannot, be undone now."""
        if undoable is None:
            page = await tx[AuditLog].page(page_request, filter)
            return Page(tuple(await self._told(tx, page.items, reversals)), page.has_more, page.next_key)
        return await self._sifted(tx, replace(filter, reversible=undoable or None), undoable, page_request, reversals)

    async def _sifted(
        self, tx: Tx, filter: AuditFilter, undoable: bool, request: PageRequest, reversals: Reversals
    ) -> Page[ToldEntry]:
        """Return a page filtered by whether entries can be undone, which must be determined for each entry."""
        found: list[ToldEntry] = []
        looked, key = 0, request.key
        while looked < _LOOKED:
            window = replace(request, key=key, limit=_WINDOW if looked else max(20, 2 * request.limit))
            page = await tx[AuditLog].page(window, filter)
            told = await self._told(tx, page.items, reversals)
            fitting = [one for one in told if (one.refusal is None) == undoable]
            found = [*fitting, *found] if request.backwards else [*found, *fitting]
            looked, key = looked + len(told), page.next_key
            if len(found) > request.limit or not page.has_more or len(told) < window.limit:
                break
        items = found[-request.limit :] if request.backwards else found[: request.limit]
        if len(found) > request.limit:
            key = items[0 if request.backwards else -1].entry.id
        return Page(tuple(items), key is not None, key)

    async def undo(self, tx: Tx, id: str, reversals: Reversals) -> ToldEntry:
        """Undo the act that the entry is of, as a whole.

        Raises NotFound; PermissionDenied without the permission for its inverse; Conflict when it is undone already;
        UndoUnavailable when it cannot be undone, or a later entry stands on it, which is named.
        """
        entry = existing(await tx[AuditLog].get(id))
        await tx[AuditLog].take_turn(entry.act)
        entries = await tx[AuditLog].acts([entry.act])
        act = Act(tuple(entries), await _first(tx, entry))
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
            raise UndoUnavailable(_standing(later))
        return ToldEntry(entry, tx.recorded.changes[done].entry, _undone(tx.recorded.changes[done].entry))

    async def _take_back(self, tx: Tx, act: Act, reversals: Reversals) -> None:
        try:
            await reversals.take_back(tx, act)
        except (Conflict, InvalidRequest, NotFound, PreconditionFailed, Unprocessable) as error:
            later = await _maker(tx, getattr(error.__cause__, "later", None))
            detail = error.detail if later is None else f"{error.detail} {_standing(later)}"
            raise UndoUnavailable(detail) from error

    async def _told(self, tx: Tx, entries: Sequence[AuditEntry], reversals: Reversals) -> list[ToldEntry]:
        undone = await tx[AuditLog].undone_by([entry.act for entry in entries]) if entries else {}
        standing = [entry for entry in entries if entry.act not in undone and entry.context.reversible]
        shared = await tx[AuditLog].acts(sorted({entry.act for entry in standing})) if standing else ()
        refusals = await _refusals(tx, shared, reversals)
        return [
            ToldEntry(one, by, _undone(by) if by else _never(one, reversals) or refusals.get(one.act))
            for one in entries
            for by in [undone.get(one.act)]
        ]

    async def verify(self, tx: Tx, noted: Mapping[int, bytes] = _NOTHING) -> ChainReport:
        """Check the tenant's whole chain; `noted` are hashes that entries of these numbers are known to have had."""
        oldest = tx.now - retention.AUDIT_ENTRIES
        old = (await tx[OrgStore].own()).created_at < oldest
        async with tx[AuditLog].chain() as (head, entries):
            check = ChainCheck(tx.tenant, head, noted, oldest + _CLOCKS, may_be_purged=old)
            async for some in entries:
                check.look_at(some)
        return check.report()


def _never(entry: AuditEntry, reversals: Reversals) -> str | None:
    """Why an entry can never be undone."""
    return reversals.refusal(entry.context.operation) or (None if entry.context.reversible else BEFORE)


async def _refusals(tx: Tx, entries: Sequence[AuditEntry], reversals: Reversals) -> dict[str, str]:
    """Of acts that nobody has undone, given all their entries, why they cannot be undone, if they cannot."""
    found = (
        {act: _standing(later) for act, later in (await tx[AuditLog].standing_on(entries)).items()} if entries else {}
    )
    for entry in entries:
        if why := _never(entry, reversals):
            found[entry.act] = why
        elif entry.kept and _is_over(entry, tx.now):
            found[entry.act] = KEPT_NO_LONGER
    return found


def _is_over(entry: AuditEntry, now: datetime) -> bool:
    return now >= entry.created_at + retention.KEPT_FOR_UNDOING


async def _first(tx: Tx, entry: AuditEntry) -> AuditEntry:
    """Return the first entry of the act that a chain of undos leads back to."""
    first = (await tx[AuditLog].acts([entry.act]))[0]
    while first.undoes is not None:
        found = await tx[AuditLog].acts([first.undoes])
        if not found:
            raise UndoUnavailable(
                "What it has undone is so old that it is not kept any more; make the change yourself."
            )
        first = found[0]
    return first


async def _maker(tx: Tx, target: object) -> str | None:
    """Return the ID of the latest entry about a blocking target, or None."""
    if not isinstance(target, str):
        return None
    page = await tx[AuditLog].page(PageRequest(1), AuditFilter(target=target))
    return page.items[0].id if page.items else None


def _standing(later: str) -> str:
    return f"The later change {later} stands on it; undo that first, or make the opposite change yourself."


def _undone(by: str) -> str:
    return f"It was undone by {by}; undo that to have it done again."
