"""Views of feeds for users: lines around problems, the rows of an item, and the first rows of a new feed."""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from domain.catalogue.model import Stream
from domain.catalogue.statements import ProductStatement
from domain.ingestion.mapping.learned import ConfirmedMapping
from domain.ingestion.ports import (
    Connectors,
    ConnectorTask,
    FeedLine,
    FeedReader,
    FeedReaderFactory,
    FeedReaderFailed,
    FetchFailed,
    ParseFailed,
    ReadRequest,
)
from domain.ingestion.snapshot_results import FeedExcerpt, MappedTable, MappingRequired, RowSearchResult, SpoolResult
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import Unprocessable
from domain.kernel.problems import Problem
from domain.kernel.resource import require_found
from domain.kernel.tenancy import Tenant
from domain.runs.model import Run, UploadInput
from domain.runs.ports import RunStore
from domain.runs.usecases.execution import (
    create_read_request,
    create_run_read_request,
    ignore_progress,
    load_confirmed_mappings,
)
from domain.sources import source_test
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.sources.usecases.source_tests import write_prefix
from ports.objects import ObjectMissing, ObjectStore
from ports.unit_of_work import UnitOfWork
from ports.workspaces import Workspaces

MAX_BYTES = 64 << 20
"""Maximum size of a snapshot to read, in bytes, because it must be downloaded from the object store first."""
TIMEOUT_SECONDS = 20.0
"""Time limit for reading a snapshot."""
MAX_CONCURRENT = 2
"""Maximum number of snapshots that a process reads concurrently; others wait."""
READ_AHEAD_LINES = 56
"""Number of lines that are read and cached together, because even one line requires unpacking the whole workbook."""
MAX_CACHE_CHARS = 8 << 20
"""Maximum total size in characters of the excerpts and keys in a process's cache."""
_ENTRY_OVERHEAD = 64
"""Memory overhead of a cached text, in characters."""
MAX_SEARCHED_ROWS = 200_000
"""Maximum number of rows that are searched for a product."""
MAX_FOUND_ROWS = 20
"""Maximum number of rows returned for a product."""
MAX_PREVIEW_ROWS = 500
"""Maximum number of rows of a new feed that are read."""
MAX_PREVIEW_PRODUCTS = 6
"""Maximum number of products in a preview."""
MAX_PREVIEW_PROBLEMS = 1_000
"""Maximum number of problems in a preview."""


class _TooLarge(Exception):
    """The snapshot is larger than MAX_BYTES."""


@dataclass(frozen=True, slots=True)
class _SnapshotOpener:
    """Downloads stored snapshots and opens readers of them."""

    objects: ObjectStore
    readers: FeedReaderFactory
    workspaces: Workspaces

    @asynccontextmanager
    async def open(
        self,
        key: str,
        run: Run,
        source: Source,
        confirmed_mappings: tuple[ConfirmedMapping, ...] = (),
        limit: int | None = None,
    ) -> AsyncIterator[FeedReader]:
        """Download the snapshot with this key and yield a reader of it. Raises ObjectMissing, _TooLarge."""
        if await self.objects.get_size(key) > MAX_BYTES:
            raise _TooLarge
        with self.workspaces.create_folder() as folder:
            path = folder / "snapshot"
            with path.open("wb") as file:
                async for chunk in self.objects.read(key):
                    await asyncio.to_thread(file.write, chunk)
            async with self.readers.open(
                create_run_read_request(run, source, path, confirmed_mappings, limit)
            ) as reader:
                yield reader


_Key: TypeAlias = tuple[str, str, int, tuple[FeedLine, ...], int]
"""Key of a cache entry: key of the snapshot, run ID, version of the source, lines, and number of context rows."""


def list_problem_lines(problems: Iterable[Problem]) -> list[FeedLine]:
    """Return the distinct lines of the problems, in ascending order within each sheet."""
    lines = [(one.sheet, one.line) for one in problems if one.line is not None]
    sheet_order = {sheet: number for number, sheet in enumerate(dict.fromkeys(sheet for sheet, _ in lines))}
    return sorted(dict.fromkeys(lines), key=lambda line: (sheet_order[line[0]], line[1]))


