"""The one table that every memory store stands on: tenants, order, pages, uniqueness, and changes undone as a whole.

A `Table` only describes rows. `MemoryStore` holds what is committed. A `Transaction` lays its changes over that until
they are committed, so nobody else sees them before and dropping them undoes everything; a savepoint is a copy of the
changes so far. Rows are frozen values (or are copied by the store that keeps them).
"""

import asyncio
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Generic, TypeAlias, TypeVar

from domain.kernel.errors import Conflict, NotFound, PreconditionFailed
from domain.kernel.paging import Filter, Page, PageRequest
from domain.kernel.tenancy import Tenant
from ports.signals import Channel
from ports.unit_of_work import Recorded

R = TypeVar("R")
Changes: TypeAlias = "dict[tuple[str, Tenant], dict[str, Any]]"
Savepoint: TypeAlias = "tuple[Changes, tuple[int, int, int, int]]"

EVERYWHERE: Final = Tenant("", True)
"""Where rows live that belong to no tenant's mode: organisations, members, plans."""
LOCK_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Table(Generic[R]):
    """How rows of one kind are kept: `key` is unique within a tenant; lists run by `order` (the key unless given).

    `unique` gives a value that no two rows of a tenant may share, or None for rows that are free of it; breaking it
    raises Conflict with the sentence `conflict`.
    """

    name: str
    key: Callable[[R], str]
    order: Callable[[R], str] | None = None
    descending: bool = True
    unique: Callable[[R], Hashable | None] | None = None
    conflict: str = "There is such an entry already."


def page_of(
    rows: Iterable[R], page_request: PageRequest, order: Callable[[R], str], *, descending: bool = True
) -> Page[R]:
    """Cut one page out of the rows (ports' lists; keyset paging, so rows may come and go between pages)."""
    ordered = sorted(rows, key=order, reverse=descending)
    if page_request.key is not None:
        before = page_request.backwards != descending
        edge = page_request.key
        ordered = [row for row in ordered if (order(row) < edge if before else order(row) > edge)]
    has_more = len(ordered) > page_request.limit
    items = ordered[-page_request.limit :] if page_request.backwards else ordered[: page_request.limit]
    next_key = order(items[0 if page_request.backwards else -1]) if has_more else None
    return Page(tuple(items), has_more, next_key)


class MemoryDatabase:
    """What is committed, and who may write now. `listeners` get channel and payload (ports/signals.py) after a commit."""

    def __init__(self) -> None:
        self._committed: Changes = {}
        self._lock = asyncio.Lock()
        self._sequence = 0
        self.writer: Transaction | None = None
        self.holds: dict[tuple[Tenant, str], Transaction] = {}
        self.low_watermarks: dict[Tenant, int] = {}
        """Up to which position of each log events have been dropped."""
        self.epochs: dict[Tenant, tuple[int, int]] = {}
        """Of logs that lost something: their epoch, and behind which position it began."""
        self.listeners: list[Callable[[Channel, str], None]] = []

    def copied(self) -> "MemoryDatabase":
        """What is committed now, and stays as it is."""
        copy = MemoryDatabase()
        copy._committed = {place: dict(rows) for place, rows in self._committed.items()}
        copy._sequence = self._sequence
        copy.low_watermarks, copy.epochs = dict(self.low_watermarks), dict(self.epochs)
        return copy

    def next_number(self) -> int:
        """A number higher than any before; gaps are left by what was rolled back."""
        self._sequence += 1
        return self._sequence

    def committed(self, table: Table[R], tenant: Tenant) -> dict[str, R]:
        """The tenant's committed rows by key."""
        return self._committed.setdefault((table.name, tenant), {})

    def everyone(self, table: Table[R]) -> Iterator[tuple[Tenant, R]]:
        """The committed rows of all tenants."""
        for (name, tenant), rows in list(self._committed.items()):
            if name == table.name:
                yield from ((tenant, row) for row in list(rows.values()))

    def write(self, table: Table[R], tenant: Tenant, row: R) -> None:
        self.committed(table, tenant)[table.key(row)] = row

    def erase(self, table: Table[R], tenant: Tenant, key: str) -> None:
        """Commit the removal of one row at once."""
        self.committed(table, tenant).pop(key, None)

    def locked(self, table: Table[R], tenant: Tenant, key: str) -> bool:
        """Whether an open transaction has changed the row, so that others should pass it by."""
        return self.writer is not None and key in self.writer.changes.get((table.name, tenant), {})

    async def acquire(self, transaction: "Transaction") -> None:
        """Let the transaction write; others wait. Raises TimeoutError after LOCK_SECONDS (one writer never ends)."""
        async with asyncio.timeout(LOCK_SECONDS):
            await self._lock.acquire()
        self.writer = transaction

    def release(self, transaction: "Transaction") -> None:
        self.holds = {key: holder for key, holder in self.holds.items() if holder is not transaction}
        if self.writer is transaction:
            self.writer = None
            self._lock.release()

    def apply(self, changes: Changes) -> None:
        """Commit changes; a None stands for a removed row."""
        for place, rows in changes.items():
            kept = self._committed.setdefault(place, {})
            for key, row in rows.items():
                if row is None:
                    kept.pop(key, None)
                else:
                    kept[key] = row

    def notify(self, channel: Channel, payload: str) -> None:
        """Say that something happened on a channel."""
        for listener in list(self.listeners):
            listener(channel, payload)


