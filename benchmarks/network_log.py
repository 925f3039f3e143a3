"""Delays until published events are in the network log and at readers, and the cost of reading by licences."""

import asyncio
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from adapters.postgres.nodes.pool import Pool
from benchmarks.event_publisher import Publisher
from benchmarks.feed_readers import SeenEvent, StreamReader, compare_with_table
from benchmarks.http_load import LoadResult, run_load
from benchmarks.ingest import print_figure
from benchmarks.log_row_holds import measure_row_holds
from benchmarks.read import build_request, find_cheapest_round, print_load_result
from benchmarks.receiver_client import ReceiverClient, running_receiver
from benchmarks.relay_costs import measure_relay
from benchmarks.stack import AUDIT_CONTEXT, Stack, read_cpu_seconds, running_stack
from benchmarks.vendors import LicenceHolder, create_licence_holder, create_vendors, generate_published_events, publish
from benchmarks.webhooks import API_VERSION, compute_quantile
from benchmarks.write import wait_until_ready
from domain.changes.model import get_network_tenant
from domain.changes.ports import EventRendering, NetworkLog, PublishedEvents
from domain.events.model import LoggedEvent, LogPosition
from domain.kernel.tenancy import Tenant
from entrypoints.areas import webhooks
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

PORT = 18_988
PUBLISHER_COUNT, CONCURRENT_PUBLISHERS = 100, 4
FEW_LICENCES, MANY_LICENCES = 10, 10_000
EVENT_COUNT, PAGE_SIZE, BATCH_SIZE = 20_000, 1_000, 500
COMMIT_TIMES_SQL = """
SELECT n.id, n.subject, n.version, extract(epoch FROM pg_xact_commit_timestamp(o.xmin))::float8,
    extract(epoch FROM pg_xact_commit_timestamp(n.xmin))::float8
FROM events n JOIN events o ON o.id = n.id AND o.org <> n.org AND o.org = n.owner
WHERE n.org = 'network' AND NOT n.livemode ORDER BY n.position
"""


@dataclass
class TimedStream(StreamReader):
    """Reader of the event stream that records the time of receipt of each event.

    Attributes:
        received: Unix time at which each event was received first, by ID.
    """

    received: dict[str, float] = field(default_factory=dict)

    def _record_event(self, fields: dict[str, str]) -> None:
        known_count = len(self.events)
        super()._record_event(fields)
        for event in self.events[known_count:]:
            self.received.setdefault(event.id, time.time())


async def measure_network_log(rounds: int, seconds: float, events_per_second: float, lag_seconds: float) -> None:
    """Run the measurements of the network log, each with a new database."""
    async with running_stack(port=PORT) as stack:
        await measure_row_holds(stack)
        await measure_relay(stack, rounds)
    async with running_stack(port=PORT) as stack:
        await measure_pages(stack, rounds, seconds)
    settings = {"track_commit_timestamp": "on"}
    async with running_stack(port=PORT, postgres_settings=settings, JOINERY_ALLOW_PRIVATE_HOSTS="127.0.0.1") as stack:
        with running_receiver() as (receiver, _):
            await measure_lags(stack, receiver, events_per_second, lag_seconds)


async def measure_lags(stack: Stack, receiver: ReceiverClient, events_per_second: float, seconds: float) -> None:
    """Print the delays from a vendor's commit to the network log, to the stream of a licence holder and to its webhook.

    Events are published in test mode, because webhooks of live mode require HTTPS.
    """
    licensors = await create_vendors(stack, PUBLISHER_COUNT, livemode=False)
    licence_holder = await create_licence_holder(stack, "Follower", licensors)
    await _create_endpoint(stack, licence_holder, receiver)
    processes = {name: stack.start_process(name) for name in ("api", "worker", "scheduler")}
    try:
        await wait_until_ready(PORT, 60)
        stream = TimedStream(f"http://127.0.0.1:{PORT}", licence_holder.secret)
        task = asyncio.create_task(stream.run())
        warm_up_count = await _warm_up(stack, licensors, stream, receiver)
        pids = {name: process.pid for name, process in processes.items()} | {"postgres": stack.postgres_pid}
        cpu_before = {name: read_cpu_seconds(pid) for name, pid in pids.items()}
        event_ids, elapsed = await _publish_at_random(stack, licensors, events_per_second, seconds)
        cpu_used = {name: (read_cpu_seconds(pid) - cpu_before[name]) / elapsed for name, pid in pids.items()}
        await _wait_for_events(stream, receiver, warm_up_count + len(event_ids))
        task.cancel()
        print_figure(
            "network log: published events/s",
            f"{len(event_ids) / elapsed:8.0f}   by {PUBLISHER_COUNT} vendors, one event a transaction",
        )
        await _print_lag(stack, stream, receiver, frozenset(event_ids))
        print_figure("  % of a core", "   ".join(f"{process} {100 * share:.1f}" for process, share in cpu_used.items()))
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait(30)
        if log := (Path(stack.env["BENCH_HOME"]) / "scheduler.log").read_text("utf-8"):
            print_figure("end of the scheduler's log", log[-2000:])


