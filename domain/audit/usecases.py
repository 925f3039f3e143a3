"""Use cases of audit entries: listing, undoing, and verification of the hash chain."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, Protocol

from domain.audit.chain import ChainCheck, ChainReport
from domain.audit.model import AuditAct, AuditEntry, AuditFilter
from domain.audit.ports import AuditLog
from domain.kernel import retention
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, PreconditionFailed, UndoUnavailable, Unprocessable
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found
from domain.orgs.ports import OrgStore
from ports.unit_of_work import Tx

_NOTHING: Final[Mapping[int, bytes]] = {}
_CLOCK_TOLERANCE = timedelta(days=1)
"""Tolerance for clock differences, and for entries whose numbers are not in the order of their times."""
_MAX_EXAMINED_ENTRIES = 2_000
"""Number of examined entries after which a page ends, even if fewer entries than its limit match `undoable`."""
_BATCH_SIZE = 500
"""Number of entries in each batch that is examined for a page; the first batch is smaller."""
MADE_BEFORE_UNDO = "The change was made before undo was supported. Reverse this change manually."
KEPT_NO_LONGER = (
    f"The previous value was stored for {retention.KEPT_FOR_UNDOING.days} days and is no longer available. "
    f"Reverse this change manually."
)
_AS_BEFORE = "Nothing was undone, because the previous values are already in place."


class Reversals(Protocol):
    """Undoing of operations, each by the use cases of its area."""

    def find_irreversibility_reason(self, action: str) -> str | None:
        """Return the reason why changes made by the operation can never be undone, or None if they can."""
        ...

    def check_permission(self, act: AuditAct) -> None:
        """Check that the caller may undo the act. Raises PermissionDenied, FeatureUnavailable."""
        ...

    async def undo(self, tx: Tx, act: AuditAct) -> None:
        """Undo the act with the use cases of its area. Raises the errors of these use cases."""
        ...


@dataclass(frozen=True, slots=True)
class AuditEntryView:
    """Audit entry with the state of its undoing.

    Attributes:
        undone_by: The ID of the act that undid the entry; None if the entry was not undone.
        refusal: The reason why the entry cannot be undone now; None if it can be undone.
    """

    entry: AuditEntry
    undone_by: str | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class AuditService:
    """Use cases of a tenant's audit log."""

    async def list_entries(
        self, tx: Tx, filter: AuditFilter, undoable: bool | None, page_request: PageRequest, reversals: Reversals
    ) -> Page[AuditEntryView]:
        """Return a page of entries, newest first.

        With `undoable` True (False), only entries that can (cannot) be undone now are returned.
        """
        if undoable is None:
            page = await tx[AuditLog].page(page_request, filter)
            return Page(tuple(await self._describe_entries(tx, page.items, reversals)), page.has_more, page.next_key)
        return await self._list_by_undoable(
            tx, replace(filter, reversible=undoable or None), undoable, page_request, reversals
        )

    async def _list_by_undoable(
        self, tx: Tx, filter: AuditFilter, undoable: bool, request: PageRequest, reversals: Reversals
    ) -> Page[AuditEntryView]:
        """Return a page of the entries that can be undone now (`undoable` True), or that cannot (False)."""
        found: list[AuditEntryView] = []
        examined, key = 0, request.key
        while examined < _MAX_EXAMINED_ENTRIES:
            batch = replace(request, key=key, limit=_BATCH_SIZE if examined else max(20, 2 * request.limit))
            page = await tx[AuditLog].page(batch, filter)
            described = await self._describe_entries(tx, page.items, reversals)
            matching = [one for one in described if (one.refusal is None) == undoable]
            found = [*matching, *found] if request.backwards else [*found, *matching]
            examined, key = examined + len(described), page.next_key
            if len(found) > request.limit or not page.has_more or len(described) < batch.limit:
                break
        items = found[-request.limit :] if request.backwards else found[: request.limit]
        if len(found) > request.limit:
            key = items[0 if request.backwards else -1].entry.id
        return Page(tuple(items), key is not None, key)

    async def undo(self, tx: Tx, id: str, reversals: Reversals) -> AuditEntryView:
        """Undo the act to which the entry belongs, with all entries of the act; return the entry.

        Raises:
            NotFound: The entry does not exist.
            PermissionDenied: The caller lacks the permission to undo the operation.
            Conflict: The act is already undone.
            UndoUnavailable: The act cannot be undone, or a later entry (named in the detail) depends on it.
        """
        entry = require_found(await tx[AuditLog].get(id))
        await tx[AuditLog].lock_act(entry.act)
        entries = await tx[AuditLog].list_entries_of_acts([entry.act])
        act = AuditAct(tuple(entries), await _find_original_entry(tx, entry))
        reversals.check_permission(act)
        if (by := (await tx[AuditLog].find_undoing_acts([entry.act])).get(entry.act)) is not None:
            raise Conflict(f"{id} was undone by {by}. To redo the change, undo {by}.")
        refusals = await _find_refusals(tx, act.entries, reversals)
        if act.id in refusals:
            raise UndoUnavailable(refusals[act.id])
        await tx[AuditLog].link_undone_act(entries)
        done = len(tx.recorded.changes)
        await self._undo_act(tx, act, reversals)
        if len(tx.recorded.changes) == done:
            raise UndoUnavailable(_AS_BEFORE)
        if later := (await tx[AuditLog].find_dependents(entries)).get(
            act.id
        ):  # written while this transaction waited for locks
            raise UndoUnavailable(_describe_dependency(later))
        return AuditEntryView(
            entry, tx.recorded.changes[done].entry, _describe_undoing(tx.recorded.changes[done].entry)
        )

    async def _undo_act(self, tx: Tx, act: AuditAct, reversals: Reversals) -> None:
        try:
            await reversals.undo(tx, act)
        except (Conflict, InvalidRequest, NotFound, PreconditionFailed, Unprocessable) as error:
            later = await _find_latest_entry(tx, getattr(error.__cause__, "later", None))
            detail = error.detail if later is None else f"{error.detail} {_describe_dependency(later)}"
            raise UndoUnavailable(detail) from error

    async def _describe_entries(
        self, tx: Tx, entries: Sequence[AuditEntry], reversals: Reversals
    ) -> list[AuditEntryView]:
        undone = await tx[AuditLog].find_undoing_acts([entry.act for entry in entries]) if entries else {}
        standing = [entry for entry in entries if entry.act not in undone and entry.context.is_reversible]
        shared = await tx[AuditLog].list_entries_of_acts(sorted({entry.act for entry in standing})) if standing else ()
        refusals = await _find_refusals(tx, shared, reversals)
        return [
            AuditEntryView(
                one,
                by,
                _describe_undoing(by) if by else _find_permanent_refusal(one, reversals) or refusals.get(one.act),
            )
            for one in entries
            for by in [undone.get(one.act)]
        ]

    async def verify_chain(self, tx: Tx, expected_hashes: Mapping[int, bytes] = _NOTHING) -> ChainReport:
        """Check the tenant's whole hash chain.

        Args:
            tx: The transaction.
            expected_hashes: Hashes that were stored outside the database, by entry number, to be compared with the chain.
        """
        oldest = tx.now - retention.AUDIT_ENTRIES
        old = (await tx[OrgStore].get_organisation()).created_at < oldest
        async with tx[AuditLog].open_chain() as (head, entries):
            check = ChainCheck(tx.tenant, head, expected_hashes, oldest + _CLOCK_TOLERANCE, may_have_purged_entries=old)
            async for some in entries:
                check.check_entries(some)
        return check.build_report()


