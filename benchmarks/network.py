"""The network's log: how soon what vendors publish stands in it and with a reader, and what reading costs by licences."""

import asyncio
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from adapters.postgres.nodes.pool import Pool
from benchmarks.holding import hold_figures
from benchmarks.ingest import line
from benchmarks.load import Figures, load
from benchmarks.publishing import Publisher
from benchmarks.read import best, request, tell
from benchmarks.readers import Seen, Stream, judged
from benchmarks.receiving import Receiving, receiving
from benchmarks.relaying import relay_figures
from benchmarks.stack import CALL, Stack, cpu_seconds, stack
from benchmarks.vendors import Shop, publish, published, shop, vendors
from benchmarks.webhooks import VERSION, quantile
from benchmarks.write import ready
from domain.changes.model import network_of
from domain.changes.ports import EventRendering, NetworkLog, Published
from domain.events.model import LoggedEvent, LogPosition
from domain.kernel.tenancy import Tenant
from entrypoints.areas import webhooks
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

PORT = 18_988
PUBLISHERS, AT_A_TIME = 100, 4
FEW, MANY = 10, 10_000
EVENTS, PAGE, BATCH = 20_000, 1_000, 500
COMMITS = """
SELECT n.id, n.subject, n.version, extract(epoch FROM pg_xact_commit_timestamp(o.xmin))::float8,
    extract(epoch FROM pg_xact_commit_timestamp(n.xmin))::float8
FROM events n JOIN events o ON o.id = n.id AND o.org <> n.org AND o.org = n.owner
WHERE n.org = 'network' AND NOT n.livemode ORDER BY n.position
"""


@dataclass
class TimedStream(Stream):
    """A stream that knows when each event came, seconds since 1970."""

    received: dict[str, float] = field(default_factory=dict)

    def _take(self, told: dict[str, str]) -> None:
        before = len(self.events)
        super()._take(told)
        for one in self.events[before:]:
            self.received.setdefault(one.id, time.time())


async def network_figures(rounds: int, seconds: float, rate: float, during: float) -> None:
    """Every figure, each in a fresh database."""
    async with stack(port=PORT) as parts:
        await hold_figures(parts)
        await relay_figures(parts, rounds)
    async with stack(port=PORT) as parts:
        await page_figures(parts, rounds, seconds)
    settings = {"track_commit_timestamp": "on"}
    async with stack(port=PORT, postgres_settings=settings, JOINERY_ALLOW_PRIVATE_HOSTS="127.0.0.1") as parts:
        with receiving() as (receiver, _):
            await lag_figures(parts, receiver, rate, during)


async def lag_figures(parts: Stack, receiver: Receiving, rate: float, seconds: float) -> None:
    """From a vendor's commit to the network's log, to a licensed reader's stream and to its webhook.

    In the sandbox, for live events are POSTed over HTTPS alone.
    """
    licensors = await vendors(parts, PUBLISHERS, livemode=False)
    reader = await shop(parts, "Follower", licensors)
    await _endpoint(parts, reader, receiver)
    processes = {name: parts.process(name) for name in ("api", "worker", "scheduler")}
    try:
        await ready(PORT, 60)
        stream = TimedStream(f"http://127.0.0.1:{PORT}", reader.secret)
        task = asyncio.create_task(stream.run())
        count = await _warm(parts, licensors, stream, receiver)
        pids = {name: process.pid for name, process in processes.items()} | {"postgres": parts.postgres}
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        ids, took = await _paced(parts, licensors, rate, seconds)
        spent = {name: (cpu_seconds(pid) - before[name]) / took for name, pid in pids.items()}
        await _drained(stream, receiver, count + len(ids))
        task.cancel()
        line(
            "network: published, events/s", f"{len(ids) / took:8.0f}   by {PUBLISHERS} vendors, one event a transaction"
        )
        await _tell_lag(parts, stream, receiver, frozenset(ids))
        line("  % of a core", "   ".join(f"{part} {100 * share:.1f}" for part, share in spent.items()))
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait(30)
        if log := (Path(parts.env["BENCH_HOME"]) / "scheduler.log").read_text("utf-8"):
            line("the scheduler's log ends with", log[-2000:])


async def _endpoint(parts: Stack, reader: Shop, receiver: Receiving) -> None:
    service = parts.container.call(webhooks.service)
    given = {"url": receiver.url("/shop"), "event_types": ("*",)}
    async with parts.container[UnitOfWork].begin(reader.tenant, CALL) as tx:
        _, secret = await service.create_with_secret(tx, given, VERSION)
    receiver.trust({"/shop": [secret]})


async def _warm(parts: Stack, licensors: Sequence[Publisher], stream: TimedStream, receiver: Receiving) -> int:
    """Until the stream is open and everything has carried one event of each vendor."""
    while not stream.calls:
        await asyncio.sleep(0.05)
    await asyncio.sleep(6)  # the worker has taken its endpoints by then
    for licensor in licensors:
        await publish(parts, licensor, 1)
    await _drained(stream, receiver, len(licensors))
    return len(licensors)


