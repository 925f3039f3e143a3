"""Worker that reports pauses of its event loop: `python -m tests.faults.monitored_worker WHAT REPORT`.

WHAT is `worker`, `in-loop` (a worker that reads feeds on its event loop, to test the monitor) or `idle` (a loop without
work). The file REPORT contains the longest pause in seconds since the last SIGUSR1.
"""

import asyncio
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from adapters.api_json.codec import JsonCodec
from adapters.files.spool import FileSpools
from domain.ingestion.ports import Connectors, FeedReaderFactory, ProgressCallback, ReadRequest
from domain.ingestion.snapshot_results import BucketKeys, FeedStatements, SnapshotSample, SpoolResult
from domain.runs.usecases.snapshot_reader import SnapshotReader
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.logs import configure_logging
from entrypoints.settings import read_settings
from entrypoints.worker.service import run_worker
from tests.support.memory.feed_readers import MemoryFeedReader, MemoryFeedReaders

INTERVAL = 0.01


class LoopMonitor:
    """Monitor of pauses of the event loop."""

    def __init__(self, report: Path) -> None:
        self._report, self._longest = report, 0.0

    def reset(self) -> None:
        """Reset the longest pause."""
        self._longest = 0.0
        self._report.write_text("0")

    async def watch(self) -> None:
        """Measure every ten milliseconds until cancelled."""
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, self.reset)
        self.reset()
        while True:
            began = time.perf_counter()
            await asyncio.sleep(INTERVAL)
            pause = time.perf_counter() - began - INTERVAL
            if pause > self._longest:
                self._longest = pause
                self._report.write_text(f"{pause:.4f}")


class InLoopFeedReader(MemoryFeedReader):
    """FeedReader that blocks the event loop."""

    async def spool(self, on_progress: ProgressCallback) -> SpoolResult:
        return self._reader.spool()

    async def load_keys(self, buckets: range) -> BucketKeys:
        return self._reader.load_keys(buckets)

    async def load_statements(self, buckets: range, keys: Collection[str]) -> FeedStatements:
        return FeedStatements(list(self._reader.load_statements(buckets, keys, [])), [])

    async def read_sample(self, count: int) -> SnapshotSample:
        return self._reader.read_sample(count)


class InLoopFeedReaders(MemoryFeedReaders):
    """FeedReaderFactory in the test's process."""

    @asynccontextmanager
    async def open(self, request: ReadRequest) -> AsyncIterator[MemoryFeedReader]:
        async with super().open(request) as reader:
            yield InLoopFeedReader(reader._reader)


def _read_in_loop(container: Dependencies) -> None:
    readers = InLoopFeedReaders(partial(SnapshotReader, container[Connectors], JsonCodec(), FileSpools))
    container[FeedReaderFactory] = readers


async def main(what: str, report: str) -> None:
    """Run the worker with the monitor."""
    watch = asyncio.create_task(LoopMonitor(Path(report)).watch())
    if what == "idle":
        await watch
    settings = read_settings()
    configure_logging(settings.log_level)
    prepare: Callable[[Dependencies], None] = _read_in_loop if what == "in-loop" else lambda _: None
    async with open_dependencies(settings) as container:
        prepare(container)
        await run_worker(container, settings, frozenset({"runs", "webhooks"}))
    watch.cancel()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
