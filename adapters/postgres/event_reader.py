"""Reading event logs in PostgreSQL: how far they go, pages of a tenant's own log and of the network's, and what licences show of that.

Bodies are read at once where they are ordinary, else weighed first. The bounds of logs are read on each node for those that it holds.
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
"""Bytes up to which an event is read whatever its share: nearly all are smaller."""
_WHATEVER = 1 << 30
"""A share that every body fits into."""
_FORWARDS = frozenset({"forwards", "after"})
_BACKWARDS = frozenset({"backwards", "up_to"})
_TIME = 8
_BODY = 9
_LOOKS = (2, 8, 32)
"""Blocks that are read one step after the other until there are enough events: rare events have a block to themselves."""
WINDOW = 2_000
"""Events of the network's log that are read at once, whoever may see them."""


def _narrowed(wanted: EventFilter, after: LogPosition) -> tuple[frozenset[str], dict[str, Any]]:
    """Return the optional lines of a statement that a filter and a position need, and their parameters."""
    given: dict[str, Any] = {}
    if wanted.types is not None:
        given["types"] = sorted(wanted.types)
    if not wanted.everything:
        given["hidden"] = list(OFF_THE_FEED)
    if wanted.catalogues is not None:
        given["catalogues"] = sorted(wanted.catalogues)
    if after.since is not None:
        given["since"] = after.since
    return frozenset(given), given | {"after": after.position, "at": after.time}


