"""Writing of event logs in PostgreSQL (docs/decisions).

The last step of a transaction assigns the positions of its events, from the log's row. The relay fills the network
logs (events of all published catalogues in one mode), which are ordinary logs of a nominal organisation.
"""

import contextlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString

import psycopg

from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, create_row_reader
from adapters.postgres.nodes.router import Node
from adapters.postgres.session import TenantSession
from adapters.postgres.stores import (
    CoordinatorStore,
    TenantStore,
    build_tenant_params,
    load_statements,
    render_statement,
)
from domain.changes.model import NETWORK, LogBounds, get_network_tenant
from domain.changes.ports import EventRendering, PublishedEvents
from domain.events.model import Event, LoggedEvent, LogPosition
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant
from ports.clock import Clock
from ports.signals import Signal

POSITIONS_PER_BLOCK = 512
"""Number of consecutive positions of a log that form a block.

The table event_log_terms lists the event types and catalogues that occur in each block.
"""
SQL = load_statements("event_log", block=str(POSITIONS_PER_BLOCK))
_COLUMN_TYPES = ("int8", "text", "text", "text", "text", "text", "text", "int4", "bool", "text", "bytea")
_MAX_INSERTED_EVENTS = 40
"""Maximum number of events that are inserted without a temporary table."""
CHANNEL = "joinery_events"
_MAX_CACHED_TERMS = 2_000


class PostgresEventLog(TenantStore):
    """Event log of the tenant. Events are collected until `flush` inserts them, just before the transaction commits."""

    _sql = SQL

    def __init__(self, session: TenantSession, rendering: EventRendering) -> None:
        super().__init__(session)
        self._rendering = rendering
        self._inserted_count = 0
        """Number of the transaction's events that are already inserted."""
        self._new_term_blocks: dict[tuple[Tenant, str], int] = {}
        """Newest block in which this transaction has indexed an event type or catalogue."""

    async def append(self, events: Sequence[Event]) -> None:
        for event in events:
            event.assign_ids(self._session.context)
        self._session.recorded.events.extend(events)

    async def flush(self) -> None:
        """Insert the appended events, as the last step before the commit.

        The insertion locks the log's row, so other writers of the log wait until the transaction ends.
        """
        events = self._session.recorded.events[self._inserted_count :]
        if not events:
            return
        # slow work precedes the lock of the log's row
        if is_staged := len(events) > _MAX_INSERTED_EVENTS:
            await self._stage_events(events)
        rows = {} if is_staged else self._build_insert_params(events)
        publishes = any(event.is_published for event in events)
        values = {"epoch": generate_epoch(), "count": len(events), "publishes": publishes}
        [(last, time)] = await self._fetch_rows("reserve_positions", **values)
        await self._run(
            "insert_staged_events" if is_staged else "insert_events", before=last - len(events), time=time, **rows
        )
        await self._index_terms(events, last)
        self._inserted_count += len(events)

    async def _index_terms(self, events: Sequence[Event], last_position: int) -> None:
        """Index the terms (event types and catalogues) of the new events by block, once per block.

        Terms that an earlier transaction of this connection has added for the same block are skipped.

        Args:
            events: The new events.
            last_position: Position of the last new event.
        """
        terms = {event.type for event in events} | {event.catalogue for event in events if event.catalogue}
        first, block = (last_position - len(events)) // POSITIONS_PER_BLOCK, (last_position - 1) // POSITIONS_PER_BLOCK
        committed_blocks, tenant = self._session.connection.indexed_blocks, self._session.tenant
        new_terms = sorted(term for term in terms if first != block or committed_blocks.get((tenant, term)) != block)
        if new_terms:
            await self._run("add_terms", terms=new_terms, first=first, last=block)
            self._new_term_blocks.update({(tenant, term): block for term in new_terms})

    async def notify(self) -> None:
        """Notify the log's readers of the inserted events, after the commit.

        Readers also poll, so no event is missed if the writer fails before the notification.
        """
        if self._new_term_blocks:
            committed_blocks = self._session.connection.indexed_blocks
            if len(committed_blocks) > _MAX_CACHED_TERMS:
                committed_blocks.clear()
            committed_blocks.update(self._new_term_blocks)
        # NOTIFY inside the transaction would serialise all commits, because it holds a server-wide lock until the WAL is
        # flushed (docs/decisions)
        if self._inserted_count:
            with contextlib.suppress(psycopg.Error):
                await self._session.connection.cursor.execute(
                    SQL["notify"], {"payload": Signal(self._session.tenant).payload}
                )

    async def get_high_watermark(self) -> int:
        return int(await self._fetch_scalar("get_high_watermark", 0))

    async def get_end(self) -> LogPosition:
        return (await self._fetch_first(LogBounds, "get_bounds") or LogBounds()).end

    async def get_network_end(self) -> LogPosition:
        values = {"org": NETWORK, "livemode": self._session.tenant.livemode}
        async with self._session.as_owner():  # its row belongs to no tenant, and may be on another node
            rows = await self._session.connection.fetch_rows(SQL["get_bounds"], values)
        return (LogBounds(*rows[0]) if rows else LogBounds()).end

    async def _stage_events(self, events: Sequence[Event]) -> None:
        session, render = self._session, self._rendering.encode_event
        tenant, now = session.tenant, session.now
        await session.create_temporary_tables(SQL["create_staging_table"])
        rows = (
            (
                n, e.id, e.type, e.subject, e.product, e.source, e.catalogue, e.version, e.is_published, None,
                render(e, tenant, now),
            )
            for n, e in enumerate(events, start=1)
        )  # fmt: skip
        await self.fill_temporary_table("events", rows, _COLUMN_TYPES)

    def _build_insert_params(self, events: Sequence[Event]) -> dict[str, list[Any]]:
        session, render = self._session, self._rendering.encode_event
        bodies = [render(event, session.tenant, session.now) for event in events]
        return _list_insert_params(events, bodies, [event.is_published for event in events], [None] * len(events))


