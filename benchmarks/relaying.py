"""What filling the network's log costs: the relay's own work for one look, by vendors that have anything new, and events."""

import statistics
import time
from collections.abc import Collection, Sequence

from adapters.postgres.nodes.pool import Pool
from benchmarks.ingest import line
from benchmarks.publishing import Publisher
from benchmarks.stack import Stack, cpu_seconds
from benchmarks.vendors import publish, vendors
from domain.changes.ports import NetworkLog
from domain.changes.usecases.network import AT_ONCE, NetworkRelay
from domain.kernel.tenancy import Tenant
from ports.signals import Signals

SHAPES = ((1, 1), (20, 1), (20, 25), (1, AT_ONCE), (AT_ONCE, 1))
"""Vendors that have something new, and events of each: one transaction's worth at most."""
OTHERS = 10_000
"""Vendors that publish as well, and have nothing new."""
SILENT = """
INSERT INTO event_logs (org, livemode, epoch, last, publishes)
SELECT org, true, 1, 1, true FROM unnest(%s::text[]) AS made (org)
"""


async def relay_figures(parts: Stack, rounds: int) -> None:
    """Milliseconds of one look, which reads each vendor's log and commits once, and what they come to for each part."""
    licensors = await vendors(parts, AT_ONCE)
    relay = NetworkRelay(parts.container[NetworkLog], parts.container[Signals])
    best: dict[tuple[int, int], float] = {}
    for count, each in SHAPES:
        asked = licensors[:count]
        await _new(parts, relay, asked, each)
        found = [await _new(parts, relay, asked, each) for _ in range(max(rounds, 3))]
        took, cpu = zip(*found, strict=True)
        best[count, each] = min(took)
        line(
            f"relay: {count} vendors, {each} new events each",
            f"{min(took) * 1000:8.1f} ms   median {statistics.median(took) * 1000:.1f}   CPU {statistics.mean(cpu) * 1000:.1f}",
        )
    event = (best[1, AT_ONCE] - best[1, 1]) / (AT_ONCE - 1)
    owner = (best[AT_ONCE, 1] - best[1, AT_ONCE]) / (AT_ONCE - 1)
    line("  a transaction", f"{(best[1, 1] - owner - event) * 1e3:8.2f} ms")
    line("  a vendor in it", f"{owner * 1e3:8.2f} ms")
    line("  an event in it", f"{event * 1e6:8.0f} µs")
    await _sweeps(parts, relay, licensors)


async def _new(parts: Stack, relay: NetworkRelay, licensors: Sequence[Publisher], each: int) -> tuple[float, float]:
    """Seconds for what the relay does once it has heard of these vendors, and of processor time (PostgreSQL's, too)."""
    for licensor in licensors:
        await publish(parts, licensor, each)
    before = time.process_time() + cpu_seconds(parts.postgres)
    took = await _looked(parts, relay, {licensor.tenant for licensor in licensors})
    return took, time.process_time() + cpu_seconds(parts.postgres) - before


async def _looked(parts: Stack, relay: NetworkRelay, among: Collection[Tenant] | None) -> float:
    network = parts.container[NetworkLog]
    began = time.perf_counter()
    await relay.relay(await network.publishers(among))
    return time.perf_counter() - began


async def _sweeps(parts: Stack, relay: NetworkRelay, licensors: Sequence[Publisher]) -> None:
    """All publishers' logs: the first time, as after a start, and again when nothing is new."""
    others = await vendors(parts, OTHERS)
    async with parts.container[Pool].owner() as link:
        await link.connection.execute(SILENT, [[one.tenant.org for one in others]])
        await link.connection.execute("VACUUM ANALYZE event_logs")
    first = await _looked(parts, relay, None)
    before = cpu_seconds(parts.postgres)
    took = [await _looked(parts, relay, None) for _ in range(5)]
    told = f"first look at {OTHERS + len(licensors):,} publishers"
    line(f"relay: {told}", f"{first:8.1f} s    a sweep with nothing new {min(took) * 1000:.1f} ms")
    line("  CPU of PostgreSQL a sweep", f"{(cpu_seconds(parts.postgres) - before) / 5 * 1000:8.1f} ms")
