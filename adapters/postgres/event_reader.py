"""Event logs in PostgreSQL: bounds, and pages of a tenant's own log and, by licence, of the network log.

Pages of ordinary events are read by one statement; if one is large, the page is limited by bytes. Each node returns the bounds of its logs.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, LiteralString

from adapters.postgres.events import BLOCK, SQL, bounds_of, confirmed, new_epoch
from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.stores import ReplicatedStore, rendered, tenant_values
from domain.changes.model import NETWORK, NETWORK_GROUPS, OPEN_END, EventBatch, EventFilter, LogBounds, View
from domain.changes.ports import Grant, Recent, Splice
from domain.events.model import OFF_THE_FEED, LoggedEvent, LogPosition, weight_of, within
from domain.kernel.bounds import CHANGES_BYTES, PROCESS_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant

_ORDINARY = 4 << 10
"""Bytes up to which an event counts as ordinary; nearly all are smaller."""
_UNLIMITED = 1 << 30
"""Value of `share` that exceeds every body."""
_FORWARDS = frozenset({"forwards", "after"})
_BACKWARDS = frozenset({"backwards", "up_to"})
_TIME = 8
_BODY = 9
_STEPS = (2, 8, 32)
"""Numbers of blocks per step; a page of rare events reads the next step if the previous one had too few events."""
WINDOW = 2_000
"""Number of events of the network log that are read at once, before the check of licences."""


def _conditions(wanted: EventFilter, after: LogPosition) -> tuple[frozenset[str], dict[str, Any]]:
    """Return the names of the optional lines that a filter and a position require, and their parameters."""
    values: dict[str, Any] = {}
    if wanted.types is not None:
        values["types"] = sorted(wanted.types)
    if not wanted.everything:
        values["hidden"] = list(OFF_THE_FEED)
    if wanted.catalogues is not None:
        values["catalogues"] = sorted(wanted.catalogues)
    if after.since is not None:
        values["since"] = after.since
    return frozenset(values), values | {"after": after.position, "at": after.time}


def _share_of(limit: int, most_bytes: int) -> int:
    """Return the maximum bytes of a body for the simple statement; if a body is larger, the page is limited by bytes."""
    return max(most_bytes // max(limit, 1), _ORDINARY)


def _own_statement(
    wanted: EventFilter, after: LogPosition, limit: int, most_bytes: int
) -> tuple[LiteralString, dict[str, Any]]:
    """Return the statement for a tenant's own events after a position, and its parameters."""
    names, values = _conditions(wanted, after)
    return rendered(SQL["own"], names | _FORWARDS, limit), values | {"share": _share_of(limit, most_bytes)}


def _is_full(events: Sequence[LoggedEvent], limit: int, most_bytes: int) -> bool:
    return len(events) >= limit or weight_of(events) >= most_bytes


def _page_end(position: LogPosition, end: LogPosition, *, whole: bool) -> LogPosition:
    """Return the position after a page: the known end of the log if the page reaches it, else that of the last event."""
    return end if whole and position.position <= end.position < OPEN_END else position


class _Log:
    """Log on a connection to its node."""

    def __init__(self, link: PooledConnection, log: Tenant) -> None:
        self._link, self._log = link, log

    async def rows(self, sql: LiteralString, **values: Any) -> list[Fetched]:
        """Return the rows of a statement, with the log's tenant as parameters."""
        return await (await self._link.cursor.execute(sql, values | tenant_values(self._log))).fetchall()

    async def watermark(self, name: str) -> int:
        """Return the low or high watermark."""
        rows = await self.rows(SQL[name])
        return int(rows[0][0]) if rows else 0

    async def stands(self, after: LogPosition) -> bool:
        """Return whether the event at the position still has the position's time; True if that is unknown."""
        return after.time is None or bool((await self.rows(SQL["same"], after=after.position, at=after.time))[0][0])

    async def weighed(
        self, chosen: LiteralString, values: dict[str, Any], most_bytes: int, direction: int = 1
    ) -> list[LoggedEvent]:
        """Return the events of a page up to the one that reaches the byte limit."""
        params = values | {"share": _UNLIMITED, "most_bytes": most_bytes, "direction": direction}
        return [LoggedEvent(*row[1:]) for row in await self.rows(SQL["weighed"].replace("{chosen}", chosen), **params)]

    async def page(
        self, chosen: LiteralString, values: dict[str, Any], limit: int, most_bytes: int, direction: int = 1
    ) -> list[LoggedEvent]:
        """Return the events of a page within both limits."""
        params = values | {"share": _share_of(limit, most_bytes)}
        rows = await self.rows(SQL["plain"].replace("{chosen}", chosen), **params)
        if any(row[-1] is None for row in rows):
            return await self.weighed(chosen, params, most_bytes, direction)
        return [LoggedEvent(*row[1:]) for row in rows]