_COLUMNS = ("id", "type", "subject", "product", "source", "catalogue", "version")


def _list_insert_params(
    events: Sequence[Event | LoggedEvent], bodies: list[bytes], network_flags: list[bool], owners: Sequence[str | None]
) -> dict[str, list[Any]]:
    """Return the parameters of the SQL statement `insert_events`: one list per column, with one value per event.

    Args:
        events: The events to insert.
        bodies: Encoded envelope of each event.
        network_flags: For each event, whether the relay must copy the event to the network log.
        owners: In a network log, the publisher of each event; None in other logs.
    """
    columns = {f"{name}s": [getattr(event, name) for event in events] for name in _COLUMNS}
    return columns | {"networks": network_flags, "owners": list(owners), "bodies": bodies}


def generate_epoch() -> int:
    """Return a random epoch for a new log, or for a log that may have lost events."""
    return 1 + secrets.randbelow((1 << 31) - 2)


async def read_bounds(
    pool: Pool, logs: Collection[Tenant], statement: LiteralString, default_bounds: LogBounds | None
) -> Mapping[Tenant, LogBounds]:
    """Read the bounds of logs on all nodes that store them. Logs on unreachable nodes are omitted.

    Args:
        pool: The connection pools.
        logs: Tenants whose logs are read.
        statement: SQL statement that returns the bounds of the logs on one node.
        default_bounds: Bounds of a log without a row; None to omit these logs.

    Raises:
        Unavailable: All nodes are unreachable.
    """
    logs_by_node = await pool.group_by_node(logs)

    async def read(connection: PooledConnection) -> tuple[Node, list[DatabaseRow]]:
        node_logs = logs_by_node[connection.node]
        orgs, livemodes = [log.org for log in node_logs], [log.livemode for log in node_logs]
        return connection.node, await create_row_reader(statement, orgs=orgs, livemodes=livemodes)(connection)

    found: dict[Tenant, LogBounds] = {}
    is_single = (
        len(await pool.list_tenant_nodes()) == 1
    )  # in a cluster, a node that finds nothing may no longer hold the log
    for node, rows in await pool.scatter_best_effort(read, logs_by_node):
        found |= _group_bounds_by_log(rows)
        with contextlib.suppress(Unavailable):
            for log in logs_by_node[node]:
                if default_bounds is not None and log not in found:
                    found[log] = default_bounds if is_single else await read_current_bounds(pool, log)
    return found


def _group_bounds_by_log(rows: Sequence[DatabaseRow]) -> dict[Tenant, LogBounds]:
    return {Tenant(org, livemode): LogBounds(*numbers) for org, livemode, *numbers in rows}


async def read_current_bounds(pool: Pool, log: Tenant) -> LogBounds:
    """Return the bounds of one log from the node that currently stores the log's tenant.

    The read uses the tenant's session, so a read on an outdated node fails and is retried on the current one.
    """
    rows = await pool.fetch_rows(log, SQL["get_bounds"], build_tenant_params(log))
    return LogBounds(*rows[0]) if rows else LogBounds()