def _share_of(limit: int, most_bytes: int) -> int:
    """Return how large a body may be to be read at once; where any is larger, all are weighed."""
    return max(most_bytes // max(limit, 1), _ORDINARY)


def _following(
    wanted: EventFilter, after: LogPosition, limit: int, most_bytes: int
) -> tuple[LiteralString, dict[str, Any]]:
    """Return the statement for a tenant's own events behind a position, and its parameters."""
    names, values = _narrowed(wanted, after)
    return rendered(SQL["own"], names | _FORWARDS, limit), values | {"share": _share_of(limit, most_bytes)}


def _is_full(events: Sequence[LoggedEvent], limit: int, most_bytes: int) -> bool:
    return len(events) >= limit or weight_of(events) >= most_bytes


def _furthest(position: LogPosition, end: LogPosition, *, whole: bool) -> LogPosition:
    """Return how far a page has come: to the end that was known before, or beyond."""
    return end if whole and position.position <= end.position < OPEN_END else position


class _Log:
    """A log, on a connection to its node."""

    def __init__(self, link: PooledConnection, log: Tenant) -> None:
        self._link, self._log = link, log

    async def rows(self, sql: LiteralString, **values: Any) -> list[Fetched]:
        """Return the rows of a statement about the log."""
        return await (await self._link.cursor.execute(sql, values | tenant_values(self._log))).fetchall()

    async def watermark(self, name: str) -> int:
        """Return the low or high watermark."""
        rows = await self.rows(SQL[name])
        return int(rows[0][0]) if rows else 0

    async def stands(self, after: LogPosition) -> bool:
        """Return whether the event at that position is the one of that time, if one is known."""
        return after.time is None or bool((await self.rows(SQL["same"], after=after.position, at=after.time))[0][0])

    async def weighed(
        self, chosen: LiteralString, values: dict[str, Any], most_bytes: int, direction: int = 1
    ) -> list[LoggedEvent]:
        """Return the events of a page up to the one that reaches the weight."""
        given = values | {"share": _WHATEVER, "most_bytes": most_bytes, "direction": direction}
        return [LoggedEvent(*row[1:]) for row in await self.rows(SQL["weighed"].replace("{chosen}", chosen), **given)]

    async def page(
        self, chosen: LiteralString, values: dict[str, Any], limit: int, most_bytes: int, direction: int = 1
    ) -> list[LoggedEvent]:
        """Return the events of a page, at most so many and so heavy."""
        given = values | {"share": _share_of(limit, most_bytes)}
        rows = await self.rows(SQL["plain"].replace("{chosen}", chosen), **given)
        if any(row[-1] is None for row in rows):
            return await self.weighed(chosen, given, most_bytes, direction)
        return [LoggedEvent(*row[1:]) for row in rows]


class _FilteredReading:
    """Pages of a tenant's own log of what a filter selects: at most some forty blocks are read that may have such events."""

    def __init__(self, log: _Log, wanted: EventFilter, limit: int, most_bytes: int) -> None:
        self._log, self._wanted = log, wanted
        self._limit, self._most_bytes = limit, most_bytes
        self._found: list[LoggedEvent] = []

    async def page(self, after: LogPosition, end: LogPosition) -> EventBatch:
        names, values = _narrowed(self._wanted, after)
        reached, looked, last = after.position, 0, end.position
        if last >= OPEN_END:
            last = await self._log.watermark("high_watermark")
        for most_blocks in _LOOKS:
            most = self._enough(most_blocks, looked)
            blocks = await self._blocks(reached // BLOCK, most, "forwards")
            await self._look(blocks, names | _FORWARDS | {"up_to"}, values | {"after": reached, "up_to": last})
            whole = len(blocks) < most
            if self._full or whole:
                break
            reached, looked = (blocks[-1] + 1) * BLOCK, looked + len(blocks)
        if self._full:
            return EventBatch(self._found, after.behind(self._found[-1]), caught_up=False)
        if whole or reached >= last:
            position = after.behind(self._found[-1]) if self._found else after
            return EventBatch(self._found, _furthest(position, end, whole=True), caught_up=True)
        return EventBatch(self._found, await self._behind(after, reached), caught_up=False)

    async def recent(self, before: int) -> Recent:
        names, values = _narrowed(self._wanted, LogPosition())
        for most in _LOOKS:
            blocks = await self._blocks((before - 2) // BLOCK, most, "backwards")
            await self._look(blocks, names | _BACKWARDS, values | {"up_to": before - 1})
            if self._full:
                return Recent(self._found, self._found[-1].position)
            if len(blocks) < most or blocks[-1] == 0:
                return Recent(self._found, 1)
            before = blocks[-1] * BLOCK + 1
        return Recent(self._found, before)

    @property
    def _full(self) -> bool:
        return _is_full(self._found, self._limit, self._most_bytes)

    def _enough(self, most: int, looked: int) -> int:
        """Estimate how many blocks hold what is still wanted, if it is as dense as until now: all that is read is sorted."""
        found = len(self._found)
        return min(most, -(-(self._limit - found) * looked // found) + 1) if found else most

    async def _behind(self, after: LogPosition, position: int) -> LogPosition:
        """Return the position behind the event there, which the filter need not select."""
        names, values = _narrowed(EventFilter(everything=True), after)
        chosen = rendered(SQL["own"], names | {"positions", "forwards"}, 1)
        rows = await self._log.rows(chosen, **values | {"positions": [position], "share": 0})
        return LogPosition(after.epoch, position, rows[0][_TIME] if rows else None)

    async def _blocks(self, block: int, most: int, direction: str) -> Sequence[int]:
        terms = self._wanted.types if self._wanted.types is not None else self._wanted.catalogues
        statement = rendered(SQL["blocks"], frozenset({direction}), most)
        return [block for (block,) in await self._log.rows(statement, terms=sorted(terms or ()), block=block)]

    async def _look(self, blocks: Sequence[int], names: frozenset[str], values: dict[str, Any]) -> None:
        """Read the events in these blocks, as far as there is room for them."""
        if blocks:
            limit, most_bytes = self._limit - len(self._found), self._most_bytes - weight_of(self._found)
            chosen, direction = rendered(SQL["own_in_blocks"], names, limit), 1 if "forwards" in names else -1
            values |= {"blocks": list(blocks)}
            self._found += await self._log.page(chosen, values, limit, most_bytes, direction)


class _NetworkReading:
    """Pages of the network's logs, as much as the reader's licences show; the cost does not depend on how many licences there are."""

    def __init__(self, log: _Log, view: View, limit: int, most_bytes: int) -> None:
        self._log, self._view = log, view
        self._limit, self._most_bytes = limit, most_bytes
        self._window = max(WINDOW, limit)

    async def page(self, after: LogPosition, end: LogPosition, wanted: EventFilter) -> EventBatch:
        names, values = _narrowed(wanted, after)
        rows, events = await self._look(names | _FORWARDS, values)
        same, reached, dated, scanned, *_ = rows[0]
        if not same and after.time is not None and await self._log.watermark("low_watermark") != after.position:
            raise CursorExpired
        if _is_full(events, self._limit, self._most_bytes):
            return EventBatch(events, after.behind(events[-1]), caught_up=False)
        whole = scanned < self._window
        position = LogPosition(after.epoch, reached, dated) if reached else after
        return EventBatch(events, _furthest(position, end, whole=whole), caught_up=whole)

    async def recent(self, before: int, wanted: EventFilter) -> Recent:
        names, values = _narrowed(wanted, LogPosition())
        rows, events = await self._look(names | _BACKWARDS, values | {"up_to": before - 1})
        if _is_full(events, self._limit, self._most_bytes):
            return Recent(events, events[-1].position)
        _, reached, _, scanned, *_ = rows[0]
        return Recent(events, 1 if scanned < self._window else reached)

    async def at(self, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        span = {"after": min(positions) - 1, "up_to": max(positions), "positions": list(positions), "at": None}
        return (await self._look(_FORWARDS | {"positions", "up_to"}, span))[1]

    async def _look(self, names: frozenset[str], values: dict[str, Any]) -> tuple[list[Fetched], Sequence[LoggedEvent]]:
        """Return the rows of a window and their events; bodies that were left out are read as far as there is room for them."""
        sql = rendered(SQL["network"], names, self._limit).replace("{window}", str(self._window))
        holder = self._view.tenant.org
        reader = {"holder": holder, "holders": [holder, "*"], "share": _share_of(self._limit, self._most_bytes)}
        rows = await self._log.rows(sql, **values | reader)
        events, weight = [], 0
        for row in [row[4:] for row in rows if row[4] is not None]:
            body = row[_BODY]
            if body is None:
                left = await self._log.rows(SQL["network_body"], position=row[0])
                body = left[0][0] if left else b""
            events.append(LoggedEvent(*(*row[:_BODY], body, NETWORK_GROUPS.union(row[-1]))))
            weight += len(body)
            if weight >= self._most_bytes:
                break
        return rows, within(events, self._limit, self._most_bytes)


class PostgresEventReader(ReplicatedStore):
    """Own rows behind one's own row-level security, the network's by the licences that their owners gave."""

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
        async with self._network_log(log) as found:
            rows = await found.rows(SQL["grants"], after=after, up_to=up_to, holders=holders)
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
                return await _NetworkReading(log, view, limit, most_bytes).page(after, end, wanted)
        if wanted.narrow:
            async with self._own_log(view.log) as log:
                same = await log.stands(after)
                batch = await _FilteredReading(log, wanted, limit, most_bytes).page(after, end)
        else:
            same, batch = await self._all(view.log, after, end, limit, wanted, most_bytes)
        if not same:
            await self._refuse_lost(view.log, after)
        return batch

    async def _all(
        self, log: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter, most_bytes: int
    ) -> tuple[bool, EventBatch]:
        """Return a page of everything, and whether the event behind which it begins stands where it stood."""
        chosen, values = _following(wanted, after, limit, most_bytes)
        async with self._own_log(log) as own:
            rows = await own.rows(SQL["page"].replace("{chosen}", chosen), **values)
            same = bool(rows[0][0]) if rows else await own.stands(after)
            if any(row[-1] is None for row in rows):
                events = await own.weighed(chosen, values, most_bytes)
            else:
                events = [LoggedEvent(*row[1:]) for row in rows]
        whole = not _is_full(events, limit, most_bytes)
        position = after.behind(events[-1]) if events else after
        return same, EventBatch(events, _furthest(position, end, whole=whole), caught_up=whole)

    async def _refuse_lost(self, log: Tenant, after: LogPosition) -> None:
        """Raise CursorExpired unless the event at a dated position, and nothing beyond it, was dropped by age."""
        if after.time is not None and (await self.confirmed(log)).low != after.position:
            raise CursorExpired

    async def recent(self, view: View, before: int, limit: int, wanted: EventFilter) -> Recent:
        if view.of_network:
            async with self._network_log(view.log) as log:
                return await _NetworkReading(log, view, limit, CHANGES_BYTES).recent(before, wanted)
        async with self._own_log(view.log) as log:
            if wanted.narrow:
                return await _FilteredReading(log, wanted, limit, CHANGES_BYTES).recent(before)
            names, values = _narrowed(wanted, LogPosition())
            chosen = rendered(SQL["own"], names | _BACKWARDS, limit)
            events = await log.page(chosen, values | {"up_to": before - 1}, limit, CHANGES_BYTES, direction=-1)
        return Recent(events, events[-1].position if _is_full(events, limit, CHANGES_BYTES) else 1)

    async def splice(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> Splice:
        if wanted.narrow:
            return _joined(await self.page(View.own(tenant), after, end, limit, wanted))
        chosen, values = _following(wanted, after, limit, CHANGES_BYTES)
        async with self._own_log(tenant) as log:
            rows = await log.rows(SQL["splice"].replace("{chosen}", chosen), **values)
            values["last"] = rows[-1][0] if rows else None
            [(same, time)] = await log.rows(SQL["spliced"], **values)
        bodies = [body for _, body in rows]
        if None in bodies:
            return _joined(await self.page(View.own(tenant), after, end, limit, wanted))
        if not same:
            await self._refuse_lost(tenant, after)
        body = b",".join(bodies)
        whole = len(rows) < limit and len(body) < CHANGES_BYTES
        last = LogPosition(after.epoch, values["last"], time) if rows else after
        return Splice(len(rows), _furthest(last, end, whole=whole), body, caught_up=whole)

    async def at(self, view: View, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        if view.of_network:
            if not positions:
                return []
            async with self._network_log(view.log) as log:
                return await _NetworkReading(log, view, len(positions), PROCESS_BYTES).at(positions)
        values = {"positions": list(positions), "share": _WHATEVER}
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


def _joined(batch: EventBatch) -> Splice:
    body = b",".join(event.body for event in batch.events)
    return Splice(len(batch.events), batch.position, body, batch.caught_up)
