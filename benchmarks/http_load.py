"""Load generator for HTTP: sends requests one after the other over several persistent connections."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.stack import read_cpu_seconds


@dataclass(frozen=True, slots=True)
class LoadResult:
    """Result of a load.

    Attributes:
        requests: Number of requests.
        seconds: Elapsed seconds.
        cpu_by_process: CPU microseconds per request, by name of the process.
        p50: Median latency in milliseconds.
        p99: 99th percentile of the latency in milliseconds.
        response_bytes: Length of the last response body.
    """

    requests: int
    seconds: float
    cpu_by_process: dict[str, float]
    p50: float
    p99: float
    response_bytes: int

    @property
    def total_cpu(self) -> float:
        """CPU microseconds per request of all processes."""
        return sum(self.cpu_by_process.values())


async def _send_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(head.decode("latin-1"))
    lower_head = head.lower()
    length_start = lower_head.index(b"content-length: ") + 16
    length = int(lower_head[length_start : lower_head.index(b"\r\n", length_start)])
    await reader.readexactly(length)
    return length


async def run_load(
    port: int, requests: Sequence[bytes], *, connections: int, seconds: float, pids: dict[str, int]
) -> LoadResult:
    """Send the requests in a cycle on each connection for `seconds`, and measure the CPU of the processes `pids`."""
    latencies: list[float] = []
    response_bytes = 0
    deadline = time.perf_counter() + seconds

    async def send_requests(start: int) -> None:
        nonlocal response_bytes
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        index = start
        while (request_started := time.perf_counter()) < deadline:
            response_bytes = await _send_request(reader, writer, requests[index % len(requests)])
            latencies.append((time.perf_counter() - request_started) * 1000)
            index += 1
        writer.close()

    cpu_before = {name: read_cpu_seconds(pid) for name, pid in pids.items()}
    started = time.perf_counter()
    await asyncio.gather(*(send_requests(start) for start in range(connections)))
    elapsed = time.perf_counter() - started
    count = len(latencies)
    cpu = {name: (read_cpu_seconds(pid) - cpu_before[name]) * 1e6 / count for name, pid in pids.items()}
    latencies.sort()
    return LoadResult(count, elapsed, cpu, latencies[count // 2], latencies[int(count * 0.99)], response_bytes)
