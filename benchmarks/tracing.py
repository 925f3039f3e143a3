"""What tracing costs a request: the CPU of one that does nothing else, without a collector, with one, and with one that hangs.

`python -m benchmarks.tracing [ROUNDS]`; needs the extra `otlp`. The application is in memory and called without a network; the
collector is in the same process, so that what it takes to read what it is told is counted, too.
"""

import asyncio
import statistics
import sys
import time

from adapters.otlp.telemetry import OtlpTelemetry
from ports.telemetry import Tracing
from tests.http.fakes import running
from tests.support.collector import collecting

AT_ONCE = 500


async def seconds(tracing: Tracing | None) -> float:
    """CPU seconds a request, those of the exporting thread included."""
    async with running(areas=(), tracing=tracing) as world:
        client = await world.client("Elm")
        for _ in range(50):
            await client.get("/v1/nothing")
        began = time.process_time()
        for _ in range(AT_ONCE):
            await client.get("/v1/nothing")
        return (time.process_time() - began) / AT_ONCE


async def main(rounds: int) -> None:
    """A line a figure: the median of rounds in turn, in microseconds."""
    with collecting() as taking, collecting() as hanging:
        hanging.hangs.set()
        telemetry = [OtlpTelemetry(one.url, "joinery-bench", "0") for one in (taking, hanging)]
        ways: dict[str, Tracing | None] = {
            "no collector": None,
            "a collector": telemetry[0].tracing,
            "one that hangs": telemetry[1].tracing,
        }
        found: dict[str, list[float]] = {way: [] for way in ways}
        for _ in range(rounds):
            for way, tracing in ways.items():
                found[way].append(await seconds(tracing))
        for way, values in found.items():
            print(f"{statistics.median(values) * 1e6:8.1f} µs a request, {way} (least {min(values) * 1e6:.1f})")
        await asyncio.gather(*(one.close() for one in telemetry))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 7))
