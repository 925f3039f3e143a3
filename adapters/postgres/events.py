"""The event log in PostgreSQL: a plain sequence below the horizon that shared advisory locks give (docs/decisions)."""

from collections.abc import Sequence

from adapters.postgres.pool import Pool
from adapters.postgres.session import Session
from adapters.postgres.sqlfile import statements
from domain.events.model import Event
from domain.kernel.ids import new_id
from ports.events import EventRendering

SQL = statements("events")
_TYPES = ("int4", "text", "text", "text", "text", "text", "text", "int4", "bytea")
_SMALL = 40
CHANNEL = "joinery_events"


class PostgresEventLog:
    """Appends in the tenant's transaction."""

    def __init__(self, session: Session, rendering: EventRendering) -> None:
        self._session = session
        self._rendering = rendering
        self._locked = False

    async def append(self, events: Sequence[Event]) -> None:
        """Append in this order; events without an id are given one. Subject rows must be locked before."""
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
        await self._session.run("NOTIFY " + CHANNEL)

    async def _stage(self, events: Sequence[Event]) -> None:
        """Everything slow comes before the lock that holds the horizon back."""
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
                e.data.get("product"),
                e.source,
                e.catalogue,
                e.version,
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
            products=[event.data.get("product") for event in events],
            sources=[event.source for event in events],
            catalogues=[event.catalogue for event in events],
            versions=[event.version for event in events],
            bodies=[render(event, session.tenant, session.now) for event in events],
        )


class PostgresEventReader:
    """Across tenants: what feed, stream and webhooks read."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._highest = 0

    async def horizon(self) -> int:
        """The position up to which every event is visible and none can appear later.

        Two statements in this order: whoever takes a position below the first answer holds a lock that the second sees,
        or has committed. In one statement nothing would say which of them is looked at first.
        """
        async with self._pool.system() as link:
            last = await (await link.cursor.execute(SQL["last_position"])).fetchone()
            oldest = await (await link.cursor.execute(SQL["oldest_writer"])).fetchone()
        reached = [row[0] for row in (last, oldest) if row and row[0] is not None]
        self._highest = max(self._highest, min(reached, default=0))
        return self._highest
