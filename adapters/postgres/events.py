"""Event logs in PostgreSQL: positions are taken from the log's own row, as a transaction's last step (docs/decisions).

The network's logs, which the relay fills, are logs like any other, of an organisation in name only.
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
"""Positions of a log that are told apart by what types and catalogues occur among them."""
SQL = statements("events", block=str(BLOCK))
_TYPES = ("int8", "text", "text", "text", "text", "text", "text", "int4", "bool", "text", "bytea")
_SMALL = 40
CHANNEL = "joinery_events"
_MOST_NOTED = 2_000


class PostgresEventLog(TenantStore):
    """Appends in the tenant's transaction, right before it commits."""

    _sql = SQL

    def __init__(self, session: Session, rendering: EventRendering) -> None:
        super().__init__(session)
        self._rendering = rendering
        self._written = 0
        """Of the unit's events so many have their rows."""
        self._noted: dict[tuple[Tenant, str], int] = {}

    async def append(self, events: Sequence[Event]) -> None:
        for event in events:
            event.identify(self._session.context)
        self._session.recorded.events.extend(events)

    async def flush(self) -> None:
        """Write what was appended, as the last thing before the commit: the log's row is locked from here on.

        Everything slow comes before that; whoever else appends to this log waits until this transaction has ended.
        """
        events = self._session.recorded.events[self._written :]
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
        self._written += len(events)

    async def _note_terms(self, events: Sequence[Event], last: int) -> None:
        """Index the blocks by the types and catalogues that occur in them, once for each block.

        What this connection has noted before needs no statement: it is remembered with the connection, which does not
        outlive a database that lost it, and only once it was committed.
        """
        terms = {event.type for event in events} | {event.catalogue for event in events if event.catalogue}
        first, block = (last - len(events)) // BLOCK, (last - 1) // BLOCK
        noted, tenant = self._session.link.noted, self._session.tenant
        fresh = sorted(term for term in terms if first != block or noted.get((tenant, term)) != block)
        if fresh:
            await self._run("add_terms", terms=fresh, first=first, last=block)
            self._noted.update({(tenant, term): block for term in fresh})

    async def notify(self) -> None:
        """Once committed: notify readers, if anything was appended.

        Done inside the transaction, it would have all writers of the cluster commit one after the other: NOTIFY holds a
        lock of the whole server until the log is flushed (docs/decisions). Readers look by themselves now and then, so
        that nothing is lost with a writer that dies right here.
        """
        if self._noted:
            noted = self._session.link.noted
            if len(noted) > _MOST_NOTED:
                noted.clear()
            noted.update(self._noted)
        if self._written:
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
        async with self._session.owning():  # its row is no tenant's, and may lie on another node
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
    """Return the parameters of `insert`, a list for each column."""
    columns = {f"{name}s": [getattr(event, name) for event in events] for name in _COLUMNS}
    return columns | {"networks": networks, "owners": list(owners), "bodies": bodies}


def new_epoch() -> int:
    """Return the epoch of a log that begins, or goes on after it went back in time: no two lives of a log have the same."""
    return 1 + secrets.randbelow((1 << 31) - 2)


async def bounds_of(
    pool: Pool, logs: Collection[Tenant], statement: LiteralString, missing: LogBounds | None
) -> Mapping[Tenant, LogBounds]:
    """Return the bounds that the statement finds, and `missing` for the others, unless that is None.

    Logs on a node out of reach are left out. Raises Unavailable when all are.
    """
    homes = await pool.homes(logs)

    async def read(link: PooledConnection) -> tuple[Node, list[Fetched]]:
        own = homes[link.node]
        orgs, livemodes = [log.org for log in own], [log.livemode for log in own]
        return link.node, await reading(statement, orgs=orgs, livemodes=livemodes)(link)

    found: dict[Tenant, LogBounds] = {}
    alone = len(await pool.holding()) == 1  # of several nodes, one that finds nothing of a log may no longer hold it
    for node, rows in await pool.scatter_best_effort(read, homes):
        found |= _by_log(rows)
        with contextlib.suppress(Unavailable):
            for log in homes[node]:
                if missing is not None and log not in found:
                    found[log] = missing if alone else await confirmed(pool, log)
    return found


def _by_log(rows: Sequence[Fetched]) -> dict[Tenant, LogBounds]:
    return {Tenant(org, livemode): LogBounds(*numbers) for org, livemode, *numbers in rows}


async def confirmed(pool: Pool, log: Tenant) -> LogBounds:
    """Return the bounds of one log, read as its tenant: on a node that no longer holds it that fails, and is repeated elsewhere."""
    rows = await pool.rows(log, SQL["confirmed"], tenant_values(log))
    return LogBounds(*rows[0]) if rows else LogBounds()


class PostgresNetworkLog(CoordinatorStore):
    """Reads on each publisher's node, and appends on the network's."""

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
            except _Overtaken:
                return False
            await link.run(SQL["notify"], {"payload": Signal(log).payload})
        return True

    async def _append(self, link: PooledConnection, log: Tenant, published: Sequence[Published]) -> None:
        """Raise the log's row first: one relay waits for another there, so two never copy the same events."""
        events = [event for one in published for event in one.events]
        owners = [one.owner.org for one in published for _ in one.events]
        raising = {"epoch": new_epoch(), "count": len(events), "now": self._clock.now(), "publishes": False}
        [(last, time)] = await link.rows(SQL["raise"], tenant_values(log) | raising)
        await self._move(link, log, [one for one in published if one.was is None], "first_checkpoints")
        await self._move(link, log, [one for one in published if one.was is not None], "move_checkpoints")
        # dated anew: within the log, time goes with positions; the body has the event's own
        before = {"before": last - len(events), "time": time}
        rows = _columns_of(events, [event.body for event in events], [False] * len(events), owners)
        await link.run(SQL["insert"], tenant_values(log) | before | rows)

    @staticmethod
    async def _move(link: PooledConnection, log: Tenant, published: Sequence[Published], statement: str) -> None:
        """Move these publishers' checkpoints, each from where it was. Raises _Overtaken."""
        if not published:
            return
        were = [one.was or LogPosition() for one in published]
        params = {
            "owners": [one.owner.org for one in published],
            "epochs": [one.reached.epoch for one in published], "positions": [one.reached.position for one in published],
            "were_epochs": [was.epoch for was in were], "were_positions": [was.position for was in were],
        }  # fmt: skip
        moved = await link.rows(SQL[statement], tenant_values(log) | params)
        if len(moved) != len(published):
            raise _Overtaken


class _Overtaken(Exception):
    """A checkpoint is not where it was."""