async def _create_endpoint(stack: Stack, licence_holder: LicenceHolder, receiver: ReceiverClient) -> None:
    service = stack.dependencies.call(webhooks.create_webhook_service)
    fields = {"url": receiver.url("/shop"), "event_types": ("*",)}
    async with stack.dependencies[UnitOfWork].begin(licence_holder.tenant, AUDIT_CONTEXT) as tx:
        _, secret = await service.create_with_secret(tx, fields, API_VERSION)
    receiver.set_secrets({"/shop": [secret]})


async def _warm_up(stack: Stack, licensors: Sequence[Publisher], stream: TimedStream, receiver: ReceiverClient) -> int:
    """Wait until the stream is open, then publish one event per vendor and wait for them; return their number."""
    while not stream.calls:
        await asyncio.sleep(0.05)
    await asyncio.sleep(6)  # within this time the worker acquires the shards of its endpoints
    for licensor in licensors:
        await publish(stack, licensor, 1)
    await _wait_for_events(stream, receiver, len(licensors))
    return len(licensors)


async def _publish_at_random(
    stack: Stack, licensors: Sequence[Publisher], events_per_second: float, seconds: float
) -> tuple[list[str], float]:
    """Publish single events of all vendors at random times (Poisson process); return their IDs and the elapsed seconds."""
    random_source, ids, started = random.Random(1), [], time.perf_counter()

    async def publish_some(own_licensors: Sequence[Publisher]) -> None:
        due, number = started, 0
        while due < started + seconds:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            ids.extend(await publish(stack, own_licensors[number % len(own_licensors)], 1))
            due, number = due + random_source.expovariate(events_per_second / CONCURRENT_PUBLISHERS), number + 1

    await asyncio.gather(
        *(publish_some(licensors[number::CONCURRENT_PUBLISHERS]) for number in range(CONCURRENT_PUBLISHERS))
    )
    return ids, time.perf_counter() - started


async def _wait_for_events(
    stream: TimedStream, receiver: ReceiverClient, count: int, max_wait_seconds: float = 30.0
) -> None:
    deadline = time.monotonic() + max_wait_seconds
    while min(len(stream.received), receiver.count_deliveries()) < count and time.monotonic() < deadline:
        await asyncio.sleep(0.1)


async def _print_lag(stack: Stack, stream: TimedStream, receiver: ReceiverClient, ids: frozenset[str]) -> None:
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        cursor = await pooled.driver_connection.execute(COMMIT_TIMES_SQL)
        rows = await cursor.fetchall()
    committed = {str(row[0]): float(row[3]) for row in rows}
    logged = {str(row[0]): float(row[4]) for row in rows}
    delivery_times: dict[str, float] = {}
    for delivery in receiver.deliveries():
        delivery_times.setdefault(delivery.id, delivery.received)
    for name, receipt_times in (
        ("the network log", logged),
        ("the stream", stream.received),
        ("the webhook", delivery_times),
    ):
        _print_delays(f"  from the commit to {name}", committed, receipt_times, ids)
    table = [SeenEvent(*row[:3]) for row in rows]
    print_figure("  events in the network log", f"{len(ids & logged.keys()):,} of {len(ids):,} events")
    print_figure("  events at the stream", compare_with_table(stream.events, table))


def _print_delays(
    name: str, commit_times: Mapping[str, float], receipt_times: Mapping[str, float], event_ids: frozenset[str]
) -> None:
    delays = sorted(
        (receipt_times[event_id] - commit_times[event_id]) * 1000
        for event_id in event_ids
        if event_id in receipt_times and event_id in commit_times
    )
    percentiles = "   ".join(
        f"p{percentage} {compute_quantile(delays, percentage / 100):7.1f} ms" for percentage in (50, 95, 99)
    )
    print_figure(name, f"{percentiles}   max {compute_quantile(delays, 1):7.1f} ms   {len(delays):,} events")