async def _paced(parts: Stack, licensors: Sequence[Publisher], rate: float, seconds: float) -> tuple[list[str], float]:
    """Events one at a time, each vendor in turn, at random moments as independent vendors would."""
    dice, ids, started = random.Random(1), [], time.perf_counter()

    async def some(mine: Sequence[Publisher]) -> None:
        due, turn = started, 0
        while due < started + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            ids.extend(await publish(parts, mine[turn % len(mine)], 1))
            due, turn = due + dice.expovariate(rate / AT_A_TIME), turn + 1

    await asyncio.gather(*(some(licensors[number::AT_A_TIME]) for number in range(AT_A_TIME)))
    return ids, time.perf_counter() - started


async def _drained(stream: TimedStream, receiver: Receiving, count: int, within: float = 30.0) -> None:
    until = time.monotonic() + within
    while min(len(stream.received), receiver.count()) < count and time.monotonic() < until:
        await asyncio.sleep(0.1)


async def _tell_lag(parts: Stack, stream: TimedStream, receiver: Receiving, ids: frozenset[str]) -> None:
    async with parts.container[Pool].owner() as link:
        cursor = await link.connection.execute(COMMITS)
        rows = await cursor.fetchall()
    committed = {str(row[0]): float(row[3]) for row in rows}
    logged = {str(row[0]): float(row[4]) for row in rows}
    posted: dict[str, float] = {}
    for one in receiver.deliveries():
        posted.setdefault(one.id, one.received)
    for name, when in (("the log", logged), ("a reader's stream", stream.received), ("a reader's webhook", posted)):
        _quantiles(f"  from commit to {name}", committed, when, ids)
    table = [Seen(*row[:3]) for row in rows]
    line("  the log", f"{len(ids & logged.keys()):,} of {len(ids):,} events")
    line("  reader by stream", judged(stream.events, table))


def _quantiles(name: str, since: Mapping[str, float], when: Mapping[str, float], ids: frozenset[str]) -> None:
    found = sorted((when[one] - since[one]) * 1000 for one in ids if one in when and one in since)
    told = "   ".join(f"p{share} {quantile(found, share / 100):7.1f} ms" for share in (50, 95, 99))
    line(name, f"{told}   max {quantile(found, 1):7.1f} ms   of {len(found):,}")


async def page_figures(parts: Stack, rounds: int, seconds: float) -> None:
    """A page for a holder of few licences and one of many: of a log that few vendors fill (live), and all (sandbox)."""
    live, sandbox = await vendors(parts, MANY), await vendors(parts, MANY, livemode=False)
    await _fill(parts, live[:FEW])
    await _fill(parts, sandbox)
    few, again = await shop(parts, "Few", live[:FEW]), await shop(parts, "As few", live[:FEW])
    many = await shop(parts, "Many", live)
    few_of_all, all_of_all = await shop(parts, "Few of all", sandbox[:FEW]), await shop(parts, "All", sandbox)
    async with parts.container[Pool].owner() as link:
        await link.connection.execute("VACUUM ANALYZE")
    api = parts.process("api")
    pids = {"app": api.pid, "pg": parts.postgres}
    try:
        await ready(PORT, 60)
        told = f"{FEW} vendors publish, page of {PAGE:,}"
        await _compare(f"{told}: {FEW} licences, as many", few, again, pids, rounds, seconds)
        await _compare(f"{told}: {FEW} licences, {MANY:,}", few, many, pids, rounds, seconds)
        told = f"{MANY:,} vendors publish, look of {PAGE:,}"
        await _compare(f"{told}: {FEW} licences, {MANY:,}", few_of_all, all_of_all, pids, rounds, seconds)
    finally:
        api.terminate()
        api.wait(20)


async def _fill(parts: Stack, licensors: Sequence[Publisher]) -> None:
    """The network's log as the relay would have filled it, without the vendors' own."""
    rendering, network = parts.container[EventRendering], parts.container[NetworkLog]
    each, now = EVENTS // len(licensors), parts.container[Clock].now()
    waiting: list[Published] = []
    for licensor in licensors:
        events = [
            LoggedEvent(
                number, event.id, event.type, event.subject, event.product, event.source, event.catalogue, event.version,
                now, rendering.event(event, licensor.tenant, now),
            )
            for number, event in enumerate(published(licensor, each), start=1)
        ]  # fmt: skip
        waiting.append(Published(licensor.tenant, None, LogPosition(1, each), events))
        if sum(len(one.events) for one in waiting) >= BATCH or licensor is licensors[-1]:
            assert await network.append(network_of(licensor.tenant.livemode), waiting)
            waiting = []


async def _compare(name: str, one: Shop, other: Shop, pids: dict[str, int], rounds: int, seconds: float) -> None:
    """Two readers' first page in turn."""
    asked: dict[Tenant, list[Figures]] = {one.tenant: [], other.tenant: []}
    for _ in range(rounds):
        for reader in (one, other):
            wanted = [request(f"/v1/changes?limit={PAGE}", reader.secret)]
            await load(PORT, wanted, connections=4, seconds=0.3, pids=pids)
            asked[reader.tenant].append(await load(PORT, wanted, connections=4, seconds=seconds, pids=pids))
    ratios = sorted(b.total / a.total for a, b in zip(*asked.values(), strict=True))
    tell(name, best(asked[one.tenant]))
    tell("  the other", best(asked[other.tenant]))
    sizes = [figures[0].bytes for figures in asked.values()]
    line(
        "  ratio, median of rounds",
        f"{statistics.median(ratios):.2f}   {ratios[0]:.2f} to {ratios[-1]:.2f}   bytes a page {sizes[0]:,.0f} and {sizes[1]:,.0f}",
    )
