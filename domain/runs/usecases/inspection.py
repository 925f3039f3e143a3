"""Snapshots read for people: lines around problems, the rows that a product was read from, the beginning of a new feed."""

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
"""Bytes of a snapshot that is read for this: it comes from the object store first."""
SECONDS = 20.0
AT_ONCE = 2
"""How many snapshots a process reads for this at a time; others wait."""
READ_AHEAD = 56
"""Places that are looked up at once: a workbook is unpacked whole for the first line of it already, so one asks for more."""
KEPT = 8 << 20
"""Characters that a process keeps of what it read last, and of what it was asked for."""
_EACH = 64
"""What a text takes beside its characters, in as many of them: there may be more texts than characters."""
LOOKED = 200_000
"""Rows among which those of a product are sought."""
MOST = 20
"""Rows of a product that are shown."""
ROWS = 500
"""Rows of a new feed that are read."""
PRODUCTS = 6
PROBLEMS = 20


class _TooLarge(Exception):
    """The snapshot has more than BYTES."""


@dataclass(frozen=True, slots=True)
class _KeptSnapshots:
    """Opens snapshots that are kept in the object store."""

    objects: Objects
    readers: FeedReaders
    workspaces: Workspaces

    @asynccontextmanager
    async def open(
        self, key: str, run: Run, source: Source, known: tuple[KnownMapping, ...] = (), limit: int | None = None
    ) -> AsyncIterator[FeedReader]:
        """Read the run's snapshot of that key. Raises ObjectMissing, _TooLarge."""
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
    """Return the lines that problems name, each once, in the file's order; sheets as they are first named."""
    named = [(one.sheet, one.line) for one in problems if one.line is not None]
    order = {sheet: number for number, sheet in enumerate(dict.fromkeys(sheet for sheet, _ in named))}
    return sorted(dict.fromkeys(named), key=lambda place: (order[place[0]], place[1]))


class Excerpting:
    """Reads lines from the snapshot that is kept; what cannot be had is left out.

    A snapshot never changes, so what was read of it last is answered again without reading. An organisation reads one
    snapshot at a time.
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
                if key not in self._kept:  # nobody else read it in the meantime
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
    """Characters that this takes, with what is around them."""
    asked = sum(len(sheet or "") + 2 * _EACH for sheet, _ in key[3]) + 8 * _EACH
    rows = (texts for table in found for texts in (table.headers, *(cells for _, cells in table.rows)))
    return asked + sum(_EACH + sum(len(text) + _EACH for text in texts) for texts in rows)


def _narrowed(tables: Sequence[Excerpt], places: Sequence[Place], beside: int) -> list[Excerpt]:
    """Those lines alone, and what stands beside them."""
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
    """Reads one source's newest snapshot for the rows that name an item."""

    def __init__(self, uow: UnitOfWork, objects: Objects, readers: FeedReaders, workspaces: Workspaces) -> None:
        self._uow, self._snapshots = uow, _KeptSnapshots(objects, readers, workspaces)
        self._room = asyncio.Semaphore(AT_ONCE)

    async def find(self, tenant: Tenant, source_id: str, texts: Collection[str]) -> Origin:
        """Find the rows with a cell that equals one of the texts.

        Raises NotFound for an unknown source, Unprocessable where there is no snapshot, or none that can be read here.
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
    """The first `rows` rows of a feed, as they were read. `failure` says why there is not more; `cut`: the feed goes on behind what was read."""

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
    """Reads the beginning of a feed, in a reader's process, within bounds of time and size; nothing is stored."""

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
