"""Writing of event logs in PostgreSQL; positions are assigned from the log's row in the last step of a transaction (docs/decisions).

The network logs, which the relay fills, are ordinary logs of a nominal organisation.
"""

import contextlib
import secrets
from collections.abc import Collection, Mapping, Sequence
from typing import Any, LiteralString

import psycopg

from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.nodes.router import Node
from adapters.postgres.session import Session
from adapters.postgres.stores import CoordinatorStore, TenantStore, rendered, statements, tenant_values
from domain.changes.model import NETWORK, LogBounds, network_of
from domain.changes.ports import EventRendering, Published
from domain.events.model import Event, LoggedEvent, LogPosition
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant
from ports.clock import Clock
from ports.signals import Signal

BLOCK = 512
"""Number of positions per block; an index states the types and catalogues in each block."""
SQL = statements("events", block=str(BLOCK))
_TYPES = ("int8", "text", "text", "text", "text", "text", "text", "int4", "bool", "text", "bytea")
_SMALL = 40
CHANNEL = "joinery_events"
_MAX_NOTED = 2_000


class PostgresEventLog(TenantStore):
    """Event log of the tenant; `flush` appends the events just before the transaction commits."""

    _sql = SQL

    def __init__(self, session: Session, rendering: EventRendering) -> None:
        super().__init__(session)
        self._rendering = rendering
        self._flushed = 0
        """Number of the unit's events that already have rows."""
        self._indexed: dict[tuple[Tenant, str], int] = {}

    async def append(self, events: Sequence[Event]) -> None:
        for event in events:
            event.identify(self._session.context)
        self._session.recorded.events.extend(events)

    async def flush(self) -> None:
        """Insert the appended events just before the commit, since this locks the log's row.

        Slow work comes first, because other writers of the log then wait until the transaction ends.
        """
        events = self._session.recorded.events[self._flushed :]
        if not events:
            return
        if staged := len(events) > _SMALL:
            await self._stage(events)
        rows = {} if staged else self._columns(events)
        publishes = any(event.network for event in events)
        values = {"epoch": new_epoch(), "count": len(events), "publishes": publishes}
        [(last, time)] = await self._rows("raise", **values)
        await self._run("insert_staged" if staged else "insert", before=last - len(events), time=time, **rows)
        await self._note_terms(events, last)
        self._flushed += len(events)

    async def _note_terms(self, events: Sequence[Event], last: int) -> None:
        """Index the blocks by the types and catalogues in them, once per block.

        Terms that this connection has committed need no statement. The connection ends with a database that loses them.
        """
        terms = {event.type for event in events} | {event.catalogue for event in events if event.catalogue}
        first, block = (last - len(events)) // BLOCK, (last - 1) // BLOCK
        noted, tenant = self._session.link.noted, self._session.tenant
        new_terms = sorted(term for term in terms if first != block or noted.get((tenant, term)) != block)
        if new_terms:
            await self._run("add_terms", terms=new_terms, first=first, last=block)
            self._indexed.update({(tenant, term): block for term in new_terms})

    async def notify(self) -> None:
        """Notify readers of appended events, after the commit.

        NOTIFY inside the transaction would serialise all commits, because it holds a server-wide lock until the WAL is
        flushed (docs/decisions). Readers also poll, so that nothing is lost if the writer dies before the notification.
        """
        if self._indexed:
            noted = self._session.link.noted
            if len(noted) > _MAX_NOTED:
                noted.clear()
            noted.update(self._indexed)
        if self._flushed:
            with contextlib.suppress(psycopg.Error):
                await self._session.link.cursor.execute(
                    SQL["notify"], {"payload": Signal(self._session.tenant).payload}
                )

    async def high_watermark(self) -> int:
        return int(await self._value("high_watermark", 0))

    async def end(self) -> LogPosition:
        return (await self._first(LogBounds, "confirmed") or LogBounds()).end

    async def network_end(self) -> LogPosition:
        values = {"org": NETWORK, "livemode": self._session.tenant.livemode}
        async with self._session.owning():  # its row belongs to no tenant, and may be on another node
            rows = await self._session.link.rows(SQL["confirmed"], values)
        return (LogBounds(*rows[0]) if rows else LogBounds()).end

    async def _stage(self, events: Sequence[Event]) -> None:
        session, render = self._session, self._rendering.event
        tenant, now = session.tenant, session.now
        await session.stage(SQL["staging"])
        rows = (
            (
                n, e.id, e.type, e.subject, e.product, e.source, e.catalogue, e.version, e.network, None,
                render(e, tenant, now),
            )
            for n, e in enumerate(events, start=1)
        )  # fmt: skip
        await self.fill("events", rows, _TYPES)

    def _columns(self, events: Sequence[Event]) -> dict[str, list[Any]]:
        session, render = self._session, self._rendering.event
        bodies = [render(event, session.tenant, session.now) for event in events]
        return _columns_of(events, bodies, [event.network for event in events], [None] * len(events))


_COLUMNS = ("id", "type", "subject", "product", "source", "catalogue", "version")


def _columns_of(
    events: Sequence[Event | LoggedEvent], bodies: list[bytes], networks: list[bool], owners: Sequence[str | None]
) -> dict[str, list[Any]]:
    """Return the parameters of `insert`, one list per column."""
    columns = {f"{name}s": [getattr(event, name) for event in events] for name in _COLUMNS}
    return columns | {"networks": networks, "owners": list(owners), "bodies": bodies}


