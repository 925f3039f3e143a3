"""A load over kept connections, from its own process's point of view: requests sent one after the other on each."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.stack import cpu_seconds


@dataclass(frozen=True, slots=True)
class Figures:
    """What a load came to: requests, seconds, CPU microseconds a request by process group, latencies in ms, bytes."""

    requests: int
    seconds: float
    cpu: dict[str, float]
    p50: float
    p99: float
    bytes: int

    @property
    def total(self) -> float:
        """CPU microseconds a request, all groups."""
        return sum(self.cpu.values())


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> int:
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 2"):
        raise RuntimeError(head.decode("latin-1"))
    lower = head.lower()
    at = lower.index(b"content-length: ") + 16
    length = int(lower[at : lower.index(b"\r\n", at)])
    await reader.readexactly(length)
    return length


async def load(
    port: int, requests: Sequence[bytes], *, connections: int, seconds: float, pids: dict[str, int]
) -> Figures:
    """Send for `seconds` over `connections`; `pids` name the processes whose CPU counts."""
    latencies: list[float] = []
    received = 0
    until = time.perf_counter() + seconds

    async def one(start: int) -> None:
        nonlocal received
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        index = start
        while (began := time.perf_counter()) < until:
            received = await _ask(reader, writer, requests[index % len(requests)])
            latencies.append((time.perf_counter() - began) * 1000)
            index += 1
        writer.close()

    before = {name: cpu_seconds(pid) for name, pid in pids.items()}
    started = time.perf_counter()
    await asyncio.gather(*(one(start) for start in range(connections)))
    took = time.perf_counter() - started
    count = len(latencies)
    cpu = {name: (cpu_seconds(pid) - before[name]) * 1e6 / count for name, pid in pids.items()}
    latencies.sort()
    return Figures(count, took, cpu, latencies[count // 2], latencies[int(count * 0.99)], received)
