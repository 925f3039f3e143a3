"""Check that three kinds of readers receive every event while writers append, commit late and roll back."""

import asyncio
import contextlib
import multiprocessing
import random
from collections.abc import Mapping
from multiprocessing.connection import Connection

from adapters.postgres.nodes.pool import Pool
from benchmarks.append_costs import WRITERS
from benchmarks.event_publisher import Publisher
from benchmarks.feed_readers import LongPollReader, SeenEvent, StreamReader, compare_with_table
from benchmarks.ingest import print_figure
from benchmarks.stack import AUDIT_CONTEXT, Stack
from benchmarks.write import wait_until_ready
from domain.access.usecases import AccessService, KeyRequest
from domain.changes.model import ALL, BEGINNING, LogView
from domain.changes.ports import EventReader
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.settings import read_settings
from ports.unit_of_work import UnitOfWork

SUBJECTS_PER_WRITER = 40
"""Number of offers of each writer; few, so that each changes often."""
PAGE_SIZE = 1000


class _RollBackError(Exception):
    """Error that rolls back a transaction."""


async def _append_events(
    dependencies: Dependencies,
    publisher: Publisher,
    events_per_second: float,
    seconds: float,
    random_source: random.Random,
) -> int:
    """Append events at a rate: one transaction in five commits late, and one in ten rolls back.

    Returns:
        The number of committed events.
    """
    committed_count, loop = 0, asyncio.get_running_loop()
    started = loop.time()
    while (elapsed := loop.time() - started) < seconds:
        await asyncio.sleep(max(0.0, committed_count / events_per_second - elapsed))
        events = publisher.generate_events(random_source.choice((1, 3, 10, 100)))
        try:
            async with dependencies[UnitOfWork].begin(publisher.tenant, AUDIT_CONTEXT) as tx:
                await tx[EventLog].append(events)
                if random_source.random() < 0.2:
                    await asyncio.sleep(random_source.random() * 0.3)
                if random_source.random() < 0.1:
                    raise _RollBackError  # noqa: TRY301  the exception rolls the transaction back
            committed_count += len(events)
        except _RollBackError:
            publisher.roll_back(events)
    return committed_count


def _run_writer(
    env: Mapping[str, str], publisher: tuple[Tenant, str], schedule: tuple[float, float, int], pipe: Connection
) -> None:
    async def run() -> None:
        rate, seconds, seed = schedule
        event_publisher = Publisher(*publisher)
        event_publisher.restrict_subjects(SUBJECTS_PER_WRITER)
        async with open_dependencies(read_settings(env)) as dependencies:
            pipe.send(await _append_events(dependencies, event_publisher, rate, seconds, random.Random(seed)))

    asyncio.run(run())


async def _read_by_bounds(dependencies: Dependencies, tenant: Tenant, received_events: list[SeenEvent]) -> None:
    """Read page after page up to the end of the log, until cancelled."""
    reader, position = dependencies[EventReader], BEGINNING
    while True:
        end = (await reader.query_bounds([tenant]))[tenant].end
        page = await reader.read_page(LogView.own(tenant), position, end, PAGE_SIZE, ALL)
        received_events += [SeenEvent(event.id, event.subject, event.version) for event in page.events]
        position = page.position
        if page.caught_up:
            await asyncio.sleep(0.005)


async def measure_reader_completeness(stack: Stack, seconds: float, events_per_second: float) -> None:
    """Print the missed, disordered and unknown events of each reader, compared with the rows of the table."""
    organisation = await stack.create_organisation("Followed")
    tenant, catalogue = Tenant(organisation.id, True), organisation.get_catalogue_id(True)
    async with stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
        _, secret = await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench"))
    api = stack.start_process("api")
    try:
        await wait_until_ready(stack.settings.port)
        base = f"http://127.0.0.1:{stack.settings.port}"
        paged_events: list[SeenEvent] = []
        poll_reader, stream_reader = LongPollReader(base, secret), StreamReader(base, secret)
        tasks = [
            asyncio.create_task(reading)
            for reading in (
                _read_by_bounds(stack.dependencies, tenant, paged_events),
                poll_reader.run(),
                stream_reader.run(),
            )
        ]
        await asyncio.sleep(1)
        committed_count = await _run_writers(stack.env, (tenant, catalogue), events_per_second, seconds)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60):
                while min(len(paged_events), len(poll_reader.events), len(stream_reader.events)) < committed_count:
                    await asyncio.sleep(0.2)
        for task in tasks:
            task.cancel()
        logged_events = await _read_table(stack, tenant)
        print_figure(f"{WRITERS} writers, {seconds:.0f} s", f"{len(logged_events) / seconds:9,.0f} events/s")
        for name, received_events in (
            ("bounds and pages", paged_events),
            ("long polls", poll_reader.events),
            ("stream", stream_reader.events),
        ):
            print_figure(f"  reader by {name}", compare_with_table(received_events, logged_events))
    finally:
        api.terminate()
        api.wait(30)


async def _run_writers(env: Mapping[str, str], publisher: tuple[Tenant, str], rate: float, seconds: float) -> int:
    """Run the writers in separate processes; return the number of committed events."""
    spawn, pipes, processes = multiprocessing.get_context("spawn"), [], []
    for seed in range(WRITERS):
        own_end, child_end = spawn.Pipe()
        process = spawn.Process(target=_run_writer, args=(env, publisher, (rate / WRITERS, seconds, seed), child_end))
        process.start()
        pipes.append(own_end)
        processes.append(process)
    counts = [await asyncio.to_thread(pipe.recv) for pipe in pipes]
    for process in processes:
        process.join(20)
    return sum(counts)


async def _read_table(stack: Stack, tenant: Tenant) -> list[SeenEvent]:
    async with stack.dependencies[Pool].connect_to_tenant(tenant) as pooled:
        cursor = await pooled.driver_connection.execute(
            "SELECT id, subject, version FROM events WHERE org = %s AND livemode ORDER BY position", (tenant.org,)
        )
        return [SeenEvent(*row) for row in await cursor.fetchall()]
