"""Execution of a run: fetch, parse, map, compare, check the removal limit, normalise, store."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import ConfirmedMapping, limit_mappings
from domain.ingestion.ports import (
    Connectors,
    ConnectorTask,
    FeedReaderFactory,
    FeedReaderFailed,
    FetchFailed,
    HttpValidators,
    ParseFailed,
    ReadRequest,
)
from domain.ingestion.snapshot_results import MappingRequired, StockOnlySnapshot, TableSummary
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, StorageFull, is_storage_full
from domain.kernel.tenancy import AuditContext
from domain.mappings.model import MAX_CONFIRMED_MAPPINGS
from domain.mappings.ports import MappingStore
from domain.mappings.usecases import store_proposals
from domain.runs.model import (
    MAX_ATTEMPTS,
    REPLAY_TRIGGERS,
    PushInput,
    Run,
    RunError,
    RunErrorCode,
    RunStage,
    RunStatus,
    WaitingReason,
)
from domain.runs.ports import RunStore
from domain.runs.sheets import compute_settings_digest, create_feed_settings, describe_columns
from domain.runs.usecases import outcome
from domain.runs.usecases.chunk_changes import FeedComparison
from domain.runs.usecases.chunk_writer import ChunkWriter
from domain.runs.usecases.removal_limit import (
    RecordQuotaExceeded,
    RemovalLimitExceeded,
    check_removal_limit,
    reserve_records,
)
from domain.runs.usecases.snapshot_reader import compute_spool_bounds
from domain.runs.usecases.snapshots import Snapshot, SnapshotFetcher
from domain.secrets.ports import Vault
from domain.sources.model import FILE_KINDS, HealthThresholds, Source
from domain.sources.ports import SourceStore
from domain.sources.usecases.credentials import decrypt_credentials
from ports.objects import ObjectStore
from ports.unit_of_work import Tx, UnitOfWork
from ports.workspaces import Workspaces

_LOG = logging.getLogger("joinery.runs")
CRASH_RETRY_DELAY = timedelta(seconds=2)
"""Delay before the next attempt after a crash of the reader process."""
STORAGE_RETRY_DELAY = timedelta(seconds=15)
"""Delay before the next attempt of a run of submitted data for which there is no storage space."""
DEFAULT_RETRY_DELAY = timedelta(minutes=1)
"""Delay before the next request to a source whose response states no delay."""
MIN_RETRY_DELAY = timedelta(seconds=1)
"""Minimum delay before the next request, even if the source states a shorter one."""
_ERROR_CODES: Final[Mapping[type[Exception], RunErrorCode]] = {
    ParseFailed: RunErrorCode.PARSE_FAILED,
    RemovalLimitExceeded: RunErrorCode.SHRINK_REFUSED,
    RecordQuotaExceeded: RunErrorCode.QUOTA_EXCEEDED,
}
"""Run error codes of exceptions that end a run; the exception's text is the run's error message."""


@dataclass(frozen=True, slots=True)
class RunAttempt:
    """One attempt to execute a run, with the run, its source and the task for its connector."""

    job: ClaimedJob
    context: AuditContext
    run: Run
    source: Source
    connector_task: ConnectorTask


async def _do_nothing() -> None:
    """Do nothing; the default of `update_statistics`."""


async def ignore_progress(_rows: int) -> None:
    """Ignore the number of rows read; a progress callback that reports nothing."""


class RunExecution:
    """Handler of `runs.execute` jobs; another worker can resume a run at any point.

    Args:
        processing_limit: Limits how many snapshots of an organisation are processed concurrently.
        update_statistics: Updates the statistics of the store after many additions.
        health_thresholds: Numbers of consecutive failures after which a source is degraded or blocked.
        uses_models: Whether a language model may map columns.
        lease: Time for which a worker's lease of the job is renewed.
    """

    def __init__(
        self,
        uow: UnitOfWork,
        connectors: Connectors,
        objects: ObjectStore,
        vault: Vault,
        readers: FeedReaderFactory,
        workspaces: Workspaces,
        *,
        processing_limit: ConcurrencyLimit | None = None,
        update_statistics: Callable[[], Coroutine[Any, Any, None]] = _do_nothing,
        health_thresholds: HealthThresholds | None = None,
        uses_models: bool = False,
        lease: timedelta = timedelta(seconds=30),
    ) -> None:
        self._uow, self._connectors, self._vault = uow, connectors, vault
        self._readers, self._workspaces, self._update_statistics = readers, workspaces, update_statistics
        self._processing_limit = processing_limit or ConcurrencyLimit(1)
        self._health_thresholds = health_thresholds or HealthThresholds()
        self._uses_models, self._lease = uses_models, lease
        self._fetcher = SnapshotFetcher(uow, connectors, objects)

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Execute the run until it ends or is postponed. Raises LeaseLost if another worker has taken over the job.

        Args:
            job: The job of the run.
            lost: Set when the job's lease is lost; ignored, because the handler is then cancelled as well.
        """
        attempt = await self._start_attempt(job)
        if attempt is None:
            return
        try:
            await self._fetch_and_process(attempt)
        except Exception as error:
            full = isinstance(error, StorageFull) or is_storage_full(error)
            if not full and isinstance(error, DomainError):
                raise
            foreseen = full or isinstance(error, (FetchFailed, MappingRequired, FeedReaderFailed, *_ERROR_CODES))
            if not foreseen and job.attempt - attempt.run.waits - attempt.run.host_waits < MAX_ATTEMPTS:
                raise
            async with self._uow.begin(job.tenant, attempt.context) as tx:
                # the stored run has the counts of its chunks
                run = await tx[RunStore].get(attempt.run.id) or attempt.run
                await self._handle_error(tx, replace(attempt, run=run), error)

    async def _handle_error(self, tx: Tx, attempt: RunAttempt, error: Exception) -> None:
        """End or postpone the run, depending on the error."""
        run = attempt.run
        match error:
            case FetchFailed() if error.wait_reason is not None and (
                error.is_throttled_locally or not run.has_waited_too_often
            ):
                until = max(error.retry_at or tx.now + DEFAULT_RETRY_DELAY, tx.now + MIN_RETRY_DELAY)
                await self._postpone(
                    tx,
                    attempt,
                    run.with_wait(
                        WaitingReason(error.wait_reason), until, str(error), is_host_limited=error.is_throttled_locally
                    ),
                )
            case FetchFailed():
                await self._fail(tx, attempt.job, run, RunErrorCode(error.code), str(error))
            case MappingRequired():
                await self._request_mapping(tx, attempt, error)
            case FeedReaderFailed():
                run = run.with_crash()
                _LOG.warning(
                    "reader process crashed", extra={"run": run.id, "death": str(error), "deaths": run.crashes}
                )
                if run.has_crashed_too_often:
                    await self._fail_after_crashes(tx, attempt.job, run, str(error))
                else:
                    await tx[RunStore].save(run)
                    await tx[JobStore].reschedule(attempt.job, tx.now + CRASH_RETRY_DELAY)
            case _ if type(error) in _ERROR_CODES:
                if isinstance(error, RemovalLimitExceeded):
                    run = replace(
                        run, stats={**run.stats, "stated": error.offer_count, "would_withdraw": error.withdrawn_count}
                    )
                await self._fail(tx, attempt.job, run, _ERROR_CODES[type(error)], str(error))
            case _ if isinstance(error, StorageFull) or is_storage_full(error):
                await self._handle_full_storage(tx, attempt, error)
            case _:
                _LOG.error("run failed after %d attempts", MAX_ATTEMPTS, exc_info=error, extra={"run": run.id})
                message = (
                    "An internal error occurred. Changes stored so far are kept. The operator can find the "
                    "error in the log."
                )
                await self._fail(tx, attempt.job, run, RunErrorCode.INTERNAL_ERROR, message)

    async def _fail(self, tx: Tx, job: ClaimedJob, run: Run, code: RunErrorCode, message: str) -> None:
        await outcome.end_run(
            tx, job, run, RunStatus.FAILED, RunError(code, message), health_thresholds=self._health_thresholds
        )
        _LOG.info("run failed", extra={"run": run.id, "code": code})

    async def _postpone(self, tx: Tx, attempt: RunAttempt, run: Run) -> None:
        assert run.waiting is not None
        await tx[RunStore].save(run)
        await tx[JobStore].reschedule(attempt.job, run.waiting.until)

    async def _fail_after_crashes(self, tx: Tx, job: ClaimedJob, run: Run, detail: str) -> None:
        message = (
            f"The reader process crashed {run.crashes} times, probably because of the feed's content, so the run "
            f"ended. Changes stored so far are kept. {detail}"
        )
        await self._fail(tx, job, run, RunErrorCode.PARSE_FAILED, message.strip())

    async def _request_mapping(self, tx: Tx, attempt: RunAttempt, failure: MappingRequired) -> None:
        """Store the proposed column mappings, and end the run; it can be replayed once a user has confirmed one."""
        # same lock order as confirming: the source, then mappings
        await tx[SourceStore].get(attempt.run.source, lock=True)
        run, message = await self._store_mappings(tx, attempt.run, failure.tables), str(failure)
        if run.mappings:
            mappings = ", ".join(run.mappings[:3])
            message += f" Confirm a proposed column mapping ({mappings}) with POST /v1/mappings/{{id}}/confirm."
        await outcome.end_run(
            tx, attempt.job, run, RunStatus.NEEDS_MAPPING, RunError(RunErrorCode.MAPPING_REQUIRED, message)
        )

    async def _handle_full_storage(self, tx: Tx, attempt: RunAttempt, error: Exception) -> None:
        """Fail a pull, which can be repeated; postpone a run of submitted data until there is space.

        If the work folder is too small for an uploaded file, the run fails after MAX_WAITS waits.
        """
        # a work folder may always be too small, and the waiting run would block its source; pushed records wait without
        # limit, because the sender may have no other copy
        run = attempt.run
        lacks_folder = not isinstance(error, StorageFull) and not isinstance(run.input, PushInput)
        if run.input is None:
            message = "The service has no space left to store the feed. Nothing was changed. Start the run again later."
            await self._fail(tx, attempt.job, run, RunErrorCode.STORAGE_FULL, message)
        elif lacks_folder and run.has_waited_too_often:
            message = "The service has no space left to process the file. Upload or send it again later."
            await self._fail(tx, attempt.job, run, RunErrorCode.STORAGE_FULL, message)
        else:
            message = (
                "The service has no space left. The submitted data is stored and will be read when there is space."
            )
            await self._postpone(tx, attempt, run.with_wait(WaitingReason.RETRY, tx.now + STORAGE_RETRY_DELAY, message))

    async def _start_attempt(self, job: ClaimedJob) -> RunAttempt | None:
        """Mark the run as started, and return its data for the attempt; None if the run cannot be executed."""
        context = job.create_context()
        async with self._uow.begin(job.tenant, context) as tx:
            run = await tx[RunStore].get(str(job.args["run"]))
            source = (
                await tx[SourceStore].get(run.source, lock=True) if run else None
            )  # so that it matches its credentials
            if run is None or source is None or run.finished_at is not None:
                await tx[JobStore].finish(job)
                return None
            if not source.is_runnable:
                await outcome.cancel_run(tx, job, run, f"The source is {source.status}.")
                return None
            if job.has_expired_lease and run.is_being_read:
                run = run.with_crash()
                if run.has_crashed_too_often:
                    await self._fail_after_crashes(tx, job, run, "")
                    return None
            run = run.with_start(tx.now)
            try:
                credentials = await decrypt_credentials(tx, self._vault, self._connectors, source)
            except ValueError:
                message = "The stored credentials cannot be decrypted. Enter them again."
                await self._fail(tx, job, run, RunErrorCode.CREDENTIALS_REFUSED, message)
                return None
            last_successful = await tx[RunStore].find_last_successful(source.id, run.stream)
            fetched = (
                last_successful.find_reusable_fetch_record(
                    compute_settings_digest(source, run.stream), source.checked_at
                )
                if last_successful
                else None
            )
            validators = HttpValidators(fetched.etag, fetched.last_modified) if fetched else HttpValidators()
            connector_job = ConnectorTask(source.config, credentials, run.stream.value, validators, tx.tenant)
            await self._save(tx, job, run)
            return RunAttempt(job, context, run, source, connector_job)

    async def _save(self, tx: Tx, job: ClaimedJob, run: Run) -> None:
        await tx[RunStore].save(run)
        await tx[JobStore].renew_lease(job, self._lease)

    async def _fetch_and_process(self, attempt: RunAttempt) -> None:
        """Fetch the snapshot and process it; if it turns out to be a stock sheet, process it as stock."""
        # only processing counts against the organisation's limit, because fetching mostly waits
        job = attempt.job
        with self._workspaces.create_folder() as folder:
            snapshot = await self._fetcher.fetch_snapshot(
                job.tenant, attempt.run, attempt.source, attempt.connector_task, folder
            )
            async with self._processing_limit.slot(job.tenant.org):
                async with self._uow.begin(job.tenant, attempt.context) as tx:
                    run = await self._store_snapshot(tx, attempt, snapshot)
                if run is None:
                    return
                assert snapshot.path is not None
                try:
                    await self._process(replace(attempt, run=run), snapshot.path)
                except StockOnlySnapshot:
                    run = replace(run, stream=Stream.STOCK)
                    async with self._uow.begin(job.tenant, attempt.context) as tx:
                        await self._save(tx, job, run)
                    await self._process(replace(attempt, run=run), snapshot.path)

    async def _store_snapshot(self, tx: Tx, attempt: RunAttempt, snapshot: Snapshot) -> Run | None:
        """Store the run with its snapshot and return it; end the run and return None if the feed is unchanged."""
        run, digest, key = attempt.run, compute_settings_digest(attempt.source, attempt.run.stream), snapshot.key
        last_successful, unchanged, previous = (
            await tx[RunStore].find_last_successful(run.source, run.stream),
            False,
            None,
        )
        if (
            last_successful
            and (previous := last_successful.find_reusable_fetch_record(digest, attempt.source.checked_at))
            and previous.whole
        ):
            unchanged = snapshot.is_unchanged or snapshot.key == last_successful.snapshot
            key = last_successful.snapshot if unchanged else key
        if run.snapshot is None or run.find_reusable_fetch_record(digest) is None:
            fetched = snapshot.create_fetch_record(digest, run, previous, tx.now)
            run = replace(run, served_by=snapshot.served_by, fetched=fetched, checkpoint=None)
        stats = {**run.stats, "bytes": snapshot.size} | ({"unchanged_feed": 1} if unchanged else {})
        run = replace(run, snapshot=key, stats=stats, stage=RunStage.DONE if unchanged else RunStage.PARSE)
        if unchanged and run.trigger not in REPLAY_TRIGGERS and last_successful is not None:
            problem_counts = (
                {"problems": last_successful.stats["problems"]} if last_successful.stats.get("problems") else {}
            )
            run = replace(run, problems=last_successful.problems, stats={**stats, **problem_counts})
            await outcome.end_run(tx, attempt.job, run, RunStatus.SUCCEEDED, has_changes=False)
            return None
        await self._save(tx, attempt.job, run)
        return run

    async def _process(self, attempt: RunAttempt, path: Path) -> None:
        """Execute the stages after fetching: parse, map, compare, check the removal limit, normalise, store."""
        run, job, context = attempt.run, attempt.job, attempt.context
        async with self._uow.begin_reading(job.tenant) as tx:
            known = await load_confirmed_mappings(tx, run)
        async with self._readers.open(create_run_read_request(run, attempt.source, path, known)) as reader:

            async def report_rows(rows: int) -> None:
                async with self._uow.begin(job.tenant, context) as tx:
                    await self._save(tx, job, replace(run, stats={**run.stats, "rows": rows}))

            spooled = await reader.spool(report_rows)
            async with self._uow.begin(job.tenant, context) as tx:
                run = await self._store_mappings(tx, run, spooled.tables)
                await self._save(tx, job, run)
            feed = FeedComparison(self._uow, job.tenant, context, attempt.source, run.stream, reader, spooled)
            writer = ChunkWriter(job, self._lease, run, feed, self._update_statistics)
            if not writer.first_chunk:
                await check_removal_limit(feed, run)
                await reserve_records(feed, run)
            await writer.write_chunks()
            await writer.update_absent_products()
        stats = {**run.stats, **writer.get_stats()}
        run = replace(writer.run, stats=stats, problems=tuple(feed.problems.stored))
        async with self._uow.begin(job.tenant, context) as tx:
            await outcome.end_run(tx, job, run, RunStatus.SUCCEEDED, has_changes=outcome.has_changed_catalogue(stats))

    async def _store_mappings(self, tx: Tx, run: Run, tables: TableSummary) -> Run:
        """Store the proposed mappings of the tables, and return the run with its columns (none for pushed records).

        A language model may map further columns later; the run does not wait for it.
        """
        mapping_ids = await store_proposals(
            tx, run.source, run.stream, tables.listed_tables, uses_model=self._uses_models
        )
        column_counts = {"columns": tables.columns, "columns_unmapped": tables.unmapped} if tables.columns else {}
        return replace(
            run,
            stats={**run.stats, **column_counts},
            columns=describe_columns(tables),
            mappings=tuple(mapping_ids.values()),
        )


