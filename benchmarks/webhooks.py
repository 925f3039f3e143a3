"""Throughput and latency of webhook deliveries with a real worker and a verifying receiver (`make bench-webhooks`)."""

import argparse
import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.delivery_reconciliation import reconcile
from benchmarks.event_publisher import Publisher
from benchmarks.idle_usage import measure_idle_usage
from benchmarks.ingest import print_figure
from benchmarks.receiver_client import ReceiverClient, find_free_port, running_receiver
from benchmarks.stack import AUDIT_CONTEXT, Stack, read_cpu_seconds, running_stack
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import EndpointStatus, Filters
from domain.webhooks.usecases.service import WebhookService
from entrypoints.areas import webhooks
from ports.unit_of_work import UnitOfWork

ORGANISATIONS, ENDPOINTS_PER_ORGANISATION = 20, 5
MEASUREMENTS = ("idle", "rate", "latency", "bad")
MAX_OUTSTANDING = 4_000
API_VERSION = "2026-10-04"


@dataclass(slots=True)
class EndpointSetup:
    """Endpoint with a publisher whose events only this endpoint receives.

    Attributes:
        path: Path at the receiver.
        id: ID of the endpoint.
        publisher: Publisher of the events.
    """

    path: str
    id: str
    publisher: Publisher


@dataclass
class WebhookBench:
    """Service with one worker, a receiver, and a set of endpoints.

    Attributes:
        stack: Settings and dependencies.
        receiver: Client of the receiver.
        pids: Process IDs, by name.
        round: Number of the current set of endpoints.
        endpoints: Current endpoints.
        committed_at: Unix time at which each event was committed, by ID.
        expected_ids: IDs of the expected events, by path.
    """

    stack: Stack
    receiver: ReceiverClient
    pids: dict[str, int]
    round: int = 0
    endpoints: list[EndpointSetup] = field(default_factory=list)
    committed_at: dict[str, float] = field(default_factory=dict)
    expected_ids: dict[str, list[str]] = field(default_factory=dict)

    @property
    def service(self) -> WebhookService:
        """Service that manages endpoints."""
        return self.stack.dependencies.call(webhooks.create_webhook_service)

    async def create_endpoints(self, urls: dict[int, str] | None = None) -> None:
        """Disable the previous endpoints and create a hundred new ones.

        Args:
            urls: URLs of misbehaving endpoints, by number.
        """
        await self._disable_endpoints()
        self.round += 1
        self.endpoints, self.committed_at, self.expected_ids = [], {}, {}
        self.receiver.clear_deliveries()
        for number in range(ORGANISATIONS):
            organisation = await self.stack.create_organisation(f"Shops {self.round}.{number}")
            for _ in range(ENDPOINTS_PER_ORGANISATION):
                await self._create_endpoint(Tenant(organisation.id, False), (urls or {}).get(len(self.endpoints)))
        await asyncio.sleep(1)

    async def _create_endpoint(self, tenant: Tenant, url: str | None) -> None:
        path, catalogue = f"/{self.round}-{len(self.endpoints)}", new_id("cat")
        fields = {
            "url": url or self.receiver.url(path),
            "event_types": ("*",),
            "filters": Filters(catalogues=(catalogue,)),
        }
        async with self.stack.dependencies[UnitOfWork].begin(tenant, AUDIT_CONTEXT) as tx:
            created, secret = await self.service.create_with_secret(tx, fields, API_VERSION)
        self.receiver.set_secrets({path: [secret]})
        self.endpoints.append(EndpointSetup(path, created.id, Publisher(tenant, catalogue)))
        self.expected_ids[path] = []

    async def _disable_endpoints(self) -> None:
        for endpoint in self.endpoints:
            async with self.stack.dependencies[UnitOfWork].begin(endpoint.publisher.tenant, AUDIT_CONTEXT) as tx:
                await self.service.update(tx, endpoint.id, {"status": EndpointStatus.DISABLED}, None)

    async def publish(self, endpoint: EndpointSetup, count: int) -> None:
        """Commit events for the endpoint in one transaction."""
        events = endpoint.publisher.generate_events(count)
        async with self.stack.dependencies[UnitOfWork].begin(endpoint.publisher.tenant, AUDIT_CONTEXT) as tx:
            await tx[EventLog].append(events)
        commit_time = time.time()
        self.committed_at.update((event.id, commit_time) for event in events)
        self.expected_ids[endpoint.path] += [event.id for event in events]

    async def publish_at_rate(self, rate: float, seconds: float) -> float:
        """Publish single events for all endpoints in turn at an even rate; return the rate that was achieved."""
        started, count = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - started) < seconds:
            if count > elapsed * rate:
                await asyncio.sleep(count / rate - elapsed)
            await self.publish(self.endpoints[count % len(self.endpoints)], 1)
            count += 1
        return count / elapsed

    async def wait_for_deliveries(self, count: int, max_wait_seconds: float = 30.0) -> None:
        """Wait until `count` deliveries were received, for at most `max_wait_seconds`."""
        deadline = time.monotonic() + max_wait_seconds
        while self.receiver.count_deliveries() < count and time.monotonic() < deadline:
            await asyncio.sleep(0.1)

    def compute_latencies(self, ignored_endpoints: Sequence[int] = ()) -> list[float]:
        """Return the sorted milliseconds from the commit of each event to its first receipt, without the ignored endpoints."""
        paths = {endpoint.path for number, endpoint in enumerate(self.endpoints) if number not in ignored_endpoints}
        latencies: dict[str, float] = {}
        for delivery in self.receiver.deliveries():
            if delivery.endpoint in paths and delivery.id in self.committed_at:
                latencies.setdefault(delivery.id, (delivery.received - self.committed_at[delivery.id]) * 1000)
        return sorted(latencies.values())

    def print_reconciliation(self, name: str, ignored_endpoints: Sequence[int] = ()) -> None:
        """Print whether all events were received, in order and with valid signatures, without the ignored endpoints."""
        ignored_paths = {self.endpoints[number].path for number in ignored_endpoints}
        expected_ids = {path: ids for path, ids in self.expected_ids.items() if path not in ignored_paths}
        received = [delivery for delivery in self.receiver.deliveries() if delivery.endpoint in expected_ids]
        print_figure(f"{name}: reconciliation", str(reconcile(expected_ids, received)))