class _FilteredReader:
    """Reader of filtered pages of a tenant's own log; a page reads at most 42 blocks, chosen by the index of blocks."""

    def __init__(self, log: _Log, wanted: EventFilter, limit: int, most_bytes: int) -> None:
        self._log, self._wanted = log, wanted
        self._limit, self._most_bytes = limit, most_bytes
        self._found: list[LoggedEvent] = []

    async def page(self, after: LogPosition, end: LogPosition) -> EventBatch:
        names, values = _conditions(self._wanted, after)
        reached, count, last = after.position, 0, end.position
        if last >= OPEN_END:
            last = await self._log.watermark("high_watermark")
        for most_blocks in _STEPS:
            most = self._estimate_blocks(most_blocks, count)
            blocks = await self._blocks(reached // BLOCK, most, "forwards")
            await self._read(blocks, names | _FORWARDS | {"up_to"}, values | {"after": reached, "up_to": last})
            whole = len(blocks) < most
            if self._is_full or whole:
                break
            reached, count = (blocks[-1] + 1) * BLOCK, count + len(blocks)
        if self._is_full:
            return EventBatch(self._found, after.behind(self._found[-1]), caught_up=False)
        if whole or reached >= last:
            position = after.behind(self._found[-1]) if self._found else after
            return EventBatch(self._found, _page_end(position, end, whole=True), caught_up=True)
        return EventBatch(self._found, await self._position_at(after, reached), caught_up=False)

    async def recent(self, before: int) -> Recent:
        names, values = _conditions(self._wanted, LogPosition())
        for most in _STEPS:
            blocks = await self._blocks((before - 2) // BLOCK, most, "backwards")
            await self._read(blocks, names | _BACKWARDS, values | {"up_to": before - 1})
            if self._is_full:
                return Recent(self._found, self._found[-1].position)
            if len(blocks) < most or blocks[-1] == 0:
                return Recent(self._found, 1)
            before = blocks[-1] * BLOCK + 1
        return Recent(self._found, before)

    @property
    def _is_full(self) -> bool:
        return _is_full(self._found, self._limit, self._most_bytes)

    def _estimate_blocks(self, most: int, count: int) -> int:
        """Estimate the number of blocks that complete the page from the density so far, since all events of the blocks are sorted."""
        events = len(self._found)
        return min(most, -(-(self._limit - events) * count // events) + 1) if events else most

    async def _position_at(self, after: LogPosition, position: int) -> LogPosition:
        """Return the log position of the event there, which need not match the filter."""
        names, values = _conditions(EventFilter(everything=True), after)
        chosen = rendered(SQL["own"], names | {"positions", "forwards"}, 1)
        rows = await self._log.rows(chosen, **values | {"positions": [position], "share": 0})
        return LogPosition(after.epoch, position, rows[0][_TIME] if rows else None)

    async def _blocks(self, block: int, most: int, direction: str) -> Sequence[int]:
        terms = self._wanted.types if self._wanted.types is not None else self._wanted.catalogues
        statement = rendered(SQL["blocks"], frozenset({direction}), most)
        return [block for (block,) in await self._log.rows(statement, terms=sorted(terms or ()), block=block)]

    async def _read(self, blocks: Sequence[int], names: frozenset[str], values: dict[str, Any]) -> None:
        """Append the events of the blocks, up to the page's limits."""
        if blocks:
            limit, most_bytes = self._limit - len(self._found), self._most_bytes - weight_of(self._found)
            chosen, direction = rendered(SQL["own_in_blocks"], names, limit), 1 if "forwards" in names else -1
            values |= {"blocks": list(blocks)}
            self._found += await self._log.page(chosen, values, limit, most_bytes, direction)


class _NetworkReader:
    """Reader of pages of the network log by the reader's licences; the cost does not depend on the number of licences."""

    def __init__(self, log: _Log, view: View, limit: int, most_bytes: int) -> None:
        self._log, self._view = log, view
        self._limit, self._most_bytes = limit, most_bytes
        self._window = max(WINDOW, limit)

    async def page(self, after: LogPosition, end: LogPosition, wanted: EventFilter) -> EventBatch:
        names, values = _conditions(wanted, after)
        rows, events = await self._read_window(names | _FORWARDS, values)
        same, reached, dated, scanned, *_ = rows[0]
        if not same and after.time is not None and await self._log.watermark("low_watermark") != after.position:
            raise CursorExpired
        if _is_full(events, self._limit, self._most_bytes):
            return EventBatch(events, after.behind(events[-1]), caught_up=False)
        whole = scanned < self._window
        position = LogPosition(after.epoch, reached, dated) if reached else after
        return EventBatch(events, _page_end(position, end, whole=whole), caught_up=whole)

    async def recent(self, before: int, wanted: EventFilter) -> Recent:
        names, values = _conditions(wanted, LogPosition())
        rows, events = await self._read_window(names | _BACKWARDS, values | {"up_to": before - 1})
        if _is_full(events, self._limit, self._most_bytes):
            return Recent(events, events[-1].position)
        _, reached, _, scanned, *_ = rows[0]
        return Recent(events, 1 if scanned < self._window else reached)

    async def at(self, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        values = {"after": min(positions) - 1, "up_to": max(positions), "positions": list(positions), "at": None}
        return (await self._read_window(_FORWARDS | {"positions", "up_to"}, values))[1]

    async def _read_window(
        self, names: frozenset[str], values: dict[str, Any]
    ) -> tuple[list[Fetched], Sequence[LoggedEvent]]:
        """Return the rows of a window and their events; large bodies are read one by one up to the page's limit."""
        sql = rendered(SQL["network"], names, self._limit).replace("{window}", str(self._window))
        holder = self._view.tenant.org
        reader = {"holder": holder, "holders": [holder, "*"], "share": _share_of(self._limit, self._most_bytes)}
        rows = await self._log.rows(sql, **values | reader)
        events, weight = [], 0
        for row in [row[4:] for row in rows if row[4] is not None]:
            body = row[_BODY]
            if body is None:
                bodies = await self._log.rows(SQL["network_body"], position=row[0])
                body = bodies[0][0] if bodies else b""
            events.append(LoggedEvent(*(*row[:_BODY], body, NETWORK_GROUPS.union(row[-1]))))
            weight += len(body)
            if weight >= self._most_bytes:
                break
        return rows, within(events, self._limit, self._most_bytes)


class PostgresEventReader(ReplicatedStore):
    """Event reader: the own log under row-level security, the network log by licences."""

    _sql = SQL

    async def bounds(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        return await bounds_of(self._pool, logs, SQL["bounds"], missing=LogBounds())

    async def confirmed(self, log: Tenant) -> LogBounds:
        return await confirmed(self._pool, log)

    async def begin_epoch(self, log: Tenant, after: LogPosition) -> None:
        values = {"after": after.epoch, "position": after.position, "epoch": new_epoch()}
        await self._pool.run(log, SQL["begin_epoch"], tenant_values(log) | values)

    async def licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        orgs, livemodes = [tenant.org for tenant in tenants], [tenant.livemode for tenant in tenants]
        return frozenset(Tenant(*row) for row in await self._rows("licensed", orgs=orgs, livemodes=livemodes))

    async def grants(self, log: Tenant, after: int, up_to: int, tenants: Collection[Tenant]) -> Sequence[Grant]:
        holders = [*sorted({tenant.org for tenant in tenants}), "*"]
        async with self._network_log(log) as network:
            rows = await network.rows(SQL["grants"], after=after, up_to=up_to, holders=holders)
        return [Grant(position, owner, holder, frozenset(groups)) for position, owner, holder, groups in rows]

    @asynccontextmanager
    async def _own_log(self, log: Tenant) -> AsyncIterator[_Log]:
        async with self._pool.tenant(log) as link:
            yield _Log(link, log)

    @asynccontextmanager
    async def _network_log(self, log: Tenant) -> AsyncIterator[_Log]:
        async with self._pool.at(await self._pool.router.home(NETWORK)) as link:
            yield _Log(link, log)

    async def page(
        self,
        view: View,
        after: LogPosition,
        end: LogPosition,
        limit: int,
        wanted: EventFilter,
        *,
        most_bytes: int = CHANGES_BYTES,
    ) -> EventBatch:
        if view.of_network:
            async with self._network_log(view.log) as log:
                return await _NetworkReader(log, view, limit, most_bytes).page(after, end, wanted)
        if wanted.narrow:
            async with self._own_log(view.log) as log:
                same = await log.stands(after)
                batch = await _FilteredReader(log, wanted, limit, most_bytes).page(after, end)
        else:
            same, batch = await self._unfiltered_page(view.log, after, end, limit, wanted, most_bytes)
        if not same:
            await self._check_dropped(view.log, after)
        return batch

    async def _unfiltered_page(
        self, log: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter, most_bytes: int
    ) -> tuple[bool, EventBatch]:
        """Return an unfiltered page, and whether the event that it starts after is unchanged."""
        chosen, values = _own_statement(wanted, after, limit, most_bytes)
        async with self._own_log(log) as own:
            rows = await own.rows(SQL["page"].replace("{chosen}", chosen), **values)
            same = bool(rows[0][0]) if rows else await own.stands(after)
            if any(row[-1] is None for row in rows):
                events = await own.weighed(chosen, values, most_bytes)
            else:
                events = [LoggedEvent(*row[1:]) for row in rows]
        whole = not _is_full(events, limit, most_bytes)
        position = after.behind(events[-1]) if events else after
        return same, EventBatch(events, _page_end(position, end, whole=whole), caught_up=whole)

    async def _check_dropped(self, log: Tenant, after: LogPosition) -> None:
        """Raise CursorExpired unless exactly the events up to a position with a time were dropped by age."""
        if after.time is not None and (await self.confirmed(log)).low != after.position:
            raise CursorExpired

    async def recent(self, view: View, before: int, limit: int, wanted: EventFilter) -> Recent:
        if view.of_network:
            async with self._network_log(view.log) as log:
                return await _NetworkReader(log, view, limit, CHANGES_BYTES).recent(before, wanted)
        async with self._own_log(view.log) as log:
            if wanted.narrow:
                return await _FilteredReader(log, wanted, limit, CHANGES_BYTES).recent(before)
            names, values = _conditions(wanted, LogPosition())
            chosen = rendered(SQL["own"], names | _BACKWARDS, limit)
            events = await log.page(chosen, values | {"up_to": before - 1}, limit, CHANGES_BYTES, direction=-1)
        return Recent(events, events[-1].position if _is_full(events, limit, CHANGES_BYTES) else 1)

    async def splice(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> Splice:
        if wanted.narrow:
            return _splice_of(await self.page(View.own(tenant), after, end, limit, wanted))
        chosen, values = _own_statement(wanted, after, limit, CHANGES_BYTES)
        async with self._own_log(tenant) as log:
            rows = await log.rows(SQL["splice"].replace("{chosen}", chosen), **values)
            values["last"] = rows[-1][0] if rows else None
            [(same, time)] = await log.rows(SQL["spliced"], **values)
        bodies = [body for _, body in rows]
        if None in bodies:
            return _splice_of(await self.page(View.own(tenant), after, end, limit, wanted))
        if not same:
            await self._check_dropped(tenant, after)
        body = b",".join(bodies)
        whole = len(rows) < limit and len(body) < CHANGES_BYTES
        last = LogPosition(after.epoch, values["last"], time) if rows else after
        return Splice(len(rows), _page_end(last, end, whole=whole), body, caught_up=whole)

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        if view.of_network:
            if not positions:
                return []
            async with self._network_log(view.log) as log:
                return await _NetworkReader(log, view, len(positions), PROCESS_BYTES).at(positions)
        values = {"positions": list(positions), "share": _UNLIMITED}
        return await self._plain(view.log, {"positions", "forwards"}, values, len(positions), 1)

    async def later(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        values = {"after": after, "subject": subject, "share": _ORDINARY}
        return await self._plain(tenant, {"subject", "after", "backwards"}, values, limit, -1)

    async def of_products(
        self, tenant: Tenant, products: Collection[str], after: int, limit: int
    ) -> Sequence[LoggedEvent]:
        values = {"after": after, "products": list(products), "share": _ORDINARY}
        return await self._plain(tenant, {"products", "after", "backwards"}, values, limit, -1)

    async def counts(self, tenant: Tenant, after: int, since: datetime) -> Mapping[str, int]:
        async with self._own_log(tenant) as log:
            return dict(await log.rows(SQL["counts"], after=after, since=since))

    async def _plain(
        self, log: Tenant, names: set[str], values: dict[str, Any], limit: int, direction: int
    ) -> list[LoggedEvent]:
        async with self._own_log(log) as own:
            return await own.weighed(rendered(SQL["own"], frozenset(names), limit), values, PROCESS_BYTES, direction)


def _splice_of(batch: EventBatch) -> Splice:
    body = b",".join(event.body for event in batch.events)
    return Splice(len(batch.events), batch.position, body, batch.caught_up)