class PostgresNetworkLog(CoordinatorStore):
    """Log of the events of all published catalogues, which the relay copies from the publishers' nodes to the log's node."""

    _sql = SQL

    def __init__(self, pool: Pool, clock: Clock) -> None:
        super().__init__(pool)
        self._clock = clock

    async def list_publishers(self, tenants: Collection[Tenant] | None = None) -> Mapping[Tenant, LogBounds]:
        if tenants is not None:
            return await read_bounds(self._pool, tenants, SQL["list_publishers_among"], default_bounds=None)
        return _group_bounds_by_log(await self._gather("list_publishers"))

    async def load_checkpoints(self, livemode: bool) -> Mapping[Tenant, LogPosition]:
        log = get_network_tenant(livemode)
        rows = await self._pool.fetch_rows(log, SQL["load_checkpoints"], build_tenant_params(log))
        return {Tenant(owner, livemode): LogPosition(epoch, position) for owner, epoch, position in rows}

    async def confirm_bounds(self, owner: Tenant) -> LogBounds:
        return await read_current_bounds(self._pool, owner)

    async def read_published(self, owner: Tenant, after: LogPosition, limit: int) -> Sequence[LoggedEvent]:
        names = frozenset() if after.earliest_later_time is None else frozenset({"since"})
        values = {"after": after.position, "limit": limit, "since": after.earliest_later_time}
        rows = await self._pool.fetch_rows(
            owner, render_statement(SQL["read_published"], names), build_tenant_params(owner) | values
        )
        return [LoggedEvent(*row) for row in rows]

    async def append(self, log: Tenant, published: Sequence[PublishedEvents]) -> bool:
        async with self._pool.connect_to_tenant(log) as connection:
            try:
                async with connection.driver_connection.transaction():
                    await self._append_copies(connection, log, published)
            except _CheckpointConflict:
                return False
            await connection.run(SQL["notify"], {"payload": Signal(log).payload})
        return True

    async def _append_copies(
        self, connection: PooledConnection, log: Tenant, published: Sequence[PublishedEvents]
    ) -> None:
        """Append copies of published events to the network log, and advance the publishers' checkpoints.

        `published` contains the events of each publisher with the publisher's checkpoints before and after them. Raises
        _CheckpointConflict if another relay has already advanced a checkpoint.
        """
        events = [event for part in published for event in part.events]
        owners = [part.owner.org for part in published for _ in part.events]
        values = {"epoch": generate_epoch(), "count": len(events), "now": self._clock.now(), "publishes": False}
        # this locks the log's row, so two relays never copy the same events
        [(last, time)] = await connection.fetch_rows(SQL["reserve_positions"], build_tenant_params(log) | values)
        await self._advance_checkpoints(
            connection, log, [part for part in published if part.checkpoint_before is None], "add_checkpoints"
        )
        await self._advance_checkpoints(
            connection, log, [part for part in published if part.checkpoint_before is not None], "advance_checkpoints"
        )
        # events get a new time, because times rise with positions; the body keeps the original time
        before = {"before": last - len(events), "time": time}
        rows = _list_insert_params(events, [event.body for event in events], [False] * len(events), owners)
        await connection.run(SQL["insert_events"], build_tenant_params(log) | before | rows)

    @staticmethod
    async def _advance_checkpoints(
        connection: PooledConnection, log: Tenant, published: Sequence[PublishedEvents], statement: str
    ) -> None:
        """Advance the publishers' checkpoints with the named SQL statement.

        Raises _CheckpointConflict if a stored checkpoint is not the one from which the relay has read.
        """
        if not published:
            return
        previous = [part.checkpoint_before or LogPosition() for part in published]
        params = {
            "owners": [part.owner.org for part in published],
            "epochs": [part.checkpoint_after.epoch for part in published], "positions": [part.checkpoint_after.position for part in published],
            "previous_epochs": [position.epoch for position in previous],
            "previous_positions": [position.position for position in previous],
        }  # fmt: skip
        rows = await connection.fetch_rows(SQL[statement], build_tenant_params(log) | params)
        if len(rows) != len(published):
            raise _CheckpointConflict


class _CheckpointConflict(Exception):
    """Conflict with another relay, which has already advanced a checkpoint."""