class ExcerptReader:
    """Reads and caches excerpts of stored snapshots. An organisation can read one snapshot at a time."""

    def __init__(self, objects: ObjectStore, readers: FeedReaderFactory, workspaces: Workspaces) -> None:
        self._snapshots = _SnapshotOpener(objects, readers, workspaces)
        self._read_limit = ConcurrencyLimit(MAX_CONCURRENT)
        self._cache: OrderedDict[_Key, tuple[Sequence[FeedExcerpt], int]] = OrderedDict()
        self.cached_chars = 0
        """Total size of the cache in characters."""

    async def read_excerpts(
        self,
        org: str,
        run: Run,
        source: Source,
        lines: Sequence[FeedLine],
        first_index: int,
        count: int,
        context_rows: int = 1,
    ) -> Sequence[FeedExcerpt]:
        """Return excerpts with `count` lines and their neighbours; empty if no readable file is stored.

        Args:
            org: The organisation of the run.
            run: The run that read the file.
            source: The source of the run.
            lines: All lines that the user may request next, in the file's order; some of them are read ahead.
            first_index: Index in `lines` of the first requested line.
            count: Number of requested lines.
            context_rows: Number of neighbouring lines on each side of a line.
        """
        requested, first = lines[first_index : first_index + count], first_index - first_index % READ_AHEAD_LINES
        key = run.snapshot or (run.input.key if isinstance(run.input, UploadInput) else None)
        if not requested or key is None:
            return ()
        read_ahead = tuple(lines[first : max(first + READ_AHEAD_LINES, first_index + count)])
        found: Sequence[FeedExcerpt] = ()
        with suppress(ObjectMissing, ParseFailed, FeedReaderFailed, TimeoutError):
            async with asyncio.timeout(TIMEOUT_SECONDS):
                found = await self._read_cached(
                    org, (key, run.id, source.version, read_ahead, context_rows), run, source
                )
        return _restrict_to_lines(found, requested, context_rows)

    async def _read_cached(self, org: str, key: _Key, run: Run, source: Source) -> Sequence[FeedExcerpt]:
        if key not in self._cache:
            async with self._read_limit.slot(org):
                if key not in self._cache:  # not read by another task meanwhile
                    found: Sequence[FeedExcerpt] = ()
                    with suppress(_TooLarge):
                        async with self._snapshots.open(key[0], run, source) as reader:
                            found = await reader.read_excerpts(list(key[3]), key[4])
                    size = _measure_entry(key, found)
                    self._cache[key] = (found, size)
                    self.cached_chars += size
                    while len(self._cache) > 1 and self.cached_chars > MAX_CACHE_CHARS:
                        self.cached_chars -= self._cache.popitem(last=False)[1][1]
        self._cache.move_to_end(key)
        return self._cache[key][0]


def _measure_entry(key: _Key, found: Sequence[FeedExcerpt]) -> int:
    """Return the size of a cache entry, in characters."""
    key_size = sum(len(sheet or "") + 2 * _ENTRY_OVERHEAD for sheet, _ in key[3]) + 8 * _ENTRY_OVERHEAD
    rows = (texts for table in found for texts in (table.headers, *(cells for _, cells in table.rows)))
    return key_size + sum(_ENTRY_OVERHEAD + sum(len(text) + _ENTRY_OVERHEAD for text in texts) for texts in rows)


def _restrict_to_lines(
    tables: Sequence[FeedExcerpt], lines: Sequence[FeedLine], context_rows: int
) -> list[FeedExcerpt]:
    """Return the excerpts with only these lines and `context_rows` neighbours on each side of a line."""
    wanted = {(sheet, line + offset) for sheet, line in lines for offset in range(-context_rows, context_rows + 1)}
    found = []
    for table in tables:
        rows = tuple(row for row in table.rows if (table.sheet, row[0]) in wanted)
        if rows:
            found.append(FeedExcerpt(table.sheet, table.headers, rows))
    return found


