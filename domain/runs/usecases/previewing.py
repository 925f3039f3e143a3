"""What would be read of a source that is not connected yet: columns and their fields, the first products, first problems."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from domain.catalogue.model import Stream
from domain.catalogue.statements import ProductStatement
from domain.ingestion.mapping.learned import KnownMapping
from domain.ingestion.ports import (
    Connectors,
    FeedReader,
    FeedReaders,
    FetchFailed,
    Job,
    ParseFailed,
    ReaderDied,
    ReadingOrder,
)
from domain.ingestion.reading import NeedsMapping, ReadTable, SpooledRows
from domain.kernel.problems import Problem
from domain.runs.chunks import bucket_count, spool_room
from domain.runs.sheets import context_of
from domain.runs.usecases.execution import size_of
from domain.sources.model import Source
from domain.sources.testing import BYTES, HANDED_IN_BYTES, SECONDS
from ports.workspaces import Workspaces

ROWS: Final = 500
"""So many rows are read."""
PRODUCTS: Final = 6
PROBLEMS: Final = 20
Chunks: TypeAlias = AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class Preview:
    """What was read of the first `rows` rows. `failure` says why there is not more; `cut`: the feed goes on behind what was read."""

    bytes_read: int = 0
    cut: bool = False
    final_url: str | None = None
    rows: int = 0
    tables: tuple[ReadTable, ...] = ()
    products: tuple[ProductStatement, ...] = ()
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    failure: str | None = None

    @property
    def ok(self) -> bool:
        """Whether a run would find items."""
        return self.failure is None and self.rows > 0


@dataclass(frozen=True, slots=True)
class Previewing:
    """Reads the beginning of a feed, in a reader's process, within bounds of time and size; nothing is stored."""

    connectors: Connectors
    readers: FeedReaders
    workspaces: Workspaces

    async def fetched(self, source: Source, job: Job, known: tuple[KnownMapping, ...]) -> Preview:
        """Of what the source's connector fetches for this job."""
        return await self._told(source, self.connectors.fetch(source.connector, job), BYTES, known)

    async def file(self, source: Source, chunks: Chunks, known: tuple[KnownMapping, ...]) -> Preview:
        """Of a file of a source of kind file."""
        return await self._told(source, nullcontext(chunks), HANDED_IN_BYTES, known)

    async def _told(
        self, source: Source, opened: AbstractAsyncContextManager[Any], most: int, known: tuple[KnownMapping, ...]
    ) -> Preview:
        seen = Preview()
        with self.workspaces.folder() as folder:
            path = folder / "snapshot"
            try:
                async with asyncio.timeout(SECONDS):
                    async with opened as answer:
                        url = getattr(answer, "final_url", None)
                        read, cut = await _kept(getattr(answer, "chunks", answer), path, most)
                    seen = Preview(read, cut, url)
                    return await self._read(seen, source, path, known)
            except (FetchFailed, ParseFailed, ReaderDied) as error:
                return replace(seen, failure=str(error))
            except TimeoutError:
                return replace(seen, failure=f"It took longer than {SECONDS} seconds.")

    async def _read(self, seen: Preview, source: Source, path: Path, known: tuple[KnownMapping, ...]) -> Preview:
        size, packed = size_of(path)
        order = ReadingOrder(
            str(path),
            str(path.parent),
            source.connector,
            source.config,
            Stream.CATALOGUE.value,
            context_of(source, Stream.CATALOGUE),
            buckets=bucket_count(size, packed=packed),
            room=spool_room(size, packed=packed),
            known=known,
            limit=ROWS,
        )
        async with self.readers.open(order) as reader:
            try:
                spooled = await reader.spool(_unheard)
            except NeedsMapping as stopped:
                tables = stopped.tables.first
                return replace(seen, tables=tuple(tables), failure=str(stopped))
            products, problems = await _first(reader, spooled)
        return replace(
            seen,
            rows=spooled.rows,
            cut=seen.cut or spooled.rows >= ROWS,
            tables=tuple(spooled.tables.first),
            products=tuple(products[:PRODUCTS]),
            problems=(*spooled.problems, *problems)[:PROBLEMS],
            problem_count=spooled.problem_count + len(problems),
        )


async def _first(reader: FeedReader, spooled: SpooledRows) -> tuple[list[ProductStatement], list[Problem]]:
    """The products of those rows in the feed's order, and what could not be read of them."""
    found: list[tuple[int, ProductStatement]] = []
    problems: list[Problem] = []
    for bucket, held in enumerate(spooled.held):
        if not held:
            continue
        buckets = range(bucket, bucket + 1)
        gathered = await reader.gather(buckets)
        lines = {mark.key: line for mark, line in zip(gathered.fingerprints, gathered.lines, strict=True)}
        stated = await reader.states(buckets, list(lines))
        found += [(lines.get(one.key, 0), one) for one in stated.statements]
        problems += stated.problems
    return [one for _, one in sorted(found, key=lambda entry: entry[0])], problems


async def _kept(chunks: Chunks, path: Path, most: int) -> tuple[int, bool]:
    """Keep the first `most` bytes; answers how many that were, and whether there are more."""
    read = 0
    with path.open("wb") as file:
        async for chunk in chunks:
            file.write(chunk[: most - read])
            read += min(len(chunk), most - read)
            if read == most:
                return read, True
    return read, False


async def _unheard(_rows: int) -> None:
    """Nobody waits to hear how far it is."""
