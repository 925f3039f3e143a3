"""Reading of event logs in PostgreSQL: bounds, pages of a tenant's log, and pages of the network log.

The network log contains the events of all published catalogues; a reader receives only the events that its licences
cover.

One SQL statement reads a page of events of ordinary size. If the page contains a large event, the page is read again
with a limit in bytes. Each node returns the bounds of its logs.
"""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, LiteralString

from adapters.postgres.event_log import POSITIONS_PER_BLOCK, SQL, generate_epoch, read_bounds, read_current_bounds
from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.stores import ReferenceTableReader, build_tenant_params, render_statement
from domain.catalogue.licences import NETWORK_GROUPS
from domain.changes.model import NETWORK, OPEN_END, EventBatch, EventFilter, LogBounds, LogView
from domain.changes.ports import EventPermission, JoinedEvents, RecentEvents
from domain.events.model import OFF_THE_FEED, LoggedEvent, LogPosition, limit_events, sum_body_bytes
from domain.kernel.bounds import CHANGES_BYTES, PROCESS_BYTES
from domain.kernel.errors import CursorExpired
from domain.kernel.tenancy import Tenant

_MAX_ORDINARY_BYTES = 4 << 10
"""Maximum bytes of the body of an ordinary event; nearly all events are smaller.

A page of ordinary events is never read again with a limit in bytes.
"""
_NO_BODY_LIMIT = 1 << 30
"""Value of the statement parameter `max_body_bytes` that no event's body exceeds."""
_FORWARDS = frozenset({"forwards", "after"})
_BACKWARDS = frozenset({"backwards", "up_to"})
_TIME = 8
_BODY = 9
_BLOCKS_PER_STEP = (2, 8, 32)
"""Maximum numbers of blocks that the first, second and third step of a page read, if the page is not full before.

A block consists of POSITIONS_PER_BLOCK consecutive positions of a log.
"""
NETWORK_SCAN_LIMIT = 2_000
"""Number of events of the network log that one query reads before it checks licences."""


def _build_conditions(event_filter: EventFilter, after: LogPosition) -> tuple[frozenset[str], dict[str, Any]]:
    """Return the names of the optional SQL lines for a filter and a start position, and the parameters of the lines.

    `render_statement` includes the named lines. The parameters always contain the number (`after`) and the time (`at`)
    of the start position.
    """
    values: dict[str, Any] = {}
    if event_filter.types is not None:
        values["types"] = sorted(event_filter.types)
    if not event_filter.includes_webhook_types:
        values["hidden"] = list(OFF_THE_FEED)
    if event_filter.catalogues is not None:
        values["catalogues"] = sorted(event_filter.catalogues)
    if after.earliest_later_time is not None:
        values["since"] = after.earliest_later_time
    return frozenset(values), values | {"after": after.position, "at": after.time}