async def measure_pages(stack: Stack, rounds: int, seconds: float) -> None:
    """Print the cost of a page for holders of few and of many licences.

    In live mode few vendors publish, in test mode all vendors.
    """
    live_vendors, test_vendors = (
        await create_vendors(stack, MANY_LICENCES),
        await create_vendors(stack, MANY_LICENCES, livemode=False),
    )
    await _fill_network_log(stack, live_vendors[:FEW_LICENCES])
    await _fill_network_log(stack, test_vendors)
    few_holder, other_few_holder = (
        await create_licence_holder(stack, "Few", live_vendors[:FEW_LICENCES]),
        await create_licence_holder(stack, "Few again", live_vendors[:FEW_LICENCES]),
    )
    many_holder = await create_licence_holder(stack, "Many", live_vendors)
    test_few_holder, test_all_holder = (
        await create_licence_holder(stack, "Few, test mode", test_vendors[:FEW_LICENCES]),
        await create_licence_holder(stack, "All, test mode", test_vendors),
    )
    async with stack.dependencies[Pool].connect_as_owner() as pooled:
        await pooled.driver_connection.execute("VACUUM ANALYZE")
    api = stack.start_process("api")
    pids = {"app": api.pid, "pg": stack.postgres_pid}
    try:
        await wait_until_ready(PORT, 60)
        setting = f"{FEW_LICENCES} vendors publish, page of {PAGE_SIZE:,}"
        await _compare(f"{setting}: {FEW_LICENCES} licences each", few_holder, other_few_holder, pids, rounds, seconds)
        await _compare(
            f"{setting}: {FEW_LICENCES} licences, and {MANY_LICENCES:,}", few_holder, many_holder, pids, rounds, seconds
        )
        setting = f"{MANY_LICENCES:,} vendors publish, page of {PAGE_SIZE:,}"
        await _compare(
            f"{setting}: {FEW_LICENCES} licences, and {MANY_LICENCES:,}",
            test_few_holder,
            test_all_holder,
            pids,
            rounds,
            seconds,
        )
    finally:
        api.terminate()
        api.wait(20)


async def _fill_network_log(stack: Stack, licensors: Sequence[Publisher]) -> None:
    """Append published events to the network log as the relay does, without the logs of the vendors."""
    rendering, network = stack.dependencies[EventRendering], stack.dependencies[NetworkLog]
    events_per_vendor, now = EVENT_COUNT // len(licensors), stack.dependencies[Clock].now()
    batch: list[PublishedEvents] = []
    for licensor in licensors:
        events = [
            LoggedEvent(
                number, event.id, event.type, event.subject, event.product, event.source, event.catalogue, event.version,
                now, rendering.encode_event(event, licensor.tenant, now),
            )
            for number, event in enumerate(generate_published_events(licensor, events_per_vendor), start=1)
        ]  # fmt: skip
        batch.append(PublishedEvents(licensor.tenant, None, LogPosition(1, events_per_vendor), events))
        if sum(len(published_events.events) for published_events in batch) >= BATCH_SIZE or licensor is licensors[-1]:
            assert await network.append(get_network_tenant(licensor.tenant.livemode), batch)
            batch = []


async def _compare(
    name: str, first: LicenceHolder, second: LicenceHolder, pids: dict[str, int], rounds: int, seconds: float
) -> None:
    """Print the cost of the first page for two licence holders, measured in alternating rounds."""
    results_by_tenant: dict[Tenant, list[LoadResult]] = {first.tenant: [], second.tenant: []}
    for _ in range(rounds):
        for holder in (first, second):
            requests = [build_request(f"/v1/changes?limit={PAGE_SIZE}", holder.secret)]
            await run_load(PORT, requests, connections=4, seconds=0.3, pids=pids)
            results_by_tenant[holder.tenant].append(
                await run_load(PORT, requests, connections=4, seconds=seconds, pids=pids)
            )
    ratios = sorted(
        second_result.total_cpu / first_result.total_cpu
        for first_result, second_result in zip(*results_by_tenant.values(), strict=True)
    )
    print_load_result(name, find_cheapest_round(results_by_tenant[first.tenant]))
    print_load_result("  second licence holder", find_cheapest_round(results_by_tenant[second.tenant]))
    sizes = [results[0].response_bytes for results in results_by_tenant.values()]
    print_figure(
        "  ratio, median of rounds",
        f"{statistics.median(ratios):.2f}   {ratios[0]:.2f} to {ratios[-1]:.2f}   bytes per page {sizes[0]:,.0f} and {sizes[1]:,.0f}",
    )