def _find_permanent_refusal(entry: AuditEntry, reversals: Reversals) -> str | None:
    """Return the reason why an entry can never be undone, or None."""
    return reversals.find_irreversibility_reason(entry.context.operation) or (
        None if entry.context.is_reversible else MADE_BEFORE_UNDO
    )


async def _find_refusals(tx: Tx, entries: Sequence[AuditEntry], reversals: Reversals) -> dict[str, str]:
    """Return the reason why an act cannot be undone now, by the act's ID; acts that can be undone are omitted.

    `entries` are all entries of acts that are not undone yet.
    """
    found = (
        {act: _describe_dependency(later) for act, later in (await tx[AuditLog].find_dependents(entries)).items()}
        if entries
        else {}
    )
    for entry in entries:
        if why := _find_permanent_refusal(entry, reversals):
            found[entry.act] = why
        elif entry.has_sealed and _has_expired(entry, tx.now):
            found[entry.act] = KEPT_NO_LONGER
    return found


def _has_expired(entry: AuditEntry, now: datetime) -> bool:
    return now >= entry.created_at + retention.KEPT_FOR_UNDOING


async def _find_original_entry(tx: Tx, entry: AuditEntry) -> AuditEntry:
    """Follow undos and redos from the entry's act back to the original act; return the first entry of the original act.

    Raises UndoUnavailable if one of the acts is no longer stored.
    """
    first = (await tx[AuditLog].list_entries_of_acts([entry.act]))[0]
    while first.undoes is not None:
        found = await tx[AuditLog].list_entries_of_acts([first.undoes])
        if not found:
            raise UndoUnavailable("The original change is no longer stored. Reverse this change manually.")
        first = found[0]
    return first


async def _find_latest_entry(tx: Tx, target: object) -> str | None:
    """Return the ID of the latest entry about the resource with the ID `target`, or None."""
    if not isinstance(target, str):
        return None
    page = await tx[AuditLog].page(PageRequest(1), AuditFilter(target=target))
    return page.items[0].id if page.items else None


def _describe_dependency(later: str) -> str:
    return f"The later change {later} depends on this change. Undo {later} first, or reverse the change manually."


def _describe_undoing(undoing_change: str) -> str:
    return f"The change was undone by {undoing_change}. To redo the change, undo {undoing_change}."