def new_epoch() -> int:
    """Return a random epoch for a log that starts, or that was restored to an earlier state."""
    return 1 + secrets.randbelow((1 << 31) - 2)


async def bounds_of(
    pool: Pool, logs: Collection[Tenant], statement: LiteralString, missing: LogBounds | None
) -> Mapping[Tenant, LogBounds]:
    """Return the bounds that the statement finds, and `missing` for other logs unless it is None.

    Logs on unreachable nodes are omitted. Raises Unavailable if all nodes are unreachable.
    """
    homes = await pool.homes(logs)

    async def read(link: PooledConnection) -> tuple[Node, list[Fetched]]:
        own = homes[link.node]
        orgs, livemodes = [log.org for log in own], [log.livemode for log in own]
        return link.node, await reading(statement, orgs=orgs, livemodes=livemodes)(link)

    found: dict[Tenant, LogBounds] = {}
    is_single = len(await pool.holding()) == 1  # in a cluster, a node that finds nothing may no longer hold the log
    for node, rows in await pool.scatter_best_effort(read, homes):
        found |= _by_log(rows)
        with contextlib.suppress(Unavailable):
            for log in homes[node]:
                if missing is not None and log not in found:
                    found[log] = missing if is_single else await confirmed(pool, log)
    return found


def _by_log(rows: Sequence[Fetched]) -> dict[Tenant, LogBounds]:
    return {Tenant(org, livemode): LogBounds(*numbers) for org, livemode, *numbers in rows}


async def confirmed(pool: Pool, log: Tenant) -> LogBounds:
    """Return the bounds of one log, read as its tenant, so that a stale route fails and is retried on the right node."""
    rows = await pool.rows(log, SQL["confirmed"], tenant_values(log))
    return LogBounds(*rows[0]) if rows else LogBounds()


class PostgresNetworkLog(CoordinatorStore):
    """Network log: reads events on the publishers' nodes, and appends them on its own node."""

    _sql = SQL

    def __init__(self, pool: Pool, clock: Clock) -> None:
        super().__init__(pool)
        self._clock = clock

    async def publishers(self, among: Collection[Tenant] | None = None) -> Mapping[Tenant, LogBounds]:
        if among is not None:
            return await bounds_of(self._pool, among, SQL["publishers_among"], missing=None)
        return _by_log(await self._gather("publishers"))

    async def checkpoints(self, livemode: bool) -> Mapping[Tenant, LogPosition]:
        log = network_of(livemode)
        rows = await self._pool.rows(log, SQL["network_checkpoints"], tenant_values(log))
        return {Tenant(owner, livemode): LogPosition(epoch, position) for owner, epoch, position in rows}

    async def confirmed(self, owner: Tenant) -> LogBounds:
        return await confirmed(self._pool, owner)

    async def published(self, owner: Tenant, after: LogPosition, limit: int) -> Sequence[LoggedEvent]:
        names = frozenset() if after.since is None else frozenset({"since"})
        values = {"after": after.position, "limit": limit, "since": after.since}
        rows = await self._pool.rows(owner, rendered(SQL["published"], names), tenant_values(owner) | values)
        return [LoggedEvent(*row) for row in rows]

    async def append(self, log: Tenant, published: Sequence[Published]) -> bool:
        async with self._pool.tenant(log) as link:
            try:
                async with link.connection.transaction():
                    await self._append(link, log, published)
            except _CheckpointMoved:
                return False
            await link.run(SQL["notify"], {"payload": Signal(log).payload})
        return True

    async def _append(self, link: PooledConnection, log: Tenant, published: Sequence[Published]) -> None:
        """Append the events and move the checkpoints; the log's row is locked first, so that two relays never copy the same events."""
        events = [event for part in published for event in part.events]
        owners = [part.owner.org for part in published for _ in part.events]
        values = {"epoch": new_epoch(), "count": len(events), "now": self._clock.now(), "publishes": False}
        [(last, time)] = await link.rows(SQL["raise"], tenant_values(log) | values)
        await self._move(link, log, [part for part in published if part.was is None], "first_checkpoints")
        await self._move(link, log, [part for part in published if part.was is not None], "move_checkpoints")
        # events get a new time, because times rise with positions; the body keeps the original time
        before = {"before": last - len(events), "time": time}
        rows = _columns_of(events, [event.body for event in events], [False] * len(events), owners)
        await link.run(SQL["insert"], tenant_values(log) | before | rows)

    @staticmethod
    async def _move(link: PooledConnection, log: Tenant, published: Sequence[Published], statement: str) -> None:
        """Move the publishers' checkpoints from their previous positions. Raises _CheckpointMoved."""
        if not published:
            return
        previous = [part.was or LogPosition() for part in published]
        params = {
            "owners": [part.owner.org for part in published],
            "epochs": [part.reached.epoch for part in published], "positions": [part.reached.position for part in published],
            "were_epochs": [position.epoch for position in previous],
            "were_positions": [position.position for position in previous],
        }  # fmt: skip
        moved = await link.rows(SQL[statement], tenant_values(log) | params)
        if len(moved) != len(published):
            raise _CheckpointMoved


class _CheckpointMoved(Exception):
    """Checkpoint that another relay has moved."""