def compute_quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile of sorted values; nan without values."""
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("nan")


async def measure_rate(bench: WebhookBench, seconds: float) -> None:
    """Print the deliveries a second of one worker that always has up to MAX_OUTSTANDING events to deliver."""
    await bench.create_endpoints()
    await bench.publish(bench.endpoints[0], 1)
    await bench.wait_for_deliveries(1)
    cpu_before = {name: read_cpu_seconds(pid) for name, pid in bench.pids.items()}
    started, batch_number = time.perf_counter(), 0
    warm_up_count, received_count = 1, 1
    while (elapsed := time.perf_counter() - started) < seconds:
        received_count = bench.receiver.count_deliveries()
        if len(bench.committed_at) - received_count > MAX_OUTSTANDING:
            await asyncio.sleep(0.02)
            continue
        for _ in range(10):
            await bench.publish(bench.endpoints[batch_number % len(bench.endpoints)], 20)
            batch_number += 1
    delivery_count = bench.receiver.count_deliveries() - warm_up_count
    cpu_used = {
        name: (read_cpu_seconds(pid) - cpu_before[name]) * 1e6 / delivery_count for name, pid in bench.pids.items()
    }
    cpu = "   ".join(f"{name} {microseconds:.0f}" for name, microseconds in cpu_used.items())
    print_figure(
        f"one worker, {len(bench.endpoints)} endpoints, {seconds:.0f} s",
        f"{delivery_count / elapsed:9,.0f} deliveries/s",
    )
    print_figure("  CPU µs per delivery", cpu)
    await bench.wait_for_deliveries(len(bench.committed_at))
    bench.print_reconciliation("  at maximum rate")


async def measure_latencies(bench: WebhookBench, rate: float, seconds: float, name: str = "") -> list[float]:
    """Publish events at an even rate and print the latencies from commit to receipt.

    Args:
        bench: Benchmark.
        rate: Events a second.
        seconds: Duration.
        name: Label of a comparison, for which the caller has created the endpoints; new endpoints are created without
            it.

    Returns:
        The sorted latencies in milliseconds.
    """
    if not name:
        await bench.create_endpoints()
    cpu_before = {process: read_cpu_seconds(pid) for process, pid in bench.pids.items()}
    actual_rate = await bench.publish_at_rate(rate, seconds)
    cpu_used = {process: (read_cpu_seconds(pid) - cpu_before[process]) / seconds for process, pid in bench.pids.items()}
    await bench.wait_for_deliveries(len(bench.committed_at), 5.0 if name else 30.0)
    ignored_endpoints = MISBEHAVING_ENDPOINTS if name else ()
    latencies = bench.compute_latencies(ignored_endpoints)
    print_figure(
        f"commit to receipt{name or f' at {actual_rate:.0f}/s'}",
        f"p50 {compute_quantile(latencies, 0.5):7.1f} ms   p95 {compute_quantile(latencies, 0.95):7.1f} ms   p99 {compute_quantile(latencies, 0.99):7.1f} ms"
        f"   max {compute_quantile(latencies, 1):7.1f} ms   over 1 s: {sum(latency > 1000 for latency in latencies)}",
    )
    print_figure("  % of a core", "   ".join(f"{process} {100 * share:.0f}" for process, share in cpu_used.items()))
    bench.print_reconciliation("  at an even rate", ignored_endpoints)
    return latencies


MISBEHAVING_ENDPOINTS = (0, 7)
"""Numbers of the endpoints that misbehave in the comparisons; they belong to different organisations."""


async def compare_misbehaving_receivers(bench: WebhookBench, rate: float, seconds: float, rounds: int) -> None:
    """Print how the latencies of 98 endpoints change if one endpoint is dead or hangs, and another takes 14 seconds."""
    dead_url = f"http://127.0.0.1:{find_free_port()}/dead"
    slow_url = bench.receiver.url("/slow", after=14)
    hanging_url = bench.receiver.url("/hanging", do="hang")
    for name, urls in (("refusing", {0: dead_url, 7: slow_url}), ("hanging", {0: hanging_url, 7: slow_url})):
        ratios = []
        for _ in range(rounds):
            await bench.create_endpoints()
            normal_latencies = await measure_latencies(bench, rate, seconds, ", 98 endpoints, no misbehaving ones")
            await bench.create_endpoints(urls)
            disturbed_latencies = await measure_latencies(
                bench, rate, seconds, f", 98 endpoints, one {name} and one slow"
            )
            ratios.append(compute_quantile(disturbed_latencies, 0.95) / compute_quantile(normal_latencies, 0.95))
        ratio_texts = " ".join(f"{ratio:.2f}" for ratio in ratios)
        print_figure(
            f"  ratio of p95, one {name} and one slow", f"{statistics.median(ratios):9.2f}   rounds {ratio_texts}"
        )


async def measure_idle_worker(bench: WebhookBench, seconds: float) -> None:
    """Print the load of the worker and the database with a hundred endpoints and no events."""
    await bench.create_endpoints()
    await asyncio.sleep(12)  # connections report their statistics within 10 s
    pids = {name: pid for name, pid in bench.pids.items() if name != "receiver"}
    (await measure_idle_usage(bench.stack, pids, seconds)).print_report("100 endpoints without events")


async def main(arguments: argparse.Namespace) -> None:
    """Run the selected measurements."""
    with running_receiver() as (receiver, pid):
        async with running_stack(JOINERY_ALLOW_PRIVATE_HOSTS="127.0.0.1") as stack:
            worker = stack.start_process("worker")
            try:
                bench = WebhookBench(
                    stack, receiver, {"worker": worker.pid, "postgres": stack.postgres_pid, "receiver": pid}
                )
                if "idle" in arguments.only:
                    await measure_idle_worker(bench, arguments.seconds)
                if "rate" in arguments.only:
                    await measure_rate(bench, arguments.seconds)
                if "latency" in arguments.only:
                    await measure_latencies(bench, arguments.rate, arguments.seconds)
                if "bad" in arguments.only:
                    await compare_misbehaving_receivers(bench, arguments.rate, arguments.seconds, arguments.rounds)
            finally:
                worker.terminate()
                worker.wait(30)
                if log := (Path(stack.env["BENCH_HOME"]) / "worker.log").read_text("utf-8"):
                    print_figure("end of the worker's log", log[-2000:])


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", default=list(MEASUREMENTS), choices=MEASUREMENTS)
    options.add_argument("--seconds", type=float, default=60.0, help="seconds per measurement (default: 60)")
    options.add_argument(
        "--rate", type=float, default=200.0, help="events a second for the measurement of latencies (default: 200)"
    )
    options.add_argument("--rounds", type=int, default=1, help="rounds per comparison (default: 1)")
    asyncio.run(main(options.parse_args()))
