"""Views of snapshots for people: lines around problems, the rows of a product, the first rows of a new feed."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

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
    Place,
    ReaderDied,
)
from domain.ingestion.reading import Excerpt, FoundRows, NeedsMapping, ReadTable, SpooledRows
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import Unprocessable
from domain.kernel.problems import Problem
from domain.kernel.resource import existing
from domain.kernel.tenancy import Tenant
from domain.runs.model import Run, UploadInput
from domain.runs.ports import RunStore
from domain.runs.usecases.execution import known_to, order_of, reading_order, unheard
from domain.sources import testing
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.sources.usecases.trial import keep_beginning
from ports.objects import ObjectMissing, Objects
from ports.unit_of_work import UnitOfWork
from ports.workspaces import Workspaces

BYTES = 64 << 20
"""Maximum size of a snapshot to read, in bytes, because it must be downloaded from the object store first."""
SECONDS = 20.0
AT_ONCE = 2
"""Maximum number of snapshots that a process reads concurrently; others wait."""
READ_AHEAD = 56
"""Number of places read at once, because a workbook is unpacked completely even for one line."""
KEPT = 8 << 20
"""Maximum characters of excerpts and their keys in a process's cache."""
_ENTRY_OVERHEAD = 64
"""Overhead of a cached text, counted in characters."""
LOOKED = 200_000
"""Maximum number of rows that are searched for a product."""
MOST = 20
"""Maximum number of rows of a product."""
ROWS = 500
"""Maximum number of rows of a new feed that are read."""
PRODUCTS = 6
PROBLEMS = 20


class _TooLarge(Exception):
    """The snapshot exceeds BYTES."""


@dataclass(frozen=True, slots=True)
class _KeptSnapshots:
    """Reader of snapshots in the object store."""

    objects: Objects
    readers: FeedReaders
    workspaces: Workspaces

    @asynccontextmanager
    async def open(
        self, key: str, run: Run, source: Source, known: tuple[KnownMapping, ...] = (), limit: int | None = None
    ) -> AsyncIterator[FeedReader]:
        """Read the run's snapshot with the key. Raises ObjectMissing, _TooLarge."""
        if await self.objects.size(key) > BYTES:
            raise _TooLarge
        with self.workspaces.folder() as folder:
            path = folder / "snapshot"
            with path.open("wb") as file:
                async for chunk in self.objects.read(key):
                    await asyncio.to_thread(file.write, chunk)
            async with self.readers.open(order_of(run, source, path, known, limit)) as reader:
                yield reader


_Key: TypeAlias = tuple[str, str, int, tuple[Place, ...], int]


def places_of(problems: Iterable[Problem]) -> list[Place]:
    """Return the distinct lines of problems in the file's order; sheets in the order of their first problem."""
    named = [(one.sheet, one.line) for one in problems if one.line is not None]
    order = {sheet: number for number, sheet in enumerate(dict.fromkeys(sheet for sheet, _ in named))}
    return sorted(dict.fromkeys(named), key=lambda place: (order[place[0]], place[1]))


class Excerpting:
    """Reader of excerpts from stored snapshots; unavailable lines are left out.

    Excerpts are cached, because snapshots never change. An organisation reads one snapshot at a time.
    """

    def __init__(self, objects: Objects, readers: FeedReaders, workspaces: Workspaces) -> None:
        self._snapshots = _KeptSnapshots(objects, readers, workspaces)
        self._room = ConcurrencyLimit(AT_ONCE)
        self._kept: OrderedDict[_Key, tuple[Sequence[Excerpt], int]] = OrderedDict()
        self.kept = 0
        """Of KEPT, as much as is taken."""

    async def around(
        self, org: str, run: Run, source: Source, places: Sequence[Place], start: int, count: int, beside: int = 1
    ) -> Sequence[Excerpt]:
        """Return excerpts around `count` places from `start`, or none if no readable file is stored.

        Args:
            org: The organisation of the run.
            run: The run that read the file.
            source: The source of the run.
            places: All places to be shown, in the file's order; their surroundings are read ahead.
            start: The index of the first place.
            count: The number of places.
            beside: The number of neighbouring lines on each side.

        """
        shown, first = places[start : start + count], start - start % READ_AHEAD
        key = run.snapshot or (run.input.key if isinstance(run.input, UploadInput) else None)
        if not shown or key is None:
            return ()
        ahead = tuple(places[first : max(first + READ_AHEAD, start + count)])
        found: Sequence[Excerpt] = ()
        with suppress(ObjectMissing, ParseFailed, ReaderDied, TimeoutError):
            async with asyncio.timeout(SECONDS):
                found = await self._known(org, (key, run.id, source.version, ahead, beside), run, source)
        return _narrowed(found, shown, beside)

    async def _known(self, org: str, key: _Key, run: Run, source: Source) -> Sequence[Excerpt]:
        if key not in self._kept:
            async with self._room.slot(org):
                if key not in self._kept:  # not read by another task meanwhile
                    found: Sequence[Excerpt] = ()
                    with suppress(_TooLarge):
                        async with self._snapshots.open(key[0], run, source) as reader:
                            found = await reader.excerpt(list(key[3]), key[4])
                    size = _size(key, found)
                    self._kept[key] = (found, size)
                    self.kept += size
                    while len(self._kept) > 1 and self.kept > KEPT:
                        self.kept -= self._kept.popitem(last=False)[1][1]
        self._kept.move_to_end(key)
        return self._kept[key][0]