async def load_confirmed_mappings(tx: Tx, run: Run) -> tuple[ConfirmedMapping, ...]:
    """Return the confirmed mappings of the run's source, up to a maximum total number of columns; none for pushed records."""
    if isinstance(run.input, PushInput):
        return ()
    return limit_mappings(await tx[MappingStore].list_confirmed(run.source, MAX_CONFIRMED_MAPPINGS))


def create_read_request(
    source: Source,
    stream: Stream,
    path: Path,
    confirmed_mappings: tuple[ConfirmedMapping, ...],
    max_rows: int | None = None,
) -> ReadRequest:
    """Return a request to read a snapshot with the source's settings.

    Args:
        source: The source.
        stream: The stream.
        path: The snapshot's file.
        confirmed_mappings: The source's confirmed mappings.
        max_rows: Maximum number of rows to read; None for all.
    """
    settings = create_feed_settings(source, stream)
    buckets, room = compute_spool_bounds(path)
    return ReadRequest(
        str(path), str(path.parent), source.connector, source.config, stream.value, settings, buckets, room,
        has_records=source.has_records, confirmed_mappings=confirmed_mappings, max_rows=max_rows,
    )  # fmt: skip


def create_run_read_request(
    run: Run, source: Source, path: Path, confirmed_mappings: tuple[ConfirmedMapping, ...], max_rows: int | None = None
) -> ReadRequest:
    """Return a request to read the run's snapshot; parameters as in `create_read_request`."""
    is_submitted_catalogue = run.stream == Stream.CATALOGUE and source.kind in FILE_KINDS
    return replace(
        create_read_request(source, run.stream, path, confirmed_mappings, max_rows),
        may_be_stock=is_submitted_catalogue and source.catalogue_at is not None,
        is_complete=run.is_complete,
    )
