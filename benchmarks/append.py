"""What the logs' promises cost their writers: appending as it is beside the same inserts numbered by a plain sequence."""

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
from adapters.postgres.nodes.pool import Pool
from adapters.wire.events import WireEventRendering
from benchmarks.ingest import line
from benchmarks.publishing import Publisher
from benchmarks.stack import CALL, Stack
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from entrypoints.container import opened
from entrypoints.dependencies import Dependencies
from entrypoints.settings import from_environment
from ports.unit_of_work import Tx, UnitOfWork

WRITERS = 8
MANY = 64
"""Organisations that write at a time, from as many processes as otherwise."""
BATCH = 100
PLAIN = """
CREATE SEQUENCE plain_position AS bigint CACHE 1;
CREATE TABLE plain_events (LIKE events INCLUDING ALL) PARTITION BY RANGE (time);
CREATE TABLE plain_events_default PARTITION OF plain_events DEFAULT;
SELECT protect_tenant_table('plain_events');
GRANT SELECT, INSERT ON plain_events TO joinery_app;
GRANT SELECT, USAGE, UPDATE ON SEQUENCE plain_position TO joinery_app;
"""
_PLAINLY = """
INSERT INTO plain_events (position, org, livemode, id, type, subject, product, source, catalogue, version, time, network, owner, body)
SELECT nextval('plain_position'), %(org)s, %(livemode)s, id, type, subject, product, source, catalogue, version, %(now)s,
    network, owner, body
FROM new_events
"""


@dataclass(frozen=True, slots=True)
class Way:
    """One way to append: to the log or to its plain twin, bodies rendered or ready, `tell` whether NOTIFY is sent."""

    name: str
    twin: bool = False
    tell: bool = True
    ready: bool = False


OURS = Way("as it is")
PLAINLY = Way("plain sequence, identical table", twin=True, tell=False)
OURS_READY = Way("as it is, bodies ready", ready=True)
PLAINLY_READY = Way("plain, bodies ready", twin=True, tell=False, ready=True)
WAYS = (OURS, PLAINLY, Way("as it is, without NOTIFY", tell=False), OURS_READY, PLAINLY_READY)


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
        """Append, and write it as right before the commit."""
        if not way.twin:
            await self.append(events)
            await self.flush()
            self._session.recorded.events.clear()
        else:
            await self._stage(events)
            await self._session.run(_PLAINLY, now=self._session.now)


async def _append(tx: Tx, way: Way, events: Sequence[Event], rendering: WireEventRendering) -> Taken | None:
    log = tx[EventLog]
    if way == OURS:
        await log.append(events)
        return None
    assert isinstance(log, PostgresEventLog)
    taken = Taken(log._session, rendering)
    await taken.append_by(way, events)
    return taken


async def _publish(
    container: Dependencies, publisher: Publisher, way: Way, until: float, rendering: WireEventRendering
) -> int:
    uow, count = container[UnitOfWork], 0
    while time.perf_counter() < until:
        events = publisher.next(BATCH)
        async with uow.begin(publisher.tenant, CALL) as tx:
            taken = await _append(tx, way, events, rendering)
        if way.tell and taken is not None:
            async with container[Pool].tenant(publisher.tenant) as link:
                payload = f"{publisher.tenant.org} t"
                await link.cursor.execute(SQL["notify"], {"payload": payload})
        count += BATCH
    return count


async def _writer(env: Mapping[str, str], owners: Sequence[tuple[Tenant, str]], pipe: Connection) -> None:
    """Append by the ways that are asked for, for as long as is asked for; tell how many events were committed."""
    publishers = [Publisher(tenant, catalogue) for tenant, catalogue in owners]
    async with opened(from_environment(env)) as container:
        rendered = WireEventRendering()
        while (asked := pipe.recv()) is not None:
            way, until = asked
            rendering = ReadyBodies() if way.ready else rendered
            writing = (_publish(container, publisher, way, until, rendering) for publisher in publishers)
            pipe.send(sum(await asyncio.gather(*writing)))


def _start(env: Mapping[str, str], owners: Sequence[tuple[Tenant, str]], pipe: Connection) -> None:
    asyncio.run(_writer(env, owners, pipe))


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
async def writers(parts: Stack, organisations: int = WRITERS) -> AsyncIterator[Writers]:
    """WRITERS processes that write the logs of so many organisations between them; all of them that of a single one."""
    owners: list[tuple[Tenant, str]] = []
    for number in range(organisations):
        made = await parts.organisation(f"Writer {organisations}-{number}")
        owners.append((Tenant(made.id, True), made.catalogue(True)))
    spawn, pipes, processes = multiprocessing.get_context("spawn"), [], []
    for number in range(WRITERS):
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=_start, args=(parts.env, owners[number::WRITERS] or owners, theirs))
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
    """Events a second by every way, taken in turn, and the ratio of ours to plain; then one log, and many."""
    async with parts.container[Pool].owner() as link:
        await link.connection.execute(PLAIN)
    async with writers(parts) as together:
        rates = _measured(together, WAYS, rounds, seconds)
    for way in WAYS:
        line(f"append, {WRITERS} writers, {way.name}", f"{statistics.median(rates[way]):9,.0f} events/s")
    _compare("", rates[OURS], rates[PLAINLY])
    _compare(", bodies ready", rates[OURS_READY], rates[PLAINLY_READY])
    for organisations, name in ((1, "one organisation's log"), (MANY, f"{MANY} organisations")):
        async with writers(parts, organisations) as together:
            rates = _measured(together, (OURS, PLAINLY), rounds, seconds)
        for way in (OURS, PLAINLY):
            line(f"append, {WRITERS} writers of {name}, {way.name}", f"{statistics.median(rates[way]):9,.0f} events/s")
        _compare(f", {name}", rates[OURS], rates[PLAINLY])


def _measured(together: Writers, ways: Sequence[Way], rounds: int, seconds: float) -> Mapping[Way, list[float]]:
    rates: dict[Way, list[float]] = {way: [] for way in ways}
    for way in ways:
        together.rate(way, 0.5)
    for _ in range(rounds):
        for way in ways:
            rates[way].append(together.rate(way, seconds))
    return rates


def _compare(name: str, ours: Sequence[float], plain: Sequence[float]) -> None:
    ratios = sorted(a / b for a, b in zip(ours, plain, strict=True))
    line(
        f"append, as it is to plain{name}",
        f"{statistics.median(ratios):9.2f}   {len(ratios)} rounds, {ratios[0]:.2f} to {ratios[-1]:.2f}",
    )
