"""CPU time of tracing per request: without a collector, with one, and with one that does not respond.

`python -m benchmarks.tracing [ROUNDS]`; requires the extra `otlp`. The application is in memory and called without a
network. The collector is in the same process, so that its CPU time is included.
"""

import asyncio
import statistics
import sys
import time

from adapters.otlp.telemetry import OtlpTelemetry
from ports.telemetry import Tracing
from tests.http.application import run_application
from tests.support.collector import run_collector

REQUESTS_PER_ROUND = 500


async def measure_request_seconds(tracing: Tracing | None) -> float:
    """Return the mean CPU seconds of a request, including the thread that exports spans."""
    async with run_application(areas=(), tracing=tracing) as application:
        client = await application.create_client("Elm")
        for _ in range(50):
            await client.get("/v1/nothing")
        cpu_before = time.process_time()
        for _ in range(REQUESTS_PER_ROUND):
            await client.get("/v1/nothing")
        return (time.process_time() - cpu_before) / REQUESTS_PER_ROUND


async def main(rounds: int) -> None:
    """Print the CPU microseconds of a request for each kind of collector: the median of alternating rounds."""
    with run_collector() as working_collector, run_collector() as hanging_collector:
        hanging_collector.hangs.set()
        telemetry = [OtlpTelemetry(item.url, "joinery-bench", "0") for item in (working_collector, hanging_collector)]
        tracing_by_label: dict[str, Tracing | None] = {
            "without a collector": None,
            "with a collector": telemetry[0].tracing,
            "with a collector that does not respond": telemetry[1].tracing,
        }
        durations: dict[str, list[float]] = {label: [] for label in tracing_by_label}
        for _ in range(rounds):
            for label, tracing in tracing_by_label.items():
                durations[label].append(await measure_request_seconds(tracing))
        for label, label_durations in durations.items():
            print(
                f"{statistics.median(label_durations) * 1e6:8.1f} µs per request {label} (minimum {min(label_durations) * 1e6:.1f})"
            )
        await asyncio.gather(*(item.close() for item in telemetry))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
