"""Cost of filling the network log: time of the relay by number of vendors with new events and by number of events."""

import statistics
import time
from collections.abc import Collection, Sequence

from adapters.postgres.nodes.pool import Pool
from benchmarks.event_publisher import Publisher
from benchmarks.ingest import print_figure
from benchmarks.stack import Stack, read_cpu_seconds
from benchmarks.vendors import create_vendors, publish
from domain.changes.ports import NetworkLog
from domain.changes.usecases.network import MAX_BATCH_EVENTS, NetworkRelay
from domain.kernel.tenancy import Tenant
from ports.signals import Signals

SHAPES = ((1, 1), (20, 1), (20, 25), (1, MAX_BATCH_EVENTS), (MAX_BATCH_EVENTS, 1))
"""Numbers of vendors with new events, and of events of each; together at most one transaction of the relay."""
IDLE_VENDORS = 10_000
"""Number of further vendors without new events."""
INSERT_LOGS_SQL = """
INSERT INTO event_logs (org, livemode, epoch, last, publishes)
SELECT org, true, 1, 1, true FROM unnest(%s::text[]) AS made (org)
"""


async def measure_relay(stack: Stack, rounds: int) -> None:
    """Print the milliseconds of one pass of the relay, and the costs per transaction, vendor and event."""
    licensors = await create_vendors(stack, MAX_BATCH_EVENTS)
    relay = NetworkRelay(stack.dependencies[NetworkLog], stack.dependencies[Signals])
    shortest_times: dict[tuple[int, int], float] = {}
    for vendor_count, event_count in SHAPES:
        active_licensors = licensors[:vendor_count]
        await _relay_new_events(stack, relay, active_licensors, event_count)
        times = [await _relay_new_events(stack, relay, active_licensors, event_count) for _ in range(max(rounds, 3))]
        elapsed_times, cpu_times = zip(*times, strict=True)
        shortest_times[vendor_count, event_count] = min(elapsed_times)
        print_figure(
            f"relay: {vendor_count} vendors, {event_count} new events each",
            f"{min(elapsed_times) * 1000:8.1f} ms   median {statistics.median(elapsed_times) * 1000:.1f}   CPU {statistics.mean(cpu_times) * 1000:.1f}",
        )
    seconds_per_event = (shortest_times[1, MAX_BATCH_EVENTS] - shortest_times[1, 1]) / (MAX_BATCH_EVENTS - 1)
    seconds_per_vendor = (shortest_times[MAX_BATCH_EVENTS, 1] - shortest_times[1, MAX_BATCH_EVENTS]) / (
        MAX_BATCH_EVENTS - 1
    )
    print_figure(
        "  per transaction", f"{(shortest_times[1, 1] - seconds_per_vendor - seconds_per_event) * 1e3:8.2f} ms"
    )
    print_figure("  per vendor in a transaction", f"{seconds_per_vendor * 1e3:8.2f} ms")
    print_figure("  per event in a transaction", f"{seconds_per_event * 1e6:8.0f} µs")
    await _measure_sweeps(stack, relay, licensors)


async def _relay_new_events(
    stack: Stack, relay: NetworkRelay, licensors: Sequence[Publisher], event_count: int
) -> tuple[float, float]:
    """Publish events of the vendors and relay them; return the elapsed seconds and the CPU seconds with PostgreSQL's."""
    for licensor in licensors:
        await publish(stack, licensor, event_count)
    cpu_before = time.process_time() + read_cpu_seconds(stack.postgres_pid)
    elapsed = await _run_relay(stack, relay, {licensor.tenant for licensor in licensors})
    return elapsed, time.process_time() + read_cpu_seconds(stack.postgres_pid) - cpu_before


async def _run_relay(stack: Stack, relay: NetworkRelay, tenants: Collection[Tenant] | None) -> float:
    network = stack.dependencies[NetworkLog]
    started = time.perf_counter()
    await relay.copy_new_events(await network.list_publishers(tenants))
    return time.perf_counter() - started


async def _measure_sweeps(stack: Stack, relay: NetworkRelay, licensors: Sequence[Publisher]) -> None:
    """Print the time of a sweep of all publishers: the first one after a start, and later ones without new events."""
    idle_vendors = await create_vendors(stack, IDLE_VENDORS)
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute(INSERT_LOGS_SQL, [[vendor.tenant.org for vendor in idle_vendors]])
        await pooled.driver_connection.execute("VACUUM ANALYZE event_logs")
    first_seconds = await _run_relay(stack, relay, None)
    cpu_before = read_cpu_seconds(stack.postgres_pid)
    sweep_times = [await _run_relay(stack, relay, None) for _ in range(5)]
    label = f"first sweep of {IDLE_VENDORS + len(licensors):,} publishers"
    print_figure(
        f"relay: {label}", f"{first_seconds:8.1f} s    sweep without new events {min(sweep_times) * 1000:.1f} ms"
    )
    print_figure(
        "  CPU of PostgreSQL per sweep", f"{(read_cpu_seconds(stack.postgres_pid) - cpu_before) / 5 * 1000:8.1f} ms"
    )
