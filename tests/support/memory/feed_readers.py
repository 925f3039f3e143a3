"""Feed readers in the process itself, each call in a thread: nothing bounds what they take."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from domain.ingestion.ports import Place, ReadingOrder, Told
from domain.ingestion.reading import Excerpt, FoundRows, Gathered, Sample, SpooledRows, Stated
from domain.kernel.problems import Problem
from domain.runs.usecases.reading import SnapshotReading


class MemoryFeedReader:
    """FeedReader."""

    def __init__(self, reader: SnapshotReading) -> None:
        self._reader = reader

    async def spool(self, told: Told) -> SpooledRows:
        work = asyncio.create_task(asyncio.to_thread(self._reader.spool))
        while not (await asyncio.wait({work}, timeout=2))[0]:
            await told(self._reader.rows)
        return work.result()

    async def gather(self, buckets: range) -> Gathered:
        return await asyncio.to_thread(self._reader.gather, buckets)

    async def states(self, buckets: range, keys: Collection[str]) -> Stated:
        def stated() -> Stated:
            problems: list[Problem] = []
            return Stated(list(self._reader.statements(buckets, keys, problems)), problems)

        return await asyncio.to_thread(stated)

    async def sample(self, count: int) -> Sample:
        return await asyncio.to_thread(self._reader.sample, count)

    async def find(self, texts: Collection[str], most: int) -> FoundRows:
        return await asyncio.to_thread(self._reader.find, texts, most)

    async def excerpt(self, lines: Collection[Place], beside: int) -> Sequence[Excerpt]:
        return await asyncio.to_thread(self._reader.excerpt, lines, beside)


class MemoryFeedReaders:
    """FeedReaders."""

    def __init__(self, open_snapshot: Callable[[ReadingOrder], SnapshotReading]) -> None:
        self._open = open_snapshot

    @asynccontextmanager
    async def open(self, order: ReadingOrder) -> AsyncIterator[MemoryFeedReader]:
        reader = self._open(order)
        try:
            yield MemoryFeedReader(reader)
        finally:
            reader.close()

    async def warm(self) -> None:
        """Everything is ready."""

    async def close(self) -> None:
        """Nothing is left to be ended."""
