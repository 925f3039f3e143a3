"""Throughput of appending to the event logs, compared with the same inserts numbered by a plain database sequence."""

# ruff: noqa: SLF001  runs single private steps of the log

import asyncio
import multiprocessing
import statistics
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from multiprocessing.connection import Connection

from adapters.api_json.events import JsonEventRendering
from adapters.postgres.event_log import SQL, PostgresEventLog
from adapters.postgres.nodes.pool import Pool
from benchmarks.event_publisher import Publisher
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.settings import read_settings
from ports.unit_of_work import Tx, UnitOfWork

WRITERS = 8
MANY_ORGANISATIONS = 64
"""Number of organisations in the variant with many logs; the number of processes is still WRITERS."""
BATCH = 100
PLAIN_TABLE_SQL = """
CREATE SEQUENCE plain_position AS bigint CACHE 1;
CREATE TABLE plain_events (LIKE events INCLUDING ALL) PARTITION BY RANGE (time);
CREATE TABLE plain_events_default PARTITION OF plain_events DEFAULT;
SELECT protect_tenant_table('plain_events');
GRANT SELECT, INSERT ON plain_events TO joinery_app;
GRANT SELECT, USAGE, UPDATE ON SEQUENCE plain_position TO joinery_app;
"""
_PLAIN_INSERT = """
INSERT INTO plain_events (position, org, livemode, id, type, subject, product, source, catalogue, version, time, network, owner, body)
SELECT nextval('plain_position'), %(org)s, %(livemode)s, id, type, subject, product, source, catalogue, version, %(now)s,
    network, owner, body
FROM new_events
"""


@dataclass(frozen=True, slots=True)
class AppendVariant:
    """Variant of appending that is compared with the others.

    Attributes:
        name: Label in the results.
        uses_plain_table: Whether the events go to a table with a plain sequence instead of the event log.
        notify: Whether NOTIFY is sent after the commit.
        shares_body: Whether all events share one rendered body, so that the cost of rendering is left out.
    """

    name: str
    uses_plain_table: bool = False
    notify: bool = True
    shares_body: bool = False


EVENT_LOG = AppendVariant("event log")
PLAIN_SEQUENCE = AppendVariant("table with a plain sequence", uses_plain_table=True, notify=False)
EVENT_LOG_READY = AppendVariant("event log, one body for all events", shares_body=True)
PLAIN_READY = AppendVariant(
    "plain sequence, one body for all events", uses_plain_table=True, notify=False, shares_body=True
)
VARIANTS = (
    EVENT_LOG,
    PLAIN_SEQUENCE,
    AppendVariant("event log, without NOTIFY", notify=False),
    EVENT_LOG_READY,
    PLAIN_READY,
)


class CachedEventRendering(JsonEventRendering):
    """Rendering that returns the first event's body for every event, so that only the database's cost is measured."""

    def __init__(self) -> None:
        self._body = b""

    def encode_event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """Return the envelope of the first event, whatever the event."""
        self._body = self._body or super().encode_event(event, tenant, time)
        return self._body


class VariantEventLog(PostgresEventLog):
    """Event log that appends in the way of a variant."""

    async def append_variant(self, variant: AppendVariant, events: Sequence[Event]) -> None:
        """Append the events and write them immediately, as the event log does right before the commit."""
        if not variant.uses_plain_table:
            await self.append(events)
            await self.flush()
            self._session.recorded.events.clear()
        else:
            await self._stage_events(events)
            await self._session.run(_PLAIN_INSERT, now=self._session.now)


async def _append(
    tx: Tx, variant: AppendVariant, events: Sequence[Event], rendering: JsonEventRendering
) -> VariantEventLog | None:
    log = tx[EventLog]
    if variant == EVENT_LOG:
        await log.append(events)
        return None
    assert isinstance(log, PostgresEventLog)
    variant_log = VariantEventLog(log._session, rendering)
    await variant_log.append_variant(variant, events)
    return variant_log


async def _append_until(
    dependencies: Dependencies,
    publisher: Publisher,
    variant: AppendVariant,
    deadline: float,
    rendering: JsonEventRendering,
) -> int:
    uow, appended_count = dependencies[UnitOfWork], 0
    while time.perf_counter() < deadline:
        events = publisher.generate_events(BATCH)
        async with uow.begin(publisher.tenant, AUDIT_CONTEXT) as tx:
            variant_log = await _append(tx, variant, events, rendering)
        if variant.notify and variant_log is not None:
            async with dependencies[Pool].connect_to_tenant(publisher.tenant) as pooled:
                payload = f"{publisher.tenant.org} t"
                await pooled.cursor.execute(SQL["notify"], {"payload": payload})
        appended_count += BATCH
    return appended_count


