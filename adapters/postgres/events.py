"""The event log in PostgreSQL: positions are taken from the log's own row, as a transaction's last step (docs/decisions)."""

import contextlib
import secrets
from collections.abc import Sequence
from typing import Any, Final

import psycopg

from adapters.postgres.session import Session
from adapters.postgres.sqlfile import statements
from domain.changes.model import NETWORK, LogBounds
from domain.changes.ports import EventRendering
from domain.events.model import Event, LoggedEvent, LogPosition
from domain.kernel.tenancy import Tenant
from ports.signals import Signal

BLOCK: Final = 512
"""Positions of a log that are told apart by what types and catalogues occur among them."""
SQL = statements("events", block=str(BLOCK))
_TYPES: Final = ("int8", "text", "text", "text", "text", "text", "text", "int4", "bool", "text", "bytea")
_SMALL: Final = 40
CHANNEL: Final = "joinery_events"
_MOST_NOTED: Final = 2_000


class PostgresEventLog:
    """Appends in the tenant's transaction, right before it commits."""

    def __init__(self, session: Session, rendering: EventRendering) -> None:
        self._session = session
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
        staged = len(events) > _SMALL
        if staged:
            await self._stage(events)
            rows: dict[str, Any] = {}
        else:
            rows = self._rows(events)
        raised = await self._session.one(
            SQL["raise"],
            epoch=new_epoch(),
            count=len(events),
            now=self._session.now,
            publishes=any(event.network for event in events),
        )
        assert raised is not None, "a log without a row"
        last, time = raised
        insert = SQL["insert_staged"] if staged else SQL["insert"]
        await self._session.run(insert, before=last - len(events), time=time, **rows)
        await self._note_terms(events, last)
        self._written += len(events)

    async def _note_terms(self, events: Sequence[Event], last: int) -> None:
        """Have it found in which blocks there is something of these types and catalogues, once for each block.

        What this connection has noted before needs no statement: it is remembered with the connection, which does not
        outlive a database that lost it, and only once it was committed.
        """
        terms = {event.type for event in events} | {event.catalogue for event in events if event.catalogue}
        first, block = (last - len(events)) // BLOCK, (last - 1) // BLOCK
        noted, tenant = self._session.link.noted, self._session.tenant
        fresh = sorted(term for term in terms if first != block or noted.get((tenant, term)) != block)
        if fresh:
            await self._session.run(SQL["add_terms"], terms=fresh, first=first, last=block)
            self._noted.update({(tenant, term): block for term in fresh})

    async def notify(self) -> None:
        """Once committed: let readers know, if anything was appended.

        Said inside the transaction, it would have all writers of the cluster commit one after the other: NOTIFY holds a
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
        found = await self._session.one(SQL["high_watermark"])
        return int(found[0]) if found else 0

    async def end(self) -> LogPosition:
        row = await self._session.one(SQL["confirmed"])
        return LogBounds(*row).end if row else LogBounds().end

    async def network_end(self) -> LogPosition:
        async with self._session.owning():  # its row is no tenant's, and may lie on another node
            row = await self._session.one(SQL["confirmed"], org=NETWORK)
        return LogBounds(*row).end if row else LogBounds().end

    async def _stage(self, events: Sequence[Event]) -> None:
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
                None,
                render(e, tenant, now),
            )
            for n, e in enumerate(events, start=1)
        )
        await session.copy(SQL["copy"], rows, _TYPES)

    def _rows(self, events: Sequence[Event]) -> dict[str, list[Any]]:
        session, render = self._session, self._rendering.event
        bodies = [render(event, session.tenant, session.now) for event in events]
        return columns_of(events, bodies, [event.network for event in events], [None] * len(events))


def columns_of(
    events: Sequence[Event | LoggedEvent], bodies: list[bytes], networks: list[bool], owners: Sequence[str | None]
) -> dict[str, list[Any]]:
    """The parameters of `insert`, a list for each column."""
    return {
        "ids": [event.id for event in events],
        "types": [event.type for event in events],
        "subjects": [event.subject for event in events],
        "products": [event.product for event in events],
        "sources": [event.source for event in events],
        "catalogues": [event.catalogue for event in events],
        "versions": [event.version for event in events],
        "networks": networks,
        "owners": list(owners),
        "bodies": bodies,
    }


def new_epoch() -> int:
    """Of a log that begins, or goes on after it went back in time: no two lives of a log have the same."""
    return 1 + secrets.randbelow((1 << 31) - 2)
