"""Whether readers miss anything while writers append, commit late and roll back: three ways of reading, held against the table."""

import asyncio
import contextlib
import multiprocessing
import random
from collections.abc import Mapping
from multiprocessing.connection import Connection

from adapters.postgres.nodes.pool import Pool
from benchmarks.append import WRITERS
from benchmarks.ingest import line
from benchmarks.publishing import Publisher
from benchmarks.readers import LongPolls, Seen, Stream, judged
from benchmarks.stack import CALL, Stack
from benchmarks.write import ready
from domain.access.usecases import AccessService, KeyRequest
from domain.changes.model import ALL, BEGINNING, View
from domain.changes.ports import EventReader
from domain.events.ports import EventLog
from domain.kernel.tenancy import Tenant
from entrypoints.container import opened
from entrypoints.dependencies import Dependencies
from entrypoints.settings import from_environment
from ports.unit_of_work import UnitOfWork

SUBJECTS = 40
"""Of each writer: few, so that each changes often."""
PAGE = 1000


class _Regret(Exception):
    """A transaction that is rolled back."""


async def _write(
    container: Dependencies, publisher: Publisher, rate: float, seconds: float, dice: random.Random
) -> int:
    """Append some `rate` events a second: one in five commits late, one in ten not at all; answers how many did."""
    committed, loop = 0, asyncio.get_running_loop()
    started = loop.time()
    while (elapsed := loop.time() - started) < seconds:
        await asyncio.sleep(max(0.0, committed / rate - elapsed))
        events = publisher.next(dice.choice((1, 3, 10, 100)))
        try:
            async with container[UnitOfWork].begin(publisher.tenant, CALL) as tx:
                await tx[EventLog].append(events)
                if dice.random() < 0.2:
                    await asyncio.sleep(dice.random() * 0.3)
                if dice.random() < 0.1:
                    raise _Regret  # noqa: TRY301  leaving by an exception is what rolls back
            committed += len(events)
        except _Regret:
            publisher.undo(events)
    return committed


def _writer(
    env: Mapping[str, str], publisher: tuple[Tenant, str], told: tuple[float, float, int], pipe: Connection
) -> None:
    async def run() -> None:
        rate, seconds, seed = told
        made = Publisher(*publisher)
        made.few(SUBJECTS)
        async with opened(from_environment(env)) as container:
            pipe.send(await _write(container, made, rate, seconds, random.Random(seed)))

    asyncio.run(run())


async def _by_bounds(container: Dependencies, tenant: Tenant, found: list[Seen]) -> None:
    """Page after page up to the log's end, until cancelled."""
    reader, after = container[EventReader], BEGINNING
    while True:
        end = (await reader.bounds([tenant]))[tenant].end
        page = await reader.page(View.own(tenant), after, end, PAGE, ALL)
        found += [Seen(event.id, event.subject, event.version) for event in page.events]
        after = page.position
        if page.caught_up:
            await asyncio.sleep(0.005)


async def witness_figures(parts: Stack, seconds: float, rate: float) -> None:
    """What each reader saw, beside what the table holds in the end."""
    organisation = await parts.organisation("Followed")
    tenant, catalogue = Tenant(organisation.id, True), organisation.catalogue(True)
    async with parts.container[UnitOfWork].begin(tenant, CALL) as tx:
        _, secret = await parts.container[AccessService].issue_key(tx, KeyRequest("bench"))
    api = parts.process("api")
    try:
        await ready(parts.settings.port)
        base = f"http://127.0.0.1:{parts.settings.port}"
        paged: list[Seen] = []
        polls, stream = LongPolls(base, secret), Stream(base, secret)
        readers = [
            asyncio.create_task(work)
            for work in (_by_bounds(parts.container, tenant, paged), polls.run(), stream.run())
        ]
        await asyncio.sleep(1)
        committed = await _written(parts.env, (tenant, catalogue), rate, seconds)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60):
                while min(len(paged), len(polls.events), len(stream.events)) < committed:
                    await asyncio.sleep(0.2)
        for task in readers:
            task.cancel()
        table = await _table(parts, tenant)
        line(f"{WRITERS} writers, {seconds:.0f} s", f"{len(table) / seconds:9,.0f} events/s")
        for name, seen in (("bounds and page", paged), ("long polls", polls.events), ("stream", stream.events)):
            line(f"  reader by {name}", judged(seen, table))
    finally:
        api.terminate()
        api.wait(30)


async def _written(env: Mapping[str, str], publisher: tuple[Tenant, str], rate: float, seconds: float) -> int:
    """Have the writers write; how many events they committed."""
    spawn, pipes, processes = multiprocessing.get_context("spawn"), [], []
    for seed in range(WRITERS):
        ours, theirs = spawn.Pipe()
        process = spawn.Process(target=_writer, args=(env, publisher, (rate / WRITERS, seconds, seed), theirs))
        process.start()
        pipes.append(ours)
        processes.append(process)
    counts = [await asyncio.to_thread(pipe.recv) for pipe in pipes]
    for process in processes:
        process.join(20)
    return sum(counts)


async def _table(parts: Stack, tenant: Tenant) -> list[Seen]:
    async with parts.container[Pool].tenant(tenant) as link:
        cursor = await link.connection.execute(
            "SELECT id, subject, version FROM events WHERE org = %s AND livemode ORDER BY position", (tenant.org,)
        )
        return [Seen(*row) for row in await cursor.fetchall()]
