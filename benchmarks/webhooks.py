"""What delivering costs and how long it takes, by a real worker and a receiver that verifies all (`make bench-webhooks`)."""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.idle import watched
from benchmarks.ingest import line
from benchmarks.publishing import Publisher
from benchmarks.receiving import Receiving, free_port, receiving
from benchmarks.reconciling import reconcile
from benchmarks.stack import CALL, Stack, cpu_seconds, stack
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import EndpointStatus, Filters
from domain.webhooks.usecases.service import WebhookService
from entrypoints.areas import webhooks
from ports.unit_of_work import UnitOfWork

ORGANISATIONS, EACH = 20, 5
PARTS = ("idle", "rate", "latency", "bad")
OUTSTANDING = 4_000
VERSION = "2026-10-04"


@dataclass(slots=True)
class Shop:
    """One endpoint, and the publisher of what it alone wants."""

    path: str
    id: str
    publisher: Publisher


@dataclass
class Bench:
    """A stack with one worker, and a receiver. `published` is when each event was committed, seconds since 1970."""

    parts: Stack
    receiver: Receiving
    pids: dict[str, int]
    round: int = 0
    shops: list[Shop] = field(default_factory=list)
    published: dict[str, float] = field(default_factory=dict)
    wanted: dict[str, list[str]] = field(default_factory=dict)

    @property
    def service(self) -> WebhookService:
        """The use cases of endpoints."""
        return self.parts.container.call(webhooks.service)

    async def open(self, urls: dict[int, str] | None = None) -> None:
        """A hundred new endpoints in place of those before; `urls` are those of some, by number, that misbehave."""
        await self._disable()
        self.round += 1
        self.shops, self.published, self.wanted = [], {}, {}
        self.receiver.forget()
        for number in range(ORGANISATIONS):
            organisation = await self.parts.organisation(f"Shops {self.round}.{number}")
            for _ in range(EACH):
                await self._add(Tenant(organisation.id, False), (urls or {}).get(len(self.shops)))
        await asyncio.sleep(1)

    async def _add(self, tenant: Tenant, url: str | None) -> None:
        path, catalogue = f"/{self.round}-{len(self.shops)}", new_id("cat")
        given = {
            "url": url or self.receiver.url(path),
            "event_types": ("*",),
            "filters": Filters(catalogues=(catalogue,)),
        }
        async with self.parts.container[UnitOfWork].begin(tenant, CALL) as tx:
            endpoint, secret = await self.service.create_with_secret(tx, given, VERSION)
        self.receiver.trust({path: [secret]})
        self.shops.append(Shop(path, endpoint.id, Publisher(tenant, catalogue)))
        self.wanted[path] = []

    async def _disable(self) -> None:
        for shop in self.shops:
            async with self.parts.container[UnitOfWork].begin(shop.publisher.tenant, CALL) as tx:
                await self.service.update(tx, shop.id, {"status": EndpointStatus.DISABLED}, None)

    async def publish(self, shop: Shop, count: int) -> None:
        """So many events that the shop wants, in one transaction."""
        events = shop.publisher.next(count)
        async with self.parts.container[UnitOfWork].begin(shop.publisher.tenant, CALL) as tx:
            await tx[EventLog].append(events)
        now = time.time()
        self.published.update((event.id, now) for event in events)
        self.wanted[shop.path] += [event.id for event in events]

    async def paced(self, rate: float, seconds: float) -> float:
        """Publish one event at a time, each shop in turn, at an even pace; answers the rate that came of it."""
        started, count = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - started) < seconds:
            if count > elapsed * rate:
                await asyncio.sleep(count / rate - elapsed)
            await self.publish(self.shops[count % len(self.shops)], 1)
            count += 1
        return count / elapsed

    async def drained(self, count: int, within: float = 30.0) -> None:
        """Until so many were received, or nothing more comes."""
        until = time.monotonic() + within
        while self.receiver.count() < count and time.monotonic() < until:
            await asyncio.sleep(0.1)

    def latencies(self, skip: Sequence[int] = ()) -> list[float]:
        """Milliseconds from commit to first receipt, sorted."""
        looked_at = {shop.path for number, shop in enumerate(self.shops) if number not in skip}
        seen: dict[str, float] = {}
        for one in self.receiver.deliveries():
            if one.endpoint in looked_at and one.id in self.published:
                seen.setdefault(one.id, (one.received - self.published[one.id]) * 1000)
        return sorted(seen.values())

    def check(self, name: str, skip: Sequence[int] = ()) -> None:
        """Tell whether all was received, in order and signed."""
        left_out = {self.shops[number].path for number in skip}
        wanted = {path: ids for path, ids in self.wanted.items() if path not in left_out}
        received = [one for one in self.receiver.deliveries() if one.endpoint in wanted]
        line(f"{name}: reconciled", str(reconcile(wanted, received)))