async def _run_writer(env: Mapping[str, str], owners: Sequence[tuple[Tenant, str]], pipe: Connection) -> None:
    """Append by the requested variants for the requested times; send the number of committed events for each."""
    publishers = [Publisher(tenant, catalogue) for tenant, catalogue in owners]
    async with open_dependencies(read_settings(env)) as dependencies:
        full_rendering = JsonEventRendering()
        while (task := pipe.recv()) is not None:
            variant, deadline = task
            rendering = CachedEventRendering() if variant.shares_body else full_rendering
            appends = (_append_until(dependencies, publisher, variant, deadline, rendering) for publisher in publishers)
            pipe.send(sum(await asyncio.gather(*appends)))


def _start_writer(env: Mapping[str, str], owners: Sequence[tuple[Tenant, str]], pipe: Connection) -> None:
    asyncio.run(_run_writer(env, owners, pipe))


@dataclass(frozen=True, slots=True)
class WriterProcesses:
    """Processes that append at the same time."""

    pipes: Sequence[Connection]

    def measure_rate(self, variant: AppendVariant, seconds: float) -> float:
        """Return the events a second that all processes append together."""
        started = time.perf_counter()
        for pipe in self.pipes:
            pipe.send((variant, started + seconds))
        count: int = sum(pipe.recv() for pipe in self.pipes)
        return count / (time.perf_counter() - started)


@asynccontextmanager
async def running_writers(stack: Stack, organisations: int = WRITERS) -> AsyncIterator[WriterProcesses]:
    """Start WRITERS processes that append to the logs of new organisations.

    Each process has its share of the logs; if there is only one log, all processes append to it.
    """
    owners: list[tuple[Tenant, str]] = []
    for index in range(organisations):
        organisation = await stack.create_organisation(f"Writer {organisations}-{index}")
        owners.append((Tenant(organisation.id, True), organisation.get_catalogue_id(True)))
    spawn, pipes, processes = multiprocessing.get_context("spawn"), [], []
    for index in range(WRITERS):
        own_end, child_end = spawn.Pipe()
        process = spawn.Process(target=_start_writer, args=(stack.env, owners[index::WRITERS] or owners, child_end))
        process.start()
        pipes.append(own_end)
        processes.append(process)
    try:
        yield WriterProcesses(pipes)
    finally:
        for pipe in pipes:
            pipe.send(None)
        for process in processes:
            process.join(20)


async def measure_appending(stack: Stack, rounds: int, seconds: float) -> None:
    """Print the events a second of every variant, measured in alternating rounds, and the ratios to the plain sequence.

    Then compare both for a single log and for the logs of many organisations.
    """
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute(PLAIN_TABLE_SQL)
    async with running_writers(stack) as processes:
        rates = _measure_rates(processes, VARIANTS, rounds, seconds)
    for variant in VARIANTS:
        print_figure(
            f"append, {WRITERS} writers, {variant.name}", f"{statistics.median(rates[variant]):9,.0f} events/s"
        )
    _print_ratio("", rates[EVENT_LOG], rates[PLAIN_SEQUENCE])
    _print_ratio(", one body for all events", rates[EVENT_LOG_READY], rates[PLAIN_READY])
    for organisations, name in (
        (1, "one organisation's log"),
        (MANY_ORGANISATIONS, f"{MANY_ORGANISATIONS} organisations"),
    ):
        async with running_writers(stack, organisations) as processes:
            rates = _measure_rates(processes, (EVENT_LOG, PLAIN_SEQUENCE), rounds, seconds)
        for variant in (EVENT_LOG, PLAIN_SEQUENCE):
            print_figure(
                f"append, {WRITERS} writers of {name}, {variant.name}",
                f"{statistics.median(rates[variant]):9,.0f} events/s",
            )
        _print_ratio(f", {name}", rates[EVENT_LOG], rates[PLAIN_SEQUENCE])


def _measure_rates(
    processes: WriterProcesses, variants: Sequence[AppendVariant], rounds: int, seconds: float
) -> Mapping[AppendVariant, list[float]]:
    rates: dict[AppendVariant, list[float]] = {variant: [] for variant in variants}
    for variant in variants:
        processes.measure_rate(variant, 0.5)
    for _ in range(rounds):
        for variant in variants:
            rates[variant].append(processes.measure_rate(variant, seconds))
    return rates


def _print_ratio(name: str, event_log_rates: Sequence[float], plain_rates: Sequence[float]) -> None:
    ratios = sorted(a / b for a, b in zip(event_log_rates, plain_rates, strict=True))
    print_figure(
        f"append, event log to plain sequence{name}",
        f"{statistics.median(ratios):9.2f}   {len(ratios)} rounds, {ratios[0]:.2f} to {ratios[-1]:.2f}",
    )
