"""Excerpts of snapshots: the size of the cache, and fairness between organisations."""

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest

from domain.catalogue.model import Stream
from domain.ingestion.ports import FeedLine, FeedReader, FeedReaderFactory, ReadRequest
from domain.ingestion.snapshot_results import FeedExcerpt
from domain.runs.model import Run, RunStatus, RunTrigger
from domain.runs.usecases.snapshot_views import MAX_CACHE_CHARS, ExcerptReader
from tests.support.builders import source
from tests.support.memory.objects import MemoryObjects

pytestmark = pytest.mark.asyncio
NOW = datetime(2026, 11, 23, tzinfo=UTC)


class PausingReaders:
    """Feed readers that return `excerpts` once `released` is set; `requests` are the lines that were read."""

    def __init__(self, excerpts: Sequence[FeedExcerpt] = ()) -> None:
        self.excerpts, self.requests, self.released = excerpts, list[Collection[FeedLine]](), asyncio.Event()
        self.released.set()

    @asynccontextmanager
    async def open(self, order: ReadRequest) -> AsyncIterator[FeedReader]:
        yield cast("FeedReader", self)

    async def read_excerpts(self, lines: Collection[FeedLine], context_rows: int) -> Sequence[FeedExcerpt]:
        self.requests.append(lines)
        await self.released.wait()
        return self.excerpts


class FakeWorkspaces:
    """Workspaces in one folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def create_folder(self) -> Iterator[Path]:
        yield self._path


def _create_run(number: int = 1) -> Run:
    return Run(
        f"run_{number}", "src_1", RunTrigger.MANUAL, Stream.CATALOGUE, RunStatus.SUCCEEDED, NOW, snapshot="snapshot"
    )


async def _create_reader(readers: PausingReaders, folder: Path) -> ExcerptReader:
    objects = MemoryObjects()

    async def content() -> AsyncIterator[bytes]:
        yield b"sku\n1\n"

    await objects.put_stream("snapshot", content())
    return ExcerptReader(objects, cast("FeedReaderFactory", readers), FakeWorkspaces(folder))


async def test_the_cache_is_bounded_without_results(tmp_path: Path) -> None:
    readers = PausingReaders()
    reader, name = await _create_reader(readers, tmp_path), "s" * 8_000

    for line in range(2_000):
        assert await reader.read_excerpts("org_1", _create_run(), source(), [(f"{name}{line}", line)], 0, 1) == []

    before = len(readers.requests)
    await reader.read_excerpts("org_1", _create_run(), source(), [(f"{name}1999", 1_999)], 0, 1)
    assert len(readers.requests) == before  # the last excerpt is cached
    await reader.read_excerpts("org_1", _create_run(), source(), [(f"{name}0", 0)], 0, 1)
    assert len(readers.requests) == before + 1  # the first excerpt was evicted
    assert reader.cached_chars < MAX_CACHE_CHARS


async def test_the_cache_counts_headers_and_short_cells(tmp_path: Path) -> None:
    wide = FeedExcerpt(None, tuple("h" * 120 for _ in range(200)), ((1, ("",) * 200),))
    reader = await _create_reader(readers := PausingReaders([wide]), tmp_path)

    for number in range(400):
        await reader.read_excerpts("org_1", _create_run(number), source(), [(None, 1)], 0, 1)

    await reader.read_excerpts("org_1", _create_run(0), source(), [(None, 1)], 0, 1)
    assert len(readers.requests) == 401 and reader.cached_chars < MAX_CACHE_CHARS


async def test_an_organisation_with_many_requests_blocks_no_other(tmp_path: Path) -> None:
    reader = await _create_reader(readers := PausingReaders(), tmp_path)
    readers.released.clear()
    pending = [
        asyncio.create_task(reader.read_excerpts("org_1", _create_run(), source(), [(None, line)], 0, 1))
        for line in range(1, 50)
    ]
    await asyncio.sleep(0)

    other = asyncio.create_task(reader.read_excerpts("org_2", _create_run(2), source(), [(None, 7)], 0, 1))
    for _ in range(100):
        await asyncio.sleep(0.01)
    assert readers.requests == [[(None, 1)], [(None, 7)]]

    readers.released.set()
    await asyncio.gather(other, *pending)
    assert len(readers.requests) == 50