def quantile(values: Sequence[float], share: float) -> float:
    """Of sorted values."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


async def rate_figures(bench: Bench, seconds: float) -> None:
    """As many as one worker delivers: there is always enough to send, and never much more."""
    await bench.open()
    await bench.publish(bench.shops[0], 1)
    await bench.drained(1)
    before = {name: cpu_seconds(pid) for name, pid in bench.pids.items()}
    started, turn = time.perf_counter(), 0
    base, count = 1, 1
    while (took := time.perf_counter() - started) < seconds:
        count = bench.receiver.count()
        if len(bench.published) - count > OUTSTANDING:
            await asyncio.sleep(0.02)
            continue
        for _ in range(10):
            await bench.publish(bench.shops[turn % len(bench.shops)], 20)
            turn += 1
    done = bench.receiver.count() - base
    spent = {name: (cpu_seconds(pid) - before[name]) * 1e6 / done for name, pid in bench.pids.items()}
    cpu = "   ".join(f"{name} {micro:.0f}" for name, micro in spent.items())
    line(f"one worker, {len(bench.shops)} endpoints, {seconds:.0f} s", f"{done / took:9,.0f} deliveries/s")
    line("  CPU µs a delivery", cpu)
    await bench.drained(len(bench.published))
    bench.check("  sustained")


async def latency_figures(bench: Bench, rate: float, seconds: float, name: str = "") -> list[float]:
    """From commit to receipt at an even pace."""
    if not name:
        await bench.open()
    before = {part: cpu_seconds(pid) for part, pid in bench.pids.items()}
    paced = await bench.paced(rate, seconds)
    spent = {part: (cpu_seconds(pid) - before[part]) / seconds for part, pid in bench.pids.items()}
    await bench.drained(len(bench.published), 5.0 if name else 30.0)
    bad = BAD if name else ()
    found = bench.latencies(bad)
    line(
        f"publish to receipt{name or f' at {paced:.0f}/s'}",
        f"p50 {quantile(found, 0.5):7.1f} ms   p95 {quantile(found, 0.95):7.1f} ms   p99 {quantile(found, 0.99):7.1f} ms"
        f"   max {quantile(found, 1):7.1f} ms   over 1 s: {sum(one > 1000 for one in found)}",
    )
    line("  % of a core", "   ".join(f"{part} {100 * share:.0f}" for part, share in spent.items()))
    bench.check("  published", bad)
    return found


BAD = (0, 7)
"""Numbers of the shops that misbehave in the comparisons: of different organisations."""


async def bad_figures(bench: Bench, rate: float, seconds: float, rounds: int) -> None:
    """What the other 98 endpoints notice of a dead or hanging one, and of one that takes 14 seconds."""
    dead = f"http://127.0.0.1:{free_port()}/dead"
    slow = bench.receiver.url("/slow", after=14)
    hanging = bench.receiver.url("/hanging", do="hang")
    for name, urls in (("refusing", {0: dead, 7: slow}), ("hanging", {0: hanging, 7: slow})):
        ratios = []
        for _ in range(rounds):
            await bench.open()
            calm = await latency_figures(bench, rate, seconds, ", 98 among good ones")
            await bench.open(urls)
            found = await latency_figures(bench, rate, seconds, f", 98 beside {name}, slow")
            ratios.append(quantile(found, 0.95) / quantile(calm, 0.95))
        told = " ".join(f"{ratio:.2f}" for ratio in ratios)
        line(f"  p95 of the 98: beside one {name} and one slow", f"{statistics.median(ratios):9.2f} times  {told}")


async def idle_figures(bench: Bench, seconds: float) -> None:
    """A hundred endpoints and nothing to send."""
    await bench.open()
    await asyncio.sleep(12)  # connections tell their statistics within 10 s
    pids = {name: pid for name, pid in bench.pids.items() if name != "receiver"}
    (await watched(bench.parts, pids, seconds)).tell("idle, 100 endpoints")


async def main(told: argparse.Namespace) -> None:
    """Every figure of the command, or those that are named."""
    with receiving() as (receiver, pid):
        async with stack(JOINERY_ALLOW_PRIVATE_HOSTS="127.0.0.1") as parts:
            worker = parts.process("worker")
            try:
                bench = Bench(parts, receiver, {"worker": worker.pid, "postgres": parts.postgres, "receiver": pid})
                if "idle" in told.only:
                    await idle_figures(bench, told.seconds)
                if "rate" in told.only:
                    await rate_figures(bench, told.seconds)
                if "latency" in told.only:
                    await latency_figures(bench, told.rate, told.seconds)
                if "bad" in told.only:
                    await bad_figures(bench, told.rate, told.seconds, told.rounds)
            finally:
                worker.terminate()
                worker.wait(30)
                if log := (Path(parts.env["BENCH_HOME"]) / "worker.log").read_text("utf-8"):
                    line("the worker's log ends with", log[-2000:])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", default=list(PARTS), choices=PARTS)
    options.add_argument("--seconds", type=float, default=60.0, help="of each figure (default: 60)")
    options.add_argument("--rate", type=float, default=200.0, help="events a second for latencies (default: 200)")
    options.add_argument("--rounds", type=int, default=1, help="of each comparison (default: 1)")
    asyncio.run(main(options.parse_args()))