def _size(key: _Key, found: Sequence[Excerpt]) -> int:
    """Return the size of a cache entry, in characters."""
    asked = sum(len(sheet or "") + 2 * _ENTRY_OVERHEAD for sheet, _ in key[3]) + 8 * _ENTRY_OVERHEAD
    rows = (texts for table in found for texts in (table.headers, *(cells for _, cells in table.rows)))
    return asked + sum(_ENTRY_OVERHEAD + sum(len(text) + _ENTRY_OVERHEAD for text in texts) for texts in rows)


def _narrowed(tables: Sequence[Excerpt], places: Sequence[Place], beside: int) -> list[Excerpt]:
    """Return the excerpts limited to the places and their neighbouring lines."""
    wanted = {(sheet, line + step) for sheet, line in places for step in range(-beside, beside + 1)}
    found = []
    for table in tables:
        rows = tuple(row for row in table.rows if (table.sheet, row[0]) in wanted)
        if rows:
            found.append(Excerpt(table.sheet, table.headers, rows))
    return found


@dataclass(frozen=True, slots=True)
class Origin:
    """The run whose snapshot was read, and the rows found in it."""

    run: Run
    found: FoundRows


class OriginRows:
    """Search of a source's newest snapshot for the rows of an item."""

    def __init__(self, uow: UnitOfWork, objects: Objects, readers: FeedReaders, workspaces: Workspaces) -> None:
        self._uow, self._snapshots = uow, _KeptSnapshots(objects, readers, workspaces)
        self._room = asyncio.Semaphore(AT_ONCE)

    async def find(self, tenant: Tenant, source_id: str, texts: Collection[str]) -> Origin:
        """Find the rows with a cell that equals one of the texts.

        Raises NotFound for an unknown source; Unprocessable if no snapshot is stored or it cannot be read.
        """
        async with self._uow.read(tenant) as tx:
            source = existing(await tx[SourceStore].get(source_id))
            run = await tx[RunStore].last_good(source.id, Stream.CATALOGUE)
            if run is None or run.snapshot is None:
                raise Unprocessable("Nothing of what the source last sent is kept.")
            known = await known_to(tx, run)
        try:
            async with (
                self._room,
                asyncio.timeout(SECONDS),
                self._snapshots.open(run.snapshot, run, source, known, LOOKED) as reader,
            ):
                return Origin(run, await reader.find(texts, MOST))
        except _TooLarge:
            raise Unprocessable(
                f"What the source last sent has more than {BYTES >> 20} MiB, too much to be looked through here."
            ) from None
        except ObjectMissing:
            raise Unprocessable("What the source last sent is kept no longer.") from None
        except (ParseFailed, ReaderDied) as error:
            raise Unprocessable(f"What the source last sent could not be read again: {error}") from None
        except TimeoutError:
            raise Unprocessable(
                "Looking through what the source last sent takes too long; replay it instead."
            ) from None


@dataclass(frozen=True, slots=True)
class Preview:
    """The first `rows` rows of a feed. `failure` is the reason why there are no more; `cut`: the feed continues."""

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
        """Return whether a run would find items."""
        return self.failure is None and self.rows > 0


@dataclass(frozen=True, slots=True)
class Previewing:
    """Reader of a feed's first rows, in a reader process with limits of time and size; nothing is stored."""

    connectors: Connectors
    readers: FeedReaders
    workspaces: Workspaces

    async def fetched(self, source: Source, job: Job, known: tuple[KnownMapping, ...]) -> Preview:
        """Preview what the source's connector fetches for this job."""
        return await self._told(source, self.connectors.fetch(source.connector, job), testing.BYTES, known)

    async def file(self, source: Source, chunks: AsyncIterator[bytes], known: tuple[KnownMapping, ...]) -> Preview:
        """Preview a file of a source of kind file."""
        return await self._told(source, nullcontext(chunks), testing.HANDED_IN_BYTES, known)

    async def _told(
        self, source: Source, opened: AbstractAsyncContextManager[Any], most: int, known: tuple[KnownMapping, ...]
    ) -> Preview:
        seen = Preview()
        with self.workspaces.folder() as folder:
            path = folder / "snapshot"
            try:
                async with asyncio.timeout(testing.SECONDS):
                    async with opened as answer:
                        url = getattr(answer, "final_url", None)
                        read, whole = await keep_beginning(getattr(answer, "chunks", answer), path, most)
                    seen = Preview(read, not whole, url)
                    return await self._read(seen, source, path, known)
            except (FetchFailed, ParseFailed, ReaderDied) as error:
                return replace(seen, failure=str(error))
            except TimeoutError:
                return replace(seen, failure=f"It took longer than {testing.SECONDS} seconds.")

    async def _read(self, seen: Preview, source: Source, path: Path, known: tuple[KnownMapping, ...]) -> Preview:
        async with self.readers.open(reading_order(source, Stream.CATALOGUE, path, known, ROWS)) as reader:
            try:
                spooled = await reader.spool(unheard)
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
    """Return the products of the spooled rows in the feed's order, and the problems of the rows."""
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