class Transaction:
    """The changes of one unit of work, in one tenant, until they are committed or dropped."""

    def __init__(
        self,
        store: MemoryDatabase,
        tenant: Tenant,
        now: datetime,
        *,
        read_only: bool = False,
        trace: str | None = None,
    ) -> None:
        self.store, self.tenant, self.now, self.trace = store, tenant, now, trace
        self.changes: Changes = {}
        self.recorded = Recorded()
        self.channels: set[tuple[Channel, str]] = set()
        """What to say once committed: channel and payload."""
        self._read_only = read_only

    def rows(self, table: Table[R], tenant: Tenant | None = None) -> "Rows[R]":
        """The table as this transaction sees it, in its own tenant unless another is named."""
        return Rows(self, table, tenant or self.tenant)

    async def lock(self) -> None:
        """Become the one writer. Raises RuntimeError in a unit of work that was opened for reading."""
        if self._read_only:
            raise RuntimeError("This unit of work was opened for reading; use begin().")
        if self.store.writer is not self:
            await self.store.acquire(self)

    async def hold(self) -> None:
        """Lock what is read until the end; where each statement stands by itself, that is at once over."""
        if not self._read_only:
            await self.lock()

    def savepoint(self) -> Savepoint:
        return {place: dict(rows) for place, rows in self.changes.items()}, self.recorded.lengths()

    def restore(self, savepoint: Savepoint) -> None:
        """Undo everything since the savepoint."""
        self.changes, lengths = savepoint
        self.recorded.shorten(lengths)

    def end(self, *, commit: bool) -> None:
        """Commit or drop the changes, and let the next writer in."""
        if commit:
            self.store.apply(self.changes)
        self.store.release(self)
        if commit:
            for channel, payload in sorted(self.channels):
                self.store.notify(channel, payload)


class Rows(Generic[R]):
    """One table in one tenant, as one transaction sees it."""

    def __init__(self, transaction: Transaction, table: Table[R], tenant: Tenant) -> None:
        self._transaction, self._table, self._tenant = transaction, table, tenant
        self._order = table.order or table.key

    def _changes(self) -> dict[str, Any]:
        return self._transaction.changes.get((self._table.name, self._tenant), {})

    def _committed(self) -> dict[str, R]:
        return self._transaction.store.committed(self._table, self._tenant)

    def get(self, key: str) -> R | None:
        changes = self._changes()
        return changes[key] if key in changes else self._committed().get(key)

    def where(self, matches: Callable[[R], bool] | None = None) -> list[R]:
        """The rows that match, in no particular order."""
        rows = {**self._committed(), **self._changes()}.values()
        return [row for row in rows if row is not None and (matches is None or matches(row))]

    def sorted(self, matches: Callable[[R], bool] | None = None) -> list[R]:
        """The rows that match, in the table's order."""
        return sorted(self.where(matches), key=self._order, reverse=self._table.descending)

    def page(self, page_request: PageRequest, matches: Callable[[R], bool] | None = None) -> Page[R]:
        return page_of(self.where(matches), page_request, self._order, descending=self._table.descending)

    async def add(self, row: R) -> None:
        await self._transaction.lock()
        if self.get(self._table.key(row)) is not None:
            raise Conflict(self._table.conflict)
        await self.put(row)

    async def put(self, row: R) -> None:
        await self._transaction.lock()
        self._refuse_duplicate(row)
        self._transaction.changes.setdefault((self._table.name, self._tenant), {})[self._table.key(row)] = row

    async def remove(self, key: str) -> bool:
        await self._transaction.lock()
        found = self.get(key) is not None
        self._transaction.changes.setdefault((self._table.name, self._tenant), {})[key] = None
        return found

    def _refuse_duplicate(self, row: R) -> None:
        unique, key = self._table.unique, self._table.key
        value = unique(row) if unique else None
        if unique and value is not None and self.where(lambda other: key(other) != key(row) and unique(other) == value):
            raise Conflict(self._table.conflict)


def table_of(kind: type[R]) -> Table[R]:
    """The table of a plain resource: by id, nothing unique beside it."""
    return Table(kind.__name__, _id)


def _id(row: Any) -> str:
    return str(row.id)


class TableStore(Generic[R]):
    """ports.store.Store on a table."""

    def __init__(self, transaction: Transaction, table: Table[R]) -> None:
        self.transaction, self.rows = transaction, transaction.rows(table)
        self._key = table.key

    async def get(self, id: str, *, lock: bool = False) -> R | None:
        if lock:
            await self.transaction.lock()
        return self.rows.get(id)

    async def add(self, row: R) -> None:
        await self.rows.add(row)

    async def add_all(self, rows: Sequence[R]) -> None:
        for row in rows:
            await self.rows.add(row)

    async def save(self, row: R, *, expected_version: int | None = None) -> None:
        await self.transaction.lock()
        stored: Any = self.rows.get(self._key(row))
        if stored is None:
            raise NotFound
        if expected_version not in (None, getattr(stored, "version", None)):
            raise PreconditionFailed("It has changed since it was read; read it again and retry.")
        await self.rows.put(row)

    async def remove(self, id: str) -> bool:
        return await self.rows.remove(id)

    async def page(self, request: PageRequest, filter: Filter | None = None) -> Page[R]:
        return self.rows.page(request, filter.matches if filter else None)