def _compute_max_body_bytes(limit: int, max_page_bytes: int) -> int:
    """Return the maximum bytes of an event's body that a statement without a byte limit for the page returns.

    If a body is larger, the page is read again by a statement with the byte limit.

    Args:
        limit: Maximum number of events of the page.
        max_page_bytes: Maximum size of the page in bytes.
    """
    return max(max_page_bytes // max(limit, 1), _MAX_ORDINARY_BYTES)


def _build_own_log_statement(
    event_filter: EventFilter, after: LogPosition, limit: int, max_page_bytes: int
) -> tuple[LiteralString, dict[str, Any]]:
    """Return the statement for the events after a position in the log of a tenant, and the statement's parameters."""
    names, values = _build_conditions(event_filter, after)
    return render_statement(SQL["select_events"], names | _FORWARDS, limit), values | {
        "max_body_bytes": _compute_max_body_bytes(limit, max_page_bytes)
    }


def _is_full(events: Sequence[LoggedEvent], limit: int, max_page_bytes: int) -> bool:
    return len(events) >= limit or sum_body_bytes(events) >= max_page_bytes


def _find_page_end(position: LogPosition, end: LogPosition, *, reaches_end: bool) -> LogPosition:
    """Return the position after a page: `end` if the page reaches it, else the position of the page's last event.

    Args:
        position: Position of the page's last event.
        end: Known end of the log.
        reaches_end: Whether the page contains all events up to `end`.
    """
    return end if reaches_end and position.position <= end.position < OPEN_END else position


class _LogConnection:
    """Event log that is read over a connection to the log's node."""

    def __init__(self, connection: PooledConnection, log: Tenant) -> None:
        self._connection, self._log = connection, log

    async def fetch_rows(self, sql: LiteralString, **values: Any) -> list[DatabaseRow]:
        """Execute an SQL statement with the log's tenant among the parameters, and return its rows."""
        return await (await self._connection.cursor.execute(sql, values | build_tenant_params(self._log))).fetchall()

    async def read_watermark(self, statement: str) -> int:
        """Return a watermark of the log, or 0 for a log without a row.

        `statement` is `get_low_watermark` or `get_high_watermark`.
        """
        rows = await self.fetch_rows(SQL[statement])
        return int(rows[0][0]) if rows else 0

    async def has_same_event(self, after: LogPosition) -> bool:
        """Return whether the event at a position is still the event that was there when the position was issued.

        The time in the position identifies the event, because a restored log may have another event at the position.
        Returns True for a position without a time.
        """
        return after.time is None or bool(
            (await self.fetch_rows(SQL["has_event_at"], after=after.position, at=after.time))[0][0]
        )

    async def read_page_by_bytes(
        self, selection: LiteralString, values: dict[str, Any], max_page_bytes: int, direction: int = 1
    ) -> list[LoggedEvent]:
        """Return the events of a page, up to and including the event that reaches the byte limit.

        Args:
            selection: Statement that selects the events of the page.
            values: Parameters of the statement.
            max_page_bytes: Size in bytes at which the page ends.
            direction: 1 for ascending positions, -1 for descending ones.
        """
        params = values | {"max_body_bytes": _NO_BODY_LIMIT, "max_page_bytes": max_page_bytes, "direction": direction}
        return [
            LoggedEvent(*row[1:])
            for row in await self.fetch_rows(SQL["read_within_bytes"].replace("{selection}", selection), **params)
        ]

    async def read_page(
        self, selection: LiteralString, values: dict[str, Any], limit: int, max_page_bytes: int, direction: int = 1
    ) -> list[LoggedEvent]:
        """Return the events of a page within both limits.

        Args:
            selection: Statement that selects the events of the page.
            values: Parameters of the statement.
            limit: Maximum number of events.
            max_page_bytes: Size in bytes at which the page ends.
            direction: 1 for ascending positions, -1 for descending ones.
        """
        params = values | {"max_body_bytes": _compute_max_body_bytes(limit, max_page_bytes)}
        rows = await self.fetch_rows(SQL["read_envelopes"].replace("{selection}", selection), **params)
        if any(row[-1] is None for row in rows):
            return await self.read_page_by_bytes(selection, params, max_page_bytes, direction)
        return [LoggedEvent(*row[1:]) for row in rows]


class _FilteredReader:
    """Reader of one filtered page of a tenant's log.

    The table event_log_terms lists the blocks with the filter's event types or catalogues. The page ends after 42 such
    blocks, even if the page is not full.
    """

    def __init__(self, log: _LogConnection, wanted: EventFilter, limit: int, max_page_bytes: int) -> None:
        self._log, self._wanted = log, wanted
        self._limit, self._max_page_bytes = limit, max_page_bytes
        self._found: list[LoggedEvent] = []

    async def read_page(self, after: LogPosition, end: LogPosition) -> EventBatch:
        names, values = _build_conditions(self._wanted, after)
        last_read, blocks_read, last_position = after.position, 0, end.position
        if last_position >= OPEN_END:
            last_position = await self._log.read_watermark("get_high_watermark")
        for max_blocks in _BLOCKS_PER_STEP:
            block_limit = self._estimate_blocks(max_blocks, blocks_read)
            blocks = await self._select_blocks(last_read // POSITIONS_PER_BLOCK, block_limit, "forwards")
            await self._read_blocks(
                blocks, names | _FORWARDS | {"up_to"}, values | {"after": last_read, "up_to": last_position}
            )
            reaches_end = len(blocks) < block_limit
            if self._is_full or reaches_end:
                break
            last_read, blocks_read = (blocks[-1] + 1) * POSITIONS_PER_BLOCK, blocks_read + len(blocks)
        if self._is_full:
            return EventBatch(self._found, after.after(self._found[-1]), caught_up=False)
        if reaches_end or last_read >= last_position:
            position = after.after(self._found[-1]) if self._found else after
            return EventBatch(self._found, _find_page_end(position, end, reaches_end=True), caught_up=True)
        return EventBatch(self._found, await self._read_position(after, last_read), caught_up=False)

    async def read_recent(self, before: int) -> RecentEvents:
        names, values = _build_conditions(self._wanted, LogPosition())
        for max_blocks in _BLOCKS_PER_STEP:
            blocks = await self._select_blocks((before - 2) // POSITIONS_PER_BLOCK, max_blocks, "backwards")
            await self._read_blocks(blocks, names | _BACKWARDS, values | {"up_to": before - 1})
            if self._is_full:
                return RecentEvents(self._found, self._found[-1].position)
            if len(blocks) < max_blocks or blocks[-1] == 0:
                return RecentEvents(self._found, 1)
            before = blocks[-1] * POSITIONS_PER_BLOCK + 1
        return RecentEvents(self._found, before)

    @property
    def _is_full(self) -> bool:
        """Whether the page has reached its maximum number of events or bytes."""
        return _is_full(self._found, self._limit, self._max_page_bytes)

    def _estimate_blocks(self, max_blocks: int, blocks_read: int) -> int:
        """Estimate how many further blocks complete the page, from the number of matching events per block so far.

        The estimate should be low, because all events of the selected blocks are sorted.

        Args:
            max_blocks: Maximum of the estimate, which is returned if no event matched so far.
            blocks_read: Number of blocks read so far.
        """
        events = len(self._found)
        return min(max_blocks, -(-(self._limit - events) * blocks_read // events) + 1) if events else max_blocks

    async def _read_position(self, after: LogPosition, number: int) -> LogPosition:
        """Return the position of the event with this number, including its time; the event need not match the filter."""
        names, values = _build_conditions(EventFilter(includes_webhook_types=True), after)
        selection = render_statement(SQL["select_events"], names | {"positions", "forwards"}, 1)
        rows = await self._log.fetch_rows(selection, **values | {"positions": [number], "max_body_bytes": 0})
        return LogPosition(after.epoch, number, rows[0][_TIME] if rows else None)

    async def _select_blocks(self, block: int, limit: int, direction: str) -> Sequence[int]:
        terms = self._wanted.types if self._wanted.types is not None else self._wanted.catalogues
        statement = render_statement(SQL["list_blocks"], frozenset({direction}), limit)
        return [block for (block,) in await self._log.fetch_rows(statement, terms=sorted(terms or ()), block=block)]

    async def _read_blocks(self, blocks: Sequence[int], names: frozenset[str], values: dict[str, Any]) -> None:
        """Read the events of the blocks that match the filter, up to the page's limits, and add them to the page."""
        if blocks:
            limit, max_page_bytes = self._limit - len(self._found), self._max_page_bytes - sum_body_bytes(self._found)
            selection, direction = (
                render_statement(SQL["select_events_in_blocks"], names, limit),
                1 if "forwards" in names else -1,
            )
            values |= {"blocks": list(blocks)}
            self._found += await self._log.read_page(selection, values, limit, max_page_bytes, direction)


class _NetworkReader:
    """Reader of pages of the network log, restricted to the events that the reading tenant's licences cover."""

    def __init__(self, log: _LogConnection, view: LogView, limit: int, max_page_bytes: int) -> None:
        self._log, self._view = log, view
        self._limit, self._max_page_bytes = limit, max_page_bytes
        self._window = max(NETWORK_SCAN_LIMIT, limit)

    async def read_page(self, after: LogPosition, end: LogPosition, wanted: EventFilter) -> EventBatch:
        names, values = _build_conditions(wanted, after)
        rows, events = await self._read_window(names | _FORWARDS, values)
        has_same_event, last_position, last_time, scanned_count, *_ = rows[0]
        if (
            not has_same_event
            and after.time is not None
            and await self._log.read_watermark("get_low_watermark") != after.position
        ):
            raise CursorExpired
        if _is_full(events, self._limit, self._max_page_bytes):
            return EventBatch(events, after.after(events[-1]), caught_up=False)
        reaches_end = scanned_count < self._window
        position = LogPosition(after.epoch, last_position, last_time) if last_position else after
        return EventBatch(events, _find_page_end(position, end, reaches_end=reaches_end), caught_up=reaches_end)

    async def read_recent(self, before: int, wanted: EventFilter) -> RecentEvents:
        names, values = _build_conditions(wanted, LogPosition())
        rows, events = await self._read_window(names | _BACKWARDS, values | {"up_to": before - 1})
        if _is_full(events, self._limit, self._max_page_bytes):
            return RecentEvents(events, events[-1].position)
        _, last_position, _, scanned_count, *_ = rows[0]
        return RecentEvents(events, 1 if scanned_count < self._window else last_position)

    async def read_at(self, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        values = {"after": min(positions) - 1, "up_to": max(positions), "positions": list(positions), "at": None}
        return (await self._read_window(_FORWARDS | {"positions", "up_to"}, values))[1]

    async def _read_window(
        self, names: frozenset[str], values: dict[str, Any]
    ) -> tuple[list[DatabaseRow], Sequence[LoggedEvent]]:
        """Return the rows of the next events of the log, at most the scan limit, and the licensed events among them.

        Large bodies are read one by one, up to the page's byte limit.
        """
        sql = render_statement(SQL["read_network_window"], names, self._limit).replace("{window}", str(self._window))
        holder = self._view.tenant.org
        reader = {
            "holder": holder,
            "holders": [holder, "*"],
            "max_body_bytes": _compute_max_body_bytes(self._limit, self._max_page_bytes),
        }
        rows = await self._log.fetch_rows(sql, **values | reader)
        events, body_bytes = [], 0
        for row in [row[4:] for row in rows if row[4] is not None]:
            body = row[_BODY]
            if body is None:
                bodies = await self._log.fetch_rows(SQL["get_network_body"], position=row[0])
                body = bodies[0][0] if bodies else b""
            events.append(LoggedEvent(*(*row[:_BODY], body, NETWORK_GROUPS.union(row[-1]))))
            body_bytes += len(body)
            if body_bytes >= self._max_page_bytes:
                break
        return rows, limit_events(events, self._limit, self._max_page_bytes)


class PostgresEventReader(ReferenceTableReader):
    """Reader of events in a tenant's log under row-level security, and of licensed events in the network log."""

    _sql = SQL

    async def query_bounds(self, logs: Collection[Tenant]) -> Mapping[Tenant, LogBounds]:
        return await read_bounds(self._pool, logs, SQL["list_bounds"], default_bounds=LogBounds())

    async def confirm_bounds(self, log: Tenant) -> LogBounds:
        return await read_current_bounds(self._pool, log)

    async def begin_epoch(self, log: Tenant, after: LogPosition) -> None:
        values = {"after": after.epoch, "position": after.position, "epoch": generate_epoch()}
        await self._pool.run(log, SQL["begin_epoch"], build_tenant_params(log) | values)

    async def filter_licensed(self, tenants: Collection[Tenant]) -> frozenset[Tenant]:
        orgs, livemodes = [tenant.org for tenant in tenants], [tenant.livemode for tenant in tenants]
        return frozenset(
            Tenant(*row) for row in await self._fetch_rows("filter_licensed", orgs=orgs, livemodes=livemodes)
        )

    async def list_permissions(
        self, log: Tenant, after: int, up_to: int, tenants: Collection[Tenant]
    ) -> Sequence[EventPermission]:
        holders = [*sorted({tenant.org for tenant in tenants}), "*"]
        async with self._connect_to_network_log(log) as network:
            rows = await network.fetch_rows(SQL["list_permissions"], after=after, up_to=up_to, holders=holders)
        return [EventPermission(position, owner, holder, frozenset(groups)) for position, owner, holder, groups in rows]

    @asynccontextmanager
    async def _connect_to_own_log(self, log: Tenant) -> AsyncIterator[_LogConnection]:
        async with self._pool.connect_to_tenant(log) as connection:
            yield _LogConnection(connection, log)

    @asynccontextmanager
    async def _connect_to_network_log(self, log: Tenant) -> AsyncIterator[_LogConnection]:
        async with self._pool.connect_to(await self._pool.router.find_node(NETWORK)) as connection:
            yield _LogConnection(connection, log)

    async def read_page(
        self,
        view: LogView,
        after: LogPosition,
        end: LogPosition,
        limit: int,
        wanted: EventFilter,
        *,
        max_bytes: int = CHANGES_BYTES,
    ) -> EventBatch:
        if view.is_network:
            async with self._connect_to_network_log(view.log) as log:
                return await _NetworkReader(log, view, limit, max_bytes).read_page(after, end, wanted)
        if wanted.is_selective:
            async with self._connect_to_own_log(view.log) as log:
                has_same_event = await log.has_same_event(after)
                batch = await _FilteredReader(log, wanted, limit, max_bytes).read_page(after, end)
        else:
            has_same_event, batch = await self._read_unfiltered_page(view.log, after, end, limit, wanted, max_bytes)
        if not has_same_event:
            await self._check_deleted_by_age(view.log, after)
        return batch

    async def _read_unfiltered_page(
        self, log: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter, max_page_bytes: int
    ) -> tuple[bool, EventBatch]:
        """Read a page of a tenant's log for a filter that is not selective, without the index of blocks.

        Returns:
            Whether the log still has the event at the start position (`has_same_event`), and the page.
        """
        selection, values = _build_own_log_statement(wanted, after, limit, max_page_bytes)
        async with self._connect_to_own_log(log) as own:
            rows = await own.fetch_rows(SQL["read_page"].replace("{selection}", selection), **values)
            has_same_event = bool(rows[0][0]) if rows else await own.has_same_event(after)
            if any(row[-1] is None for row in rows):
                events = await own.read_page_by_bytes(selection, values, max_page_bytes)
            else:
                events = [LoggedEvent(*row[1:]) for row in rows]
        reaches_end = not _is_full(events, limit, max_page_bytes)
        position = after.after(events[-1]) if events else after
        return has_same_event, EventBatch(
            events, _find_page_end(position, end, reaches_end=reaches_end), caught_up=reaches_end
        )

    async def _check_deleted_by_age(self, log: Tenant, after: LogPosition) -> None:
        """Raise CursorExpired unless the position, whose event is missing, is the low watermark.

        At the low watermark, the event was deleted by age but all later events still exist. A position without a time
        is not checked, because nothing shows which event was there.
        """
        if after.time is not None and (await self.confirm_bounds(log)).low != after.position:
            raise CursorExpired

    async def read_recent(self, view: LogView, before: int, limit: int, wanted: EventFilter) -> RecentEvents:
        if view.is_network:
            async with self._connect_to_network_log(view.log) as log:
                return await _NetworkReader(log, view, limit, CHANGES_BYTES).read_recent(before, wanted)
        async with self._connect_to_own_log(view.log) as log:
            if wanted.is_selective:
                return await _FilteredReader(log, wanted, limit, CHANGES_BYTES).read_recent(before)
            names, values = _build_conditions(wanted, LogPosition())
            selection = render_statement(SQL["select_events"], names | _BACKWARDS, limit)
            events = await log.read_page(selection, values | {"up_to": before - 1}, limit, CHANGES_BYTES, direction=-1)
        return RecentEvents(events, events[-1].position if _is_full(events, limit, CHANGES_BYTES) else 1)

    async def read_joined(
        self, tenant: Tenant, after: LogPosition, end: LogPosition, limit: int, wanted: EventFilter
    ) -> JoinedEvents:
        if wanted.is_selective:
            return _join_batch(await self.read_page(LogView.own(tenant), after, end, limit, wanted))
        selection, values = _build_own_log_statement(wanted, after, limit, CHANGES_BYTES)
        async with self._connect_to_own_log(tenant) as log:
            rows = await log.fetch_rows(SQL["read_bodies"].replace("{selection}", selection), **values)
            values["last"] = rows[-1][0] if rows else None
            [(has_same_event, time)] = await log.fetch_rows(SQL["check_page_boundaries"], **values)
        bodies = [body for _, body in rows]
        if None in bodies:
            return _join_batch(await self.read_page(LogView.own(tenant), after, end, limit, wanted))
        if not has_same_event:
            await self._check_deleted_by_age(tenant, after)
        body = b",".join(bodies)
        reaches_end = len(rows) < limit and len(body) < CHANGES_BYTES
        last = LogPosition(after.epoch, values["last"], time) if rows else after
        return JoinedEvents(len(rows), _find_page_end(last, end, reaches_end=reaches_end), body, caught_up=reaches_end)

    async def get_at(self, view: LogView, positions: Sequence[int]) -> Sequence[LoggedEvent]:
        if view.is_network:
            if not positions:
                return []
            async with self._connect_to_network_log(view.log) as log:
                return await _NetworkReader(log, view, len(positions), PROCESS_BYTES).read_at(positions)
        values = {"positions": list(positions), "max_body_bytes": _NO_BODY_LIMIT}
        return await self._fetch_events(view.log, {"positions", "forwards"}, values, len(positions), 1)

    async def get_about_subject(self, tenant: Tenant, subject: str, after: int, limit: int) -> Sequence[LoggedEvent]:
        values = {"after": after, "subject": subject, "max_body_bytes": _MAX_ORDINARY_BYTES}
        return await self._fetch_events(tenant, {"subject", "after", "backwards"}, values, limit, -1)

    async def get_about_products(
        self, tenant: Tenant, products: Collection[str], after: int, limit: int
    ) -> Sequence[LoggedEvent]:
        values = {"after": after, "products": list(products), "max_body_bytes": _MAX_ORDINARY_BYTES}
        return await self._fetch_events(tenant, {"products", "after", "backwards"}, values, limit, -1)

    async def count_price_changes(self, tenant: Tenant, after: int, since: datetime) -> Mapping[str, int]:
        async with self._connect_to_own_log(tenant) as log:
            return dict(await log.fetch_rows(SQL["count_price_changes"], after=after, since=since))

    async def _fetch_events(
        self, log: Tenant, names: set[str], values: dict[str, Any], limit: int, direction: int
    ) -> list[LoggedEvent]:
        async with self._connect_to_own_log(log) as own:
            return await own.read_page_by_bytes(
                render_statement(SQL["select_events"], frozenset(names), limit), values, PROCESS_BYTES, direction
            )


def _join_batch(batch: EventBatch) -> JoinedEvents:
    body = b",".join(event.body for event in batch.events)
    return JoinedEvents(len(batch.events), batch.position, body, batch.caught_up)