@dataclass(frozen=True, slots=True)
class ItemRows:
    """Rows of an item that were found in a snapshot, and the run that read the snapshot."""

    run: Run
    search_result: RowSearchResult


class ItemRowFinder:
    """Finds the rows of an item in the snapshot of a source's last successful run."""

    def __init__(
        self, uow: UnitOfWork, objects: ObjectStore, readers: FeedReaderFactory, workspaces: Workspaces
    ) -> None:
        self._uow, self._snapshots = uow, _SnapshotOpener(objects, readers, workspaces)
        self._read_limit = asyncio.Semaphore(MAX_CONCURRENT)

    async def find_rows(self, tenant: Tenant, source_id: str, texts: Collection[str]) -> ItemRows:
        """Return the first rows, at most MAX_FOUND_ROWS, with a cell that equals one of the texts.

        At most MAX_SEARCHED_ROWS rows are searched.

        Args:
            tenant: The tenant of the source.
            source_id: ID of the source.
            texts: Texts that identify the item, such as its SKU.

        Raises:
            NotFound: The source does not exist.
            Unprocessable: No readable snapshot is stored, or the snapshot is too large to search within the limits.
        """
        async with self._uow.begin_reading(tenant) as tx:
            source = require_found(await tx[SourceStore].get(source_id))
            run = await tx[RunStore].find_last_successful(source.id, Stream.CATALOGUE)
            if run is None or run.snapshot is None:
                raise Unprocessable("No data of the source is stored. Start a run first.")
            mappings = await load_confirmed_mappings(tx, run)
        try:
            async with (
                self._read_limit,
                asyncio.timeout(TIMEOUT_SECONDS),
                self._snapshots.open(run.snapshot, run, source, mappings, MAX_SEARCHED_ROWS) as reader,
            ):
                return ItemRows(run, await reader.find_rows(texts, MAX_FOUND_ROWS))
        except _TooLarge:
            raise Unprocessable(
                f"The stored file of the last successful run exceeds {MAX_BYTES >> 20} MiB and cannot be searched."
            ) from None
        except ObjectMissing:
            raise Unprocessable(
                "The stored file of the last successful run no longer exists. Start a run first."
            ) from None
        except (ParseFailed, FeedReaderFailed) as error:
            raise Unprocessable(f"The stored file of the last successful run could not be read: {error}") from None
        except TimeoutError:
            raise Unprocessable(
                f"The search of the stored file took longer than {TIMEOUT_SECONDS:.0f} seconds. Try again later."
            ) from None


@dataclass(frozen=True, slots=True)
class FeedPreview:
    """First rows of a feed.

    Attributes:
        bytes_read: Number of bytes read.
        is_truncated: Whether the feed has more data than was read.
        final_url: URL of the response after redirects, if the feed was fetched.
        rows: Number of rows read.
        tables: The first rows' tables with their column mappings.
        products: The first products, at most MAX_PREVIEW_PRODUCTS.
        problems: The first problems, at most MAX_PREVIEW_PROBLEMS.
        problem_count: Number of all problems.
        failure: Why the feed could not be read further, or None.
    """

    bytes_read: int = 0
    is_truncated: bool = False
    final_url: str | None = None
    rows: int = 0
    tables: tuple[MappedTable, ...] = ()
    products: tuple[ProductStatement, ...] = ()
    problems: tuple[Problem, ...] = ()
    problem_count: int = 0
    failure: str | None = None

    @property
    def is_ok(self) -> bool:
        """True if rows were read without a failure, so that a run would probably succeed."""
        return self.failure is None and self.rows > 0


