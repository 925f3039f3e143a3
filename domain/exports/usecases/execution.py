"""Execution of exports: start, writing from one snapshot, end.

A worker that takes an export over starts again with new keys.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from domain.audit.ports import AuditLog
from domain.catalogue.ports import CatalogueStore
from domain.changes.model import FeedPosition
from domain.changes.ports import FeedCursors
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.exports.model import AUDITED, FAILURES, LONGEST, MANIFEST, PRODUCTS, Export, ExportFile, ExportKind
from domain.exports.ports import Datasets, ExportStore, Packing
from domain.exports.usecases.expiry import expire, expire_older
from domain.exports.usecases.metering import REFUSED, charge
from domain.exports.usecases.service import LinkedExport
from domain.exports.usecases.writing import FileWriting, Progress, TooManyRows
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.draining import delay
from domain.kernel import retention
from domain.kernel.errors import LeaseLost, NotFound, QuotaExceeded
from domain.kernel.lines import Lines
from domain.kernel.tenancy import AuditContext, Tenant
from domain.storage.model import StoredKind, StoredObject, export_key
from domain.storage.ports import StorageLedger
from domain.usage.meters import EXPORT_ROWS
from domain.usage.usecases import quota
from ports.codec import Codec
from ports.objects import Objects
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.exports")
_DIED = "The export was interrupted several times or took too long. It is not retried."
_FAILED = (
    "The export could not be written, several times: the database or the object store gave way, or the service met an "
    "error of its own. Its operators can see it in the log; ask for a new export later."
)
_PROGRESS_INTERVAL = 1.0
"""Seconds between two progress updates."""
AT_ONCE = 2
"""Exports that a worker writes at a time, so that lanes remain for runs of other tenants."""
_BUSY = timedelta(seconds=2)
"""Delay of an export that found the worker busy; any worker may take it then."""

Describe = Callable[[LinkedExport, Tenant, datetime], Mapping[str, Any]]
Network = Callable[[Tenant], Awaitable[FeedPosition]]


@dataclass(frozen=True, slots=True)
class _Made:
    files: tuple[ExportFile, ...]
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportExecution:
    """Handler of `exports.carry_out` jobs.

    `now` returns the feed's present position; `describe` returns the resource for the event, without links, because an
    endpoint's permissions are unknown.
    """

    uow: UnitOfWork
    objects: Objects
    packing: Packing
    datasets: Datasets
    codec: Codec
    cursors: FeedCursors
    now: Network
    describe: Describe
    lease: timedelta = timedelta(seconds=30)
    told: float = _PROGRESS_INTERVAL
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Write the export, or delay it while the worker is busy. Raises LeaseLost if another worker took it over."""
        context = job.context()
        if self.turns.locked():
            async with self.uow.begin(job.tenant, context) as tx:
                await tx[JobStore].put_off(job, tx.now + _BUSY)
            return
        async with self.turns:
            await self._carry_out(job, context)

    async def _carry_out(self, job: ClaimedJob, context: AuditContext) -> None:
        begun = await self._begin(job, context)
        if begun is None:
            return
        export, progress = begun
        try:
            async with (
                asyncio.timeout(LONGEST.total_seconds()),
                self._reporting_progress(job, context, export, progress),
            ):
                made = await self._write(job, export, progress)
            await self._succeed(job, context, export, made)
        except LeaseLost:
            raise
        except TooManyRows:
            await self._fail(job, context, export, REFUSED)
        except QuotaExceeded as refusal:
            await self._fail(job, context, export, refusal.detail)
        except Exception:
            _LOG.exception("an export failed", extra={"export": export.id})
            await self._put_off(job, context, export)

    async def _begin(self, job: ClaimedJob, context: AuditContext) -> tuple[Export, Progress] | None:
        async with self.uow.begin(job.tenant, context) as tx:
            before = await tx[ExportStore].get(str(job.args["export"]), lock=True)
            if before is None or before.over:
                await tx[JobStore].finish(job)
                return None
            export = before.died() if job.lapsed else before
            for key in before.keys:  # objects of the previous attempt
                await tx[StorageLedger].free(key)
            if export.hopeless(tx.now):
                await self._end(tx, job, before, export.failed(_DIED, tx.now))
                return None
            names = (*self._datasets(export), MANIFEST)
            keys = tuple(export_key(job.tenant, export.id, job.attempt, name) for name in names)
            for key in keys:
                free_after = tx.now + retention.UNFINISHED_EXPORTS
                await tx[StorageLedger].keep(StoredObject(key, StoredKind.EXPORT, 0, free_after))
            export = export.begun(keys, tx.now)
            await tx[ExportStore].save(export)
            progress = Progress(most=await quota.left(tx, EXPORT_ROWS) if export.kind == ExportKind.PRODUCTS else None)
            await tx[JobStore].hold(job, self.lease)
            return export, progress

    def _datasets(self, export: Export) -> tuple[str, ...]:
        return (PRODUCTS,) if export.kind == ExportKind.PRODUCTS else tuple(self.datasets.names)

    async def _write(self, job: ClaimedJob, export: Export, progress: Progress) -> _Made:
        """Write every file from one snapshot.

        The network position is read before the snapshot: repeating events is better than missing them.
        """
        files: list[ExportFile] = []
        writing = FileWriting(self.objects, self.packing, progress)
        published = (await self.now(job.tenant)).network
        async with self.uow.snapshot(job.tenant) as tx:
            cursor = self.cursors.sign(job.tenant, FeedPosition(await tx[EventLog].end(), published))
            for dataset, key in zip(self._datasets(export), export.keys, strict=False):
                files.append(await writing.write(dataset, key, self._lines(tx, export, dataset)))
        files.append(await writing.write(MANIFEST, export.keys[-1], self._manifest(files), counts=False))
        return _Made(tuple(files), cursor)

    def _lines(self, tx: Tx, export: Export, dataset: str) -> AsyncGenerator[Lines, None]:
        if dataset == PRODUCTS:
            return tx[CatalogueStore].lines(export.filters.updated_since)
        return self.datasets.lines(tx, dataset)

    async def _manifest(self, files: list[ExportFile]) -> AsyncGenerator[Lines, None]:
        for file in files:
            entry = {"dataset": file.dataset, "rows": file.rows, "bytes": file.bytes, "sha256": file.sha256}
            yield Lines(1, self.codec.encode(entry) + b"\n")

    @asynccontextmanager
    async def _reporting_progress(
        self, job: ClaimedJob, context: AuditContext, export: Export, progress: Progress
    ) -> AsyncIterator[None]:
        """Save the number of rows written, periodically, while the export is written."""
        task = asyncio.create_task(self._report_progress(job, context, export, progress))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _report_progress(
        self, job: ClaimedJob, context: AuditContext, export: Export, progress: Progress
    ) -> None:
        reported = 0
        while True:
            await asyncio.sleep(self.told)
            if progress.rows == reported:
                continue
            try:
                async with self.uow.begin(job.tenant, context) as tx:
                    await tx[ExportStore].save(export.counted(progress.rows))
                    await tx[JobStore].hold(job, self.lease)
                reported = progress.rows
            except (LeaseLost, NotFound):
                return  # the lane's worker cancels the job
            except Exception:
                _LOG.warning("progress of an export could not be saved", exc_info=True, extra={"export": export.id})

    async def _succeed(self, job: ClaimedJob, context: AuditContext, export: Export, made: _Made) -> None:
        async with self.uow.begin(job.tenant, context) as tx:
            after = export.succeeded(made.files, made.cursor, tx.now)
            if export.kind == ExportKind.PRODUCTS:
                await charge(tx, after.id, after.rows)
            for file in made.files:
                if not await tx[StorageLedger].settle(file.key):
                    raise LeaseLost  # the files were swept, because this worker paused for too long
            await expire_older(tx)
            await self._end(tx, job, export, after)

    async def _fail(self, job: ClaimedJob, context: AuditContext, export: Export, error: str) -> None:
        async with self.uow.begin(job.tenant, context) as tx:
            await expire(tx, export)
            await self._end(tx, job, export, export.failed(error, tx.now))

    async def _put_off(self, job: ClaimedJob, context: AuditContext, export: Export) -> None:
        """Schedule another attempt, or fail the export after the last one."""
        after = export.put_off()
        if after.failures >= FAILURES:
            await self._fail(job, context, after, _FAILED)
            return
        async with self.uow.begin(job.tenant, context) as tx:
            await tx[ExportStore].save(after)
            await tx[JobStore].put_off(job, tx.now + delay(after.failures))

    async def _end(self, tx: Tx, job: ClaimedJob, before: Export, after: Export) -> None:
        """Save the outcome, its audit entry, its event and the job's end in one transaction."""
        await tx[ExportStore].save(after)
        await tx[AuditLog].add(AUDITED.updated(before, after))
        resource = self.describe(LinkedExport(after), tx.tenant, tx.now)
        await tx[EventLog].append([Event("export.completed", after.id, 1, resource)])
        await tx[JobStore].finish(job)
