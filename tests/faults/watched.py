"""A worker that tells how long its event loop paused: `python -m tests.faults.watched WHAT REPORT`.

WHAT is `worker`, `in-loop` (a worker that reads feeds on its own loop, to see that the watch sees it) or `idle` (a loop
without work). The file REPORT holds the longest pause in seconds since the process was last sent SIGUSR1.
"""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from adapters.files.spool import FileSpools
from adapters.wire.codec import JsonCodec
from domain.ingestion.ports import Connectors, FeedReaders, ReadingOrder, Told
from domain.ingestion.reading import Gathered, Sample, SpooledRows, Stated
from domain.runs.usecases.reading import SnapshotReading
from entrypoints.container import opened
from entrypoints.dependencies import Dependencies
from entrypoints.logs import configure
from entrypoints.settings import from_environment
from entrypoints.worker.service import run_worker
from tests.support.memory.feed_readers import MemoryFeedReader, MemoryFeedReaders

EVERY = 0.01


class Pauses:
    """How long the loop was away."""

    def __init__(self, report: Path) -> None:
        self._report, self._longest = report, 0.0

    def reset(self) -> None:
        """Begin anew."""
        self._longest = 0.0
        self._report.write_text("0")

    async def watch(self) -> None:
        """Look every ten milliseconds, for good."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.reset)
        self.reset()
        while True:
            began = time.perf_counter()
            await asyncio.sleep(EVERY)
            pause = time.perf_counter() - began - EVERY
            if pause > self._longest:
                self._longest = pause
                self._report.write_text(f"{pause:.4f}")


class InLoop(MemoryFeedReader):
    """FeedReader that works on the loop."""

    async def spool(self, told: Told) -> SpooledRows:
        return self._reader.spool()

    async def gather(self, buckets: range) -> Gathered:
        return self._reader.gather(buckets)

    async def states(self, buckets: range, keys: Collection[str]) -> Stated:
        return Stated(list(self._reader.statements(buckets, keys, [])), [])

    async def sample(self, count: int) -> Sample:
        return self._reader.sample(count)


class InLoopReaders(MemoryFeedReaders):
    """FeedReaders."""

    @asynccontextmanager
    async def open(self, order: ReadingOrder) -> AsyncIterator[MemoryFeedReader]:
        async with super().open(order) as reader:
            yield InLoop(reader._reader)


def _read_in_loop(container: Dependencies) -> None:
    readers = InLoopReaders(partial(SnapshotReading, container[Connectors], JsonCodec(), FileSpools))
    container[FeedReaders] = readers


async def main(what: str, report: str) -> None:
    """Run it, and watch."""
    watch = asyncio.create_task(Pauses(Path(report)).watch())
    if what == "idle":
        await watch
    settings = from_environment()
    configure(settings.log_level)
    prepare: Callable[[Dependencies], None] = _read_in_loop if what == "in-loop" else lambda _: None
    async with opened(settings) as container:
        prepare(container)
        await run_worker(container, settings, frozenset({"runs", "webhooks"}))
    watch.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
