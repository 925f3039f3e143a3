"""What the log's promises cost its writers: appending as it is beside the same inserts without lock and signal."""

# ruff: noqa: SLF001  it takes the log's own statements apart

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection

from adapters.postgres.events import SQL, PostgresEventLog
from adapters.wire.events import WireEventRendering
from benchmarks.ingest import line
from benchmarks.publishing import Publisher
from benchmarks.stack import CALL, Stack
from domain.events.model import Event
from domain.kernel.tenancy import Tenant
from entrypoints.container import opened
from entrypoints.settings import from_environment
from ports.signals import Signal
from ports.unit_of_work import Tx

WRITERS = 8
BATCH = 100
PLAIN = """
CREATE SEQUENCE plain_position AS bigint CACHE 1;
CREATE TABLE plain_events (LIKE events INCLUDING ALL) PARTITION BY RANGE (time);
CREATE TABLE plain_events_default PARTITION OF plain_events DEFAULT;
SELECT protect_tenant_table('plain_events');
GRANT SELECT, INSERT ON plain_events TO joinery_app;
GRANT SELECT, USAGE, UPDATE ON SEQUENCE plain_position TO joinery_app;
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to append: to the log or to its plain twin, behind the lock or not, bodies rendered or ready.

    `tell` says when NOTIFY is sent: inside the transaction, after it, or never.
    """

    name: str
    twin: bool = False
    lock: bool = True
    tell: str = "after"
    ready: bool = False


OURS = Way("as it is")
PLAINLY = Way("plain sequence, identical table", twin=True, lock=False, tell="never")
OURS_READY = Way("as it is, bodies ready", ready=True)
PLAINLY_READY = Way("plain, bodies ready", twin=True, lock=False, tell="never", ready=True)
WAYS = (
    OURS,
    PLAINLY,
    Way("as it is, without NOTIFY", tell="never"),
    Way("as it is, NOTIFY inside the transaction", tell="inside"),
    Way("as it is, without the lock", lock=False),
    OURS_READY,
    PLAINLY_READY,
)


class ReadyBodies(WireEventRendering):
    """Renders one event and gives its bytes for every other: what is left is what the database takes."""

    def __init__(self) -> None:
        self._body = b""

    def event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """The first event's envelope."""
        self._body = self._body or super().event(event, tenant, time)
        return self._body


class Taken(PostgresEventLog):
    """The log's own statements, with those left out that a way does not have."""

    async def append_by(self, way: Way, events: Sequence[Event]) -> None:
        """As `append` does for a batch that is staged."""
        await self._stage(events)
        if way.lock:
            await self._session.run(SQL["lock"])
        insert: str = SQL["insert_staged"]
        if way.twin:
            insert = insert.replace("event_position", "plain_position").replace("INTO events", "INTO plain_events")
        await self._session.run(insert, now=self._session.now)
        if way.tell == "inside":
            await self._session.run(SQL["notify"], payload=Signal(self._session.tenant).payload)


async def _append(tx: Tx, way: Way, events: Sequence[Event], rendering: WireEventRendering) -> None:
    if way == OURS:
        await tx.events.append(events)
    else:
        assert isinstance(tx.events, PostgresEventLog)
        await Taken(tx.events._session, rendering).append_by(way, events)


async def _writer(env: Mapping[str, str], tenant: Tenant, catalogue: str, pipe: Connection) -> None:
    """Append by the ways that are asked for, for as long as is asked for; tell how many events were committed."""
    publisher = Publisher(tenant, catalogue)
    async with opened(from_environment(env)) as container:
        uow, rendered = container.uow(), WireEventRendering()
        while (asked := pipe.recv()) is not None:
            way, until = asked
            rendering = ReadyBodies() if way.ready else rendered
            count = 0
            while time.perf_counter() < until:
                events = publisher.next(BATCH)
                async with uow.begin(tenant, CALL) as tx:
                    await _append(tx, way, events, rendering)
                if way.tell == "after" and way != OURS:
                    async with container.pool().tenant(tenant) as link:
                        await link.cursor.execute(SQL["notify"], {"payload": Signal(tenant).payload})
                count += BATCH
            pipe.send(count)


def _start(env: Mapping[str, str], tenant: Tenant, catalogue: str, pipe: Connection) -> None:
    asyncio.run(_writer(env, tenant, catalogue, pipe))


@dataclass(frozen=True, slots=True)
class Writers:
    """Processes that append at the same time."""

    pipes: Sequence[Connection]

    def rate(self, way: Way, seconds: float) -> float:
        """Events a second by all of them together."""
        began = time.perf_counter()
        for pipe in self.pipes:
            pipe.send((way, began + seconds))
        count: int = sum(pipe.recv() for pipe in self.pipes)
        return count / (time.perf_counter() - began)


@asynccontextmanager
async def writers(parts: Stack, count: int = WRITERS) -> AsyncIterator[Writers]:
    """As many processes, each with an organisation of its own."""
    spawn, pipes, processes = multiprocessing.get_context("spawn"), [], []
    for number in range(count):
        organisation = await parts.organisation(f"Writer {number}")
        ours, theirs = spawn.Pipe()
        tenant = Tenant(organisation.id, True)
        process = spawn.Process(target=_start, args=(parts.env, tenant, organisation.catalogue(True), theirs))
        process.start()
        pipes.append(ours)
        processes.append(process)
    try:
        yield Writers(pipes)
    finally:
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join(20)


async def append_figures(parts: Stack, rounds: int, seconds: float) -> None:
    """Events a second by every way, taken in turn, and the ratio of ours to plain."""
    async with parts.container.pool().owner() as link:
        await link.connection.execute(PLAIN)
    rates: dict[Way, list[float]] = {way: [] for way in WAYS}
    async with writers(parts) as together:
        for way in WAYS:
            together.rate(way, 0.5)
        for _ in range(rounds):
            for way in WAYS:
                rates[way].append(together.rate(way, seconds))
    for way in WAYS:
        line(f"append, {WRITERS} writers, {way.name}", f"{statistics.median(rates[way]):9,.0f} events/s")
    for name, ours, plain in (("", OURS, PLAINLY), (", bodies ready", OURS_READY, PLAINLY_READY)):
        ratios = sorted(a / b for a, b in zip(rates[ours], rates[plain], strict=True))
        line(
            f"append, as it is to plain{name}",
            f"{statistics.median(ratios):9.2f}   {rounds} rounds, {ratios[0]:.2f} to {ratios[-1]:.2f}",
        )
