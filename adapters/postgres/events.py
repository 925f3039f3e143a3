"""The event log in PostgreSQL: a plain sequence, whose high watermark shared advisory locks give (docs/decisions)."""

import contextlib
from collections.abc import Sequence

import psycopg

from adapters.postgres.node_pool import PooledConnection
from adapters.postgres.session import Session
from adapters.postgres.sqlfile import statements
from domain.events.model import Event
from domain.kernel.errors import Unavailable
from domain.kernel.ids import new_id
from ports.events import EventRendering, LogBounds
from ports.signals import Signal

SQL = statements("events")
_TYPES = ("int4", "text", "text", "text", "text", "text", "text", "int4", "bool", "bytea")
_SMALL = 40
CHANNEL = "joinery_events"


async def bounds_of(link: PooledConnection) -> LogBounds:
    """How far the log goes.

    Two statements in this order: whoever takes a position below the first answer holds a lock that the second sees, or
    has committed. In one statement nothing would say which of them is looked at first.
    """
    last = await (await link.cursor.execute(SQL["last_position"])).fetchone()
    oldest = await (await link.cursor.execute(SQL["oldest_writer"])).fetchone()
    if last is None:
        raise Unavailable
    writer = oldest[0] if oldest and oldest[0] is not None else last[0]
    return LogBounds(min(last[0], writer), last[0], last[1], last[2])


class PostgresEventLog:
    """Appends in the tenant's transaction."""

    def __init__(self, session: Session, rendering: EventRendering) -> None:
        self._session = session
        self._rendering = rendering
        self._locked = False
        self._appended = False

    async def append(self, events: Sequence[Event]) -> None:
        if not events:
            return
        self._session.recorded.events.extend(events)
        for event in events:
            event.id = event.id or new_id("evt")
        staged = len(events) > _SMALL
        if staged:
            await self._stage(events)
        if not self._locked:
            await self._session.run(SQL["lock"])
            self._locked = True
        if staged:
            await self._session.run(SQL["insert_staged"], now=self._session.now)
        else:
            await self._insert(events)
        self._appended = True

    def lock_again(self) -> None:
        """The lock may be gone: take it before appending anything more."""
        self._locked = False

    async def notify(self) -> None:
        """Once committed: let readers know, if anything was appended.

        Said inside the transaction, it would have all writers of the cluster commit one after the other: NOTIFY holds a
        lock of the whole server until the log is flushed (docs/decisions). Readers look by themselves now and then, so
        that nothing is lost with a writer that dies right here.
        """
        if self._appended:
            with contextlib.suppress(psycopg.Error):
                await self._session.link.cursor.execute(
                    SQL["notify"], {"payload": Signal(self._session.tenant).payload}
                )

    async def high_watermark(self) -> int:
        return (await bounds_of(self._session.link)).high_watermark

    async def _stage(self, events: Sequence[Event]) -> None:
        """Everything slow comes before the lock that holds the high watermark back."""
        session, render = self._session, self._rendering.event
        tenant, now = session.tenant, session.now
        await session.stage(SQL["staging"])
        await session.run("DELETE FROM new_events")
        rows = (
            (
                n,
                e.id,
                e.type,
                e.subject,
                e.product,
                e.source,
                e.catalogue,
                e.version,
                e.network,
                render(e, tenant, now),
            )
            for n, e in enumerate(events)
        )
        await session.copy(SQL["copy"], rows, _TYPES)

    async def _insert(self, events: Sequence[Event]) -> None:
        session, render = self._session, self._rendering.event
        await session.run(
            SQL["insert"],
            now=session.now,
            ids=[event.id for event in events],
            types=[event.type for event in events],
            subjects=[event.subject for event in events],
            products=[event.product for event in events],
            sources=[event.source for event in events],
            catalogues=[event.catalogue for event in events],
            versions=[event.version for event in events],
            networks=[event.network for event in events],
            bodies=[render(event, session.tenant, session.now) for event in events],
        )