@dataclass(frozen=True, slots=True)
class FeedPreviewer:
    """Reads the first rows of feeds in a reader process, with limits on time and size; stores nothing."""

    connectors: Connectors
    readers: FeedReaderFactory
    workspaces: Workspaces

    async def preview_fetched(
        self, source: Source, task: ConnectorTask, confirmed_mappings: tuple[ConfirmedMapping, ...]
    ) -> FeedPreview:
        """Fetch data with the source's connector, and preview it."""
        return await self._preview(
            source, self.connectors.fetch(source.connector, task), source_test.MAX_FETCHED_BYTES, confirmed_mappings
        )

    async def preview_file(
        self,
        source: Source,
        chunks: AsyncIterator[bytes],
        confirmed_mappings: tuple[ConfirmedMapping, ...],
        stream: Stream = Stream.CATALOGUE,
    ) -> FeedPreview:
        """Preview a file of a source.

        Args:
            source: The source.
            chunks: The file's bytes.
            confirmed_mappings: The source's confirmed mappings.
            stream: The stream.
        """
        return await self._preview(
            source, nullcontext(chunks), source_test.MAX_SUBMITTED_BYTES, confirmed_mappings, stream
        )

    async def _preview(
        self,
        source: Source,
        opened: AbstractAsyncContextManager[Any],
        max_bytes: int,
        confirmed_mappings: tuple[ConfirmedMapping, ...],
        stream: Stream = Stream.CATALOGUE,
    ) -> FeedPreview:
        preview = FeedPreview()
        with self.workspaces.create_folder() as folder:
            path = folder / "snapshot"
            try:
                async with asyncio.timeout(source_test.TIMEOUT_SECONDS):
                    async with opened as response:
                        url = getattr(response, "final_url", None)
                        bytes_read, is_complete = await write_prefix(
                            getattr(response, "chunks", response), path, max_bytes
                        )
                    preview = FeedPreview(bytes_read, not is_complete, url)
                    request = create_read_request(source, stream, path, confirmed_mappings, MAX_PREVIEW_ROWS)
                    return await self._read(preview, request)
            except ObjectMissing:
                return replace(preview, failure="The file is no longer stored. Upload the file again.")
            except (FetchFailed, ParseFailed, FeedReaderFailed) as error:
                return replace(preview, failure=str(error))
            except TimeoutError:
                return replace(preview, failure=f"The preview took longer than {source_test.TIMEOUT_SECONDS} seconds.")

    async def _read(self, preview: FeedPreview, request: ReadRequest) -> FeedPreview:
        async with self.readers.open(request) as reader:
            try:
                spooled = await reader.spool(ignore_progress)
            except MappingRequired as stopped:
                tables = stopped.tables.listed_tables
                return replace(preview, tables=tuple(tables), failure=str(stopped))
            products, problems = await _collect_products(reader, spooled)
        return replace(
            preview,
            rows=spooled.row_count,
            is_truncated=preview.is_truncated or spooled.row_count >= MAX_PREVIEW_ROWS,
            tables=tuple(spooled.tables.listed_tables),
            products=tuple(products[:MAX_PREVIEW_PRODUCTS]),
            problems=(*spooled.problems, *problems)[:MAX_PREVIEW_PROBLEMS],
            problem_count=spooled.problem_count + len(problems),
        )


async def _collect_products(reader: FeedReader, spooled: SpoolResult) -> tuple[list[ProductStatement], list[Problem]]:
    """Return the products of the spooled rows in the feed's order, and the problems of the rows."""
    found: list[tuple[int, ProductStatement]] = []
    problems: list[Problem] = []
    for bucket, size in enumerate(spooled.bucket_sizes):
        if not size:
            continue
        buckets = range(bucket, bucket + 1)
        bucket_keys = await reader.load_keys(buckets)
        lines = {
            fingerprint.key: line for fingerprint, line in zip(bucket_keys.fingerprints, bucket_keys.lines, strict=True)
        }
        statements = await reader.load_statements(buckets, list(lines))
        found += [(lines.get(statement.key, 0), statement) for statement in statements.statements]
        problems += statements.problems
    return [statement for _, statement in sorted(found, key=lambda entry: entry[0])], problems
