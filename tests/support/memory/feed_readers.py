"""Feed readers in the test's process, each call in a thread, without limits."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from contextlib import asynccontextmanager

from domain.ingestion.ports import FeedLine, ProgressCallback, ReadRequest
from domain.ingestion.snapshot_results import (
    BucketKeys,
    FeedExcerpt,
    FeedStatements,
    RowSearchResult,
    SnapshotSample,
    SpoolResult,
)
from domain.kernel.problems import Problem
from domain.runs.usecases.snapshot_reader import SnapshotReader


class MemoryFeedReader:
    """FeedReader in the test's process."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader

    async def spool(self, on_progress: ProgressCallback) -> SpoolResult:
        work = asyncio.create_task(asyncio.to_thread(self._reader.spool))
        while not (await asyncio.wait({work}, timeout=2))[0]:
            await on_progress(self._reader.row_count)
        return work.result()

    async def load_keys(self, buckets: range) -> BucketKeys:
        return await asyncio.to_thread(self._reader.load_keys, buckets)

    async def load_statements(self, buckets: range, keys: Collection[str]) -> FeedStatements:
        def stated() -> FeedStatements:
            problems: list[Problem] = []
            return FeedStatements(list(self._reader.load_statements(buckets, keys, problems)), problems)

        return await asyncio.to_thread(stated)

    async def read_sample(self, count: int) -> SnapshotSample:
        return await asyncio.to_thread(self._reader.read_sample, count)

    async def find_rows(self, texts: Collection[str], max_results: int) -> RowSearchResult:
        return await asyncio.to_thread(self._reader.find_rows, texts, max_results)

    async def read_excerpts(self, lines: Collection[FeedLine], context_rows: int) -> Sequence[FeedExcerpt]:
        return await asyncio.to_thread(self._reader.read_excerpts, lines, context_rows)


class MemoryFeedReaders:
    """FeedReaderFactory in the test's process."""

    def __init__(self, open_snapshot: Callable[[ReadRequest], SnapshotReader]) -> None:
        self._open = open_snapshot

    @asynccontextmanager
    async def open(self, request: ReadRequest) -> AsyncIterator[MemoryFeedReader]:
        reader = self._open(request)
        try:
            yield MemoryFeedReader(reader)
        finally:
            reader.close()

    async def prepare(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""
