"""Execution of exports: all files are written from one snapshot of the database.

A worker that takes over an export from another one starts again, with new object keys.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from domain.audit.ports import AuditLog
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.service import CatalogueService
from domain.changes.model import FeedPosition
from domain.changes.ports import FeedCursors
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.exports.layout import ExportFormat
from domain.exports.model import (
    AUDITED,
    MANIFEST,
    MAX_DURATION,
    MAX_FAILURES,
    OMITTED_ITEMS,
    PRODUCTS,
    UNCOUNTED_DATASETS,
    Export,
    ExportFile,
    ExportKind,
)
from domain.exports.ports import CompressorFactory, Datasets, ExportStore, ProductFile, ProductFileFactory
from domain.exports.usecases.expiry import expire_excess, free_objects
from domain.exports.usecases.file_writer import ExportFileWriter, ExportProgress, TooManyRows
from domain.exports.usecases.metering import REFUSED, count_exported_rows
from domain.exports.usecases.schedules import continue_schedule
from domain.exports.usecases.service import LinkedExport, find_extension
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import compute_retry_delay
from domain.kernel import retention
from domain.kernel.errors import LeaseLost, NotFound, QuotaExceeded
from domain.kernel.lines import Lines
from domain.kernel.paging import PageRequest, list_all
from domain.kernel.tenancy import AuditContext, Tenant
from domain.sources.ports import SourceStore
from domain.storage.model import StoredKind, StoredObject, build_export_key
from domain.storage.ports import StorageLedger
from domain.usage.meters import EXPORT_ROWS
from domain.usage.usecases import quota
from ports.codec import Codec
from ports.objects import ObjectStore
from ports.unit_of_work import Tx, UnitOfWork
from ports.workspaces import Workspaces

_LOG = logging.getLogger("joinery.exports")
_INTERRUPTED = "The export was interrupted several times or took too long. Create a new export."
_FAILED = (
    "The export failed several times because of the database, the object store or an internal error. The operator "
    "can find the error in the log. Create a new export later."
)
_PROGRESS_INTERVAL = 1.0
"""Seconds between two progress updates."""
MAX_CONCURRENT_EXPORTS = 2
"""Maximum number of exports that a worker writes concurrently, so that the worker can also execute runs of other tenants."""
_PAGE_SIZE = 100
"""Maximum number of products that are read, and encoded in another format than JSON Lines, at once."""
_POSTPONE_DELAY = timedelta(seconds=2)
"""Delay of an export that a worker postpones because it is busy; any worker may execute the export afterwards."""

ExportRenderer = Callable[[LinkedExport, Tenant, datetime], Mapping[str, Any]]
FeedEndReader = Callable[[Tenant], Awaitable[FeedPosition]]


@dataclass(frozen=True, slots=True)
class _WrittenExport:
    """Files of one attempt, and the cursor of the change feed at the time of their snapshot."""

    files: tuple[ExportFile, ...]
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportExecution:
    """Handler of `exports.carry_out` jobs.

    Attributes:
        compressor_factory: Creates the compressor of a file of JSON Lines.
        copier_factory: Creates the compressor of other files, which are stored as they are.
        product_file_factory: Creates files of products in other formats than JSON Lines.
        find_feed_end: Returns the current end of the change feed.
        render_export: Renders the export for the event, without links, because the permissions of endpoints are unknown.
    """

    uow: UnitOfWork
    objects: ObjectStore
    workspaces: Workspaces
    compressor_factory: CompressorFactory
    copier_factory: CompressorFactory
    product_file_factory: ProductFileFactory
    datasets: Datasets
    codec: Codec
    cursors: FeedCursors
    find_feed_end: FeedEndReader
    render_export: ExportRenderer
    lease: timedelta = timedelta(seconds=30)
    progress_interval: float = _PROGRESS_INTERVAL
    concurrency_limit: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(MAX_CONCURRENT_EXPORTS))

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Write the export, or postpone it while the worker is busy. Raises LeaseLost if another worker has taken over."""
        context = job.create_context()
        if self.concurrency_limit.locked():
            async with self.uow.begin(job.tenant, context) as tx:
                await tx[JobStore].reschedule(job, tx.now + _POSTPONE_DELAY)
            return
        async with self.concurrency_limit:
            await self._execute(job, context)

    async def _execute(self, job: ClaimedJob, context: AuditContext) -> None:
        started = await self._start_attempt(job, context)
        if started is None:
            return
        export, progress = started
        try:
            async with (
                asyncio.timeout(MAX_DURATION.total_seconds()),
                self._reporting_progress(job, context, export, progress),
            ):
                written = await self._write(job, export, progress)
            await self._complete(job, context, export, written)
        except LeaseLost:
            raise
        except TooManyRows:
            await self._fail(job, context, export, REFUSED)
        except QuotaExceeded as refusal:
            await self._fail(job, context, export, refusal.detail)
        except Exception:
            _LOG.exception("export attempt failed", extra={"export": export.id})
            await self._retry_or_fail(job, context, export)

    async def _start_attempt(self, job: ClaimedJob, context: AuditContext) -> tuple[Export, ExportProgress] | None:
        async with self.uow.begin(job.tenant, context) as tx:
            before = await tx[ExportStore].get(str(job.args["export"]), lock=True)
            if before is None or before.has_ended:
                await tx[JobStore].finish(job)
                return None
            export = before.with_crash() if job.has_expired_lease else before
            for key in before.keys:  # objects of the previous attempt
                await tx[StorageLedger].free(key)
            if export.should_give_up(tx.now):
                await self._end(tx, job, before, export.with_failure(_INTERRUPTED, tx.now))
                return None
            names = (*self._list_datasets(export), MANIFEST)
            keys = tuple(
                build_export_key(job.tenant, export.id, job.attempt, name, find_extension(export.layout, name))
                for name in names
            )
            for key in keys:
                free_after = tx.now + retention.UNFINISHED_EXPORTS
                await tx[StorageLedger].add_entry(StoredObject(key, StoredKind.EXPORT, 0, free_after))
            export = export.with_attempt(keys, tx.now)
            await tx[ExportStore].save(export)
            progress = ExportProgress(
                max_rows=await quota.get_remaining(tx, EXPORT_ROWS) if export.kind == ExportKind.PRODUCTS else None
            )
            await tx[JobStore].renew_lease(job, self.lease)
            return export, progress

    def _list_datasets(self, export: Export) -> tuple[str, ...]:
        if export.kind == ExportKind.ORGANISATION:
            return tuple(self.datasets.names)
        return (PRODUCTS, OMITTED_ITEMS) if export.layout.is_template else (PRODUCTS,)

    async def _write(self, job: ClaimedJob, export: Export, progress: ExportProgress) -> _WrittenExport:
        """Write all files from one snapshot of the database.

        The position in the network log (events of published catalogues) is read before the snapshot, because repeating events is better than missing them.
        """
        files: list[ExportFile] = []
        writer = ExportFileWriter(self.objects, progress)
        published = (await self.find_feed_end(job.tenant)).network
        with self.workspaces.create_folder() as folder:
            async with self.uow.begin_snapshot(job.tenant) as tx:
                cursor = self.cursors.sign(job.tenant, FeedPosition(await tx[EventLog].get_end(), published))
                names, keys = self._list_datasets(export), export.keys
                if export.kind == ExportKind.PRODUCTS and export.layout.format != ExportFormat.JSONL:
                    source_names = {source.id: source.name for source in await list_all(tx[SourceStore].page)}
                    file = self.product_file_factory(export.layout, source_names, folder)
                    sources: tuple[AsyncGenerator[Lines, None], ...] = (
                        self._encode_products(tx, export, file),
                        _iterate_omitted(file),
                    )
                else:
                    file = None
                    sources = tuple(self._stream_lines(tx, export, name) for name in names)
                for dataset, key, lines in zip(names, keys, sources, strict=False):
                    compressor = (self.compressor_factory if file is None else self.copier_factory)()
                    is_counted = dataset not in UNCOUNTED_DATASETS
                    files.append(await writer.write(dataset, key, lines, compressor, counts_rows=is_counted))
        manifest = self._build_manifest(files)
        files.append(await writer.write(MANIFEST, keys[-1], manifest, self.compressor_factory(), counts_rows=False))
        return _WrittenExport(tuple(files), cursor)

    def _stream_lines(self, tx: Tx, export: Export, dataset: str) -> AsyncGenerator[Lines, None]:
        if dataset != PRODUCTS:
            return self.datasets.stream_lines(tx, dataset)
        if export.copies_documents:
            return tx[CatalogueStore].stream_documents(export.filters.updated_since)
        return _stream_list(tx, export)

    async def _encode_products(self, tx: Tx, export: Export, file: ProductFile) -> AsyncGenerator[Lines, None]:
        """Yield the file of products in another format than JSON Lines. The products are encoded in a thread."""
        async with aclosing(_iterate_pages(tx, export)) as pages:
            async for documents in pages:
                yield await asyncio.to_thread(file.add, documents)
        rest = file.finish()
        while (chunk := await asyncio.to_thread(next, rest, None)) is not None:
            yield Lines(0, chunk)

    async def _build_manifest(self, files: list[ExportFile]) -> AsyncGenerator[Lines, None]:
        for file in files:
            entry = {"dataset": file.dataset, "rows": file.rows, "bytes": file.bytes, "sha256": file.sha256}
            yield Lines(1, self.codec.encode(entry) + b"\n")

    @asynccontextmanager
    async def _reporting_progress(
        self, job: ClaimedJob, context: AuditContext, export: Export, progress: ExportProgress
    ) -> AsyncIterator[None]:
        """Save the number of rows written so far, at intervals, while the context is open."""
        task = asyncio.create_task(self._report_progress(job, context, export, progress))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _report_progress(
        self, job: ClaimedJob, context: AuditContext, export: Export, progress: ExportProgress
    ) -> None:
        reported = 0
        while True:
            await asyncio.sleep(self.progress_interval)
            if progress.rows == reported:
                continue
            try:
                async with self.uow.begin(job.tenant, context) as tx:
                    await tx[ExportStore].save(export.with_rows(progress.rows))
                    await tx[JobStore].renew_lease(job, self.lease)
                reported = progress.rows
            except (LeaseLost, NotFound):
                return  # the worker that executes the jobs of this lane (queue) cancels the job
            except Exception:
                _LOG.warning("progress of an export could not be saved", exc_info=True, extra={"export": export.id})

    async def _complete(self, job: ClaimedJob, context: AuditContext, export: Export, written: _WrittenExport) -> None:
        async with self.uow.begin(job.tenant, context) as tx:
            after = export.with_success(written.files, written.cursor, tx.now)
            if export.kind == ExportKind.PRODUCTS:
                await count_exported_rows(tx, after.id, after.rows)
            for file in written.files:
                if not await tx[StorageLedger].remove_age_limit(file.key):
                    raise LeaseLost  # the files were swept, because this worker paused for too long
            await expire_excess(tx)
            await self._end(tx, job, export, after)

    async def _fail(self, job: ClaimedJob, context: AuditContext, export: Export, error: str) -> None:
        async with self.uow.begin(job.tenant, context) as tx:
            await free_objects(tx, export)
            await self._end(tx, job, export, export.with_failure(error, tx.now))

    async def _retry_or_fail(self, job: ClaimedJob, context: AuditContext, export: Export) -> None:
        """Schedule another attempt, or mark the export as failed after MAX_FAILURES attempts with an error."""
        after = export.with_retry()
        if after.failures >= MAX_FAILURES:
            await self._fail(job, context, after, _FAILED)
            return
        async with self.uow.begin(job.tenant, context) as tx:
            await tx[ExportStore].save(after)
            await tx[JobStore].reschedule(job, tx.now + compute_retry_delay(after.failures))

    async def _end(self, tx: Tx, job: ClaimedJob, before: Export, after: Export) -> None:
        """Save the export with its audit entry and event, and finish the job, in one transaction."""
        await tx[ExportStore].save(after)
        await tx[AuditLog].add(AUDITED.describe_update(before, after))
        resource = self.render_export(LinkedExport(after), tx.tenant, tx.now)
        await tx[EventLog].append([Event("export.completed", after.id, 1, resource)])
        await continue_schedule(tx, after)
        await tx[JobStore].finish(job)


async def _iterate_pages(tx: Tx, export: Export) -> AsyncGenerator[list[bytes], None]:
    """Yield the documents of the exported products, in the order of the list and page by page."""
    key: str | None = None
    service = CatalogueService()
    while True:
        page_request = PageRequest(limit=_PAGE_SIZE, key=key)
        page = await service.list_products(tx, export.filters, page_request, export.layout.sort)
        if page.items:
            yield [document.body for document in page.items]
        if not page.has_more:
            return
        key = page.next_key


async def _stream_list(tx: Tx, export: Export) -> AsyncGenerator[Lines, None]:
    async with aclosing(_iterate_pages(tx, export)) as pages:
        async for documents in pages:
            yield Lines(len(documents), b"".join(document + b"\n" for document in documents))


async def _iterate_omitted(file: ProductFile) -> AsyncGenerator[Lines, None]:
    omitted = file.list_omitted()
    while (lines := await asyncio.to_thread(next, omitted, None)) is not None:
        yield lines
