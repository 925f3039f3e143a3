"""Execution of a run: fetch, parse and map, compare, guard, normalise, store. It can be taken over at any point."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import KnownMapping, bounded
from domain.ingestion.ports import (
    Connectors,
    FeedReaders,
    FetchFailed,
    Job,
    ParseFailed,
    ReaderDied,
    ReadingOrder,
    Validators,
)
from domain.ingestion.reading import NeedsMapping, ReadTables, StockSheet
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, StorageFull, is_storage_full
from domain.kernel.tenancy import AuditContext
from domain.mappings.model import KNOWN
from domain.mappings.ports import MappingStore
from domain.mappings.usecases import keep_proposals
from domain.runs.chunks import bucket_count, spool_room
from domain.runs.model import (
    REREADING,
    TRIES,
    PushInput,
    Run,
    RunError,
    RunErrorCode,
    RunStage,
    RunStatus,
    WaitingReason,
)
from domain.runs.ports import RunStore
from domain.runs.sheets import columns_of, context_of, settings_digest
from domain.runs.usecases import outcome
from domain.runs.usecases.chunking import Feed
from domain.runs.usecases.guarding import RecordsSpent, ShrinkRefused, refuse_shrink, reserve_records
from domain.runs.usecases.snapshots import Fetcher, Snapshot
from domain.runs.usecases.writing import ChunkWriter
from domain.secrets.ports import Vault
from domain.sources.model import HANDED_IN_KINDS, Ladder, Source
from domain.sources.ports import SourceStore
from domain.sources.usecases.signing import opened_credentials
from ports.objects import Objects
from ports.unit_of_work import Tx, UnitOfWork
from ports.workspaces import Workspaces

_LOG = logging.getLogger("joinery.runs")
AGAIN = timedelta(seconds=2)
"""Delay before the next attempt after the reader process died."""
ROOM = timedelta(seconds=15)
"""Delay before the next attempt of a run of submitted data without storage space."""
LATER = timedelta(minutes=1)
"""Delay before the next request to a source that states none."""
SOON = timedelta(seconds=1)
"""Minimum delay before the next request, whatever the source states."""
_ERROR_CODES: Final[Mapping[type[Exception], RunErrorCode]] = {
    ParseFailed: RunErrorCode.PARSE_FAILED,
    ShrinkRefused: RunErrorCode.SHRINK_REFUSED,
    RecordsSpent: RunErrorCode.QUOTA_EXCEEDED,
}
"""Failures that end a run with their own message."""
_PACKED = (b"PK\x03\x04", b"\x1f\x8b")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a run, with its context."""

    job: ClaimedJob
    context: AuditContext
    run: Run
    source: Source
    connector_job: Job


async def _do_nothing() -> None:
    """Do nothing, for stores without statistics."""


async def unheard(_rows: int) -> None:
    """Ignore the number of rows, for readings whose progress is not reported."""


class RunExecution:
    """The handler of `runs.execute` jobs."""

    def __init__(
        self,
        uow: UnitOfWork,
        connectors: Connectors,
        objects: Objects,
        vault: Vault,
        readers: FeedReaders,
        workspaces: Workspaces,
        *,
        slots: ConcurrencyLimit | None = None,
        statistics: Callable[[], Coroutine[Any, Any, None]] = _do_nothing,
        ladder: Ladder | None = None,
        ask_models: bool = False,
        lease: timedelta = timedelta(seconds=30),
    ) -> None:
        self._uow, self._connectors, self._vault = uow, connectors, vault
        self._readers, self._workspaces, self._statistics = readers, workspaces, statistics
        self._slots = slots or ConcurrencyLimit(1)
        self._ladder = ladder or Ladder()
        self._ask, self._lease = ask_models, lease
        self._fetcher = Fetcher(uow, connectors, objects)

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Execute the run to its end, or postpone it. Raises LeaseLost if another worker took over the job."""
        attempt = await self._begin(job)
        if attempt is None:
            return
        try:
            await self._carry_out(attempt)
        except Exception as error:
            full = isinstance(error, StorageFull) or is_storage_full(error)
            if not full and isinstance(error, DomainError):
                raise
            foreseen = full or isinstance(error, (FetchFailed, NeedsMapping, ReaderDied, *_ERROR_CODES))
            if not foreseen and job.attempt - attempt.run.waits - attempt.run.turns < TRIES:
                raise
            async with self._uow.begin(job.tenant, attempt.context) as tx:
                # as stored, to keep the counts of its chunks
                run = await tx[RunStore].get(attempt.run.id) or attempt.run
                await self._conclude(tx, replace(attempt, run=run), error)

    async def _conclude(self, tx: Tx, attempt: Attempt, error: Exception) -> None:
        """End or postpone the run after an error."""
        run = attempt.run
        match error:
            case FetchFailed() if error.waiting is not None and (error.own or not run.waited_out):
                until = max(error.retry_at or tx.now + LATER, tx.now + SOON)
                await self._wait(
                    tx, attempt, run.put_off(WaitingReason(error.waiting), until, str(error), own=error.own)
                )
            case FetchFailed():
                await self._fail(tx, attempt.job, run, RunErrorCode(error.code), str(error))
            case NeedsMapping():
                await self._ask_for_mapping(tx, attempt, error)
            case ReaderDied():
                run = run.died()
                _LOG.warning(
                    "the reader of a feed died", extra={"run": run.id, "death": str(error), "deaths": run.deaths}
                )
                if run.hopeless:
                    await self._give_up(tx, attempt.job, run, str(error))
                else:
                    await tx[RunStore].save(run)
                    await tx[JobStore].put_off(attempt.job, tx.now + AGAIN)
            case _ if type(error) in _ERROR_CODES:
                if isinstance(error, ShrinkRefused):
                    run = replace(run, stats={**run.stats, "stated": error.stated, "would_withdraw": error.lost})
                await self._fail(tx, attempt.job, run, _ERROR_CODES[type(error)], str(error))
            case _ if isinstance(error, StorageFull) or is_storage_full(error):
                await self._storage_full(tx, attempt, error)
            case _:
                _LOG.error("run given up after %d attempts", TRIES, exc_info=error, extra={"run": run.id})
                message = "An internal error occurred. Changes stored so far are kept. The operator can find the error in the log."
                await self._fail(tx, attempt.job, run, RunErrorCode.INTERNAL_ERROR, message)

    async def _fail(self, tx: Tx, job: ClaimedJob, run: Run, code: RunErrorCode, message: str) -> None:
        await outcome.end(tx, job, run, RunStatus.FAILED, RunError(code, message), ladder=self._ladder)
        _LOG.info("run failed", extra={"run": run.id, "code": code})

    async def _wait(self, tx: Tx, attempt: Attempt, run: Run) -> None:
        assert run.waiting is not None
        await tx[RunStore].save(run)
        await tx[JobStore].put_off(attempt.job, run.waiting.until)

    async def _give_up(self, tx: Tx, job: ClaimedJob, run: Run, death: str) -> None:
        message = (
            f"Reading the feed came to a sudden end {run.deaths} times, so it is not tried again; most likely that lies in "
            f"what it holds. What was stored before stays. {death}"
        )
        await self._fail(tx, job, run, RunErrorCode.PARSE_FAILED, message.strip())

    async def _ask_for_mapping(self, tx: Tx, attempt: Attempt, failure: NeedsMapping) -> None:
        """Store the proposed mapping of the headers; the run waits until a person confirms it."""
        # same lock order as confirming: the source, then mappings
        await tx[SourceStore].get(attempt.run.source, lock=True)
        run, message = await self._with_tables(tx, attempt.run, failure.tables), str(failure)
        if run.mappings:
            message += f" Confirm {', '.join(run.mappings[:3])} with POST /v1/mappings/{{id}}/confirm."
        await outcome.end(
            tx, attempt.job, run, RunStatus.NEEDS_MAPPING, RunError(RunErrorCode.MAPPING_REQUIRED, message)
        )

    async def _storage_full(self, tx: Tx, attempt: Attempt, error: Exception) -> None:
        """Fail a pull, which can be repeated; put off a run of submitted data until there is space.

        An object store gets space again, but a work folder may be permanently too small for the file, and the run would
        block its source. Such a run therefore fails after some waits, unless its input is pushed records, of which the
        sender may have no other copy.
        """
        run = attempt.run
        lacks_folder = not isinstance(error, StorageFull) and not isinstance(run.input, PushInput)
        if run.input is None:
            message = "The service has no space left to keep the feed; nothing was changed. Run it again later."
            await self._fail(tx, attempt.job, run, RunErrorCode.STORAGE_FULL, message)
        elif lacks_folder and run.waited_out:
            message = "The service has no space left to process the file. Upload or send it again later."
            await self._fail(tx, attempt.job, run, RunErrorCode.STORAGE_FULL, message)
        else:
            message = "The service has no space left. The submitted data is kept, and is read once there is space."
            await self._wait(tx, attempt, run.put_off(WaitingReason.RETRY, tx.now + ROOM, message))

    async def _begin(self, job: ClaimedJob) -> Attempt | None:
        context = job.context()
        async with self._uow.begin(job.tenant, context) as tx:
            run = await tx[RunStore].get(str(job.args["run"]))
            source = await tx[SourceStore].get(run.source, lock=True) if run else None  # as one with its credentials
            if run is None or source is None or run.finished_at is not None:
                await tx[JobStore].finish(job)
                return None
            if not source.runnable:
                await outcome.cancel(tx, job, run, f"The source is {source.status}.")
                return None
            if job.lapsed and run.is_being_read:
                run = run.died()
                if run.hopeless:
                    await self._give_up(tx, job, run, "")
                    return None
            run = run.started(tx.now)
            try:
                credentials = await opened_credentials(tx, self._vault, self._connectors, source)
            except ValueError:
                message = "The stored credentials cannot be opened; store them again."
                await self._fail(tx, job, run, RunErrorCode.CREDENTIALS_REFUSED, message)
                return None
            good = await tx[RunStore].last_good(source.id, run.stream)
            fetched = good.fetched_under(settings_digest(source, run.stream), source.checked_at) if good else None
            validators = Validators(fetched.etag, fetched.last_modified) if fetched else Validators()
            connector_job = Job(source.config, credentials, run.stream.value, validators, tx.tenant.org)
            await self._save(tx, job, run)
            return Attempt(job, context, run, source, connector_job)

    async def _save(self, tx: Tx, job: ClaimedJob, run: Run) -> None:
        await tx[RunStore].save(run)
        await tx[JobStore].hold(job, self._lease)

    async def _carry_out(self, attempt: Attempt) -> None:
        """Fetch the snapshot and process it; one that proves to be a stock sheet is processed as stock.

        Only processing occupies a slot, because fetching mostly waits.
        """
        job = attempt.job
        with self._workspaces.folder() as folder:
            snapshot = await self._fetcher.fetch_snapshot(
                job.tenant, attempt.run, attempt.source, attempt.connector_job, folder
            )
            async with self._slots.slot(job.tenant.org):
                async with self._uow.begin(job.tenant, attempt.context) as tx:
                    run = await self._keep_snapshot(tx, attempt, snapshot)
                if run is None:
                    return
                assert snapshot.path is not None
                try:
                    await self._work_through(replace(attempt, run=run), snapshot.path)
                except StockSheet:
                    run = replace(run, stream=Stream.STOCK)
                    async with self._uow.begin(job.tenant, attempt.context) as tx:
                        await self._save(tx, job, run)
                    await self._work_through(replace(attempt, run=run), snapshot.path)

    async def _keep_snapshot(self, tx: Tx, attempt: Attempt, snapshot: Snapshot) -> Run | None:
        """Return the run with its snapshot, or None if the feed equals that of the last successful run, which ends the run."""
        run, digest, key = attempt.run, settings_digest(attempt.source, attempt.run.stream), snapshot.key
        good, unchanged, before = await tx[RunStore].last_good(run.source, run.stream), False, None
        if good and (before := good.fetched_under(digest, attempt.source.checked_at)) and before.whole:
            unchanged = snapshot.unchanged or snapshot.key == good.snapshot
            key = good.snapshot if unchanged else key
        if run.snapshot is None or run.fetched_under(digest) is None:
            fetched = snapshot.fetched(digest, run, before, tx.now)
            run = replace(run, served_by=snapshot.served_by, fetched=fetched, checkpoint=None)
        stats = {**run.stats, "bytes": snapshot.size} | ({"unchanged_feed": 1} if unchanged else {})
        run = replace(run, snapshot=key, stats=stats, stage=RunStage.DONE if unchanged else RunStage.PARSE)
        if unchanged and run.trigger not in REREADING and good is not None:
            told = {"problems": good.stats["problems"]} if good.stats.get("problems") else {}
            run = replace(run, problems=good.problems, stats={**stats, **told})
            await outcome.end(tx, attempt.job, run, RunStatus.SUCCEEDED, changed=False)
            return None
        await self._save(tx, attempt.job, run)
        return run

    async def _work_through(self, attempt: Attempt, path: Path) -> None:
        """Execute the stages after the fetch: parse and map, compare, guard, normalise, store."""
        run, job, context = attempt.run, attempt.job, attempt.context
        async with self._uow.read(job.tenant) as tx:
            known = await known_to(tx, run)
        async with self._readers.open(order_of(run, attempt.source, path, known)) as reader:

            async def told(rows: int) -> None:
                async with self._uow.begin(job.tenant, context) as tx:
                    await self._save(tx, job, replace(run, stats={**run.stats, "rows": rows}))

            spooled = await reader.spool(told)
            async with self._uow.begin(job.tenant, context) as tx:
                run = await self._with_tables(tx, run, spooled.tables)
                await self._save(tx, job, run)
            feed = Feed(self._uow, job.tenant, context, attempt.source, run.stream, reader, spooled)
            writer = ChunkWriter(job, self._lease, run, feed, self._statistics)
            if not writer.first:
                await refuse_shrink(feed, run)
                await reserve_records(feed, run)
            await writer.write_chunks()
            await writer.age_absent_products()
        stats = {**run.stats, **writer.stats()}
        run = replace(writer.run, stats=stats, problems=tuple(feed.problems.kept))
        async with self._uow.begin(job.tenant, context) as tx:
            await outcome.end(tx, job, run, RunStatus.SUCCEEDED, changed=outcome.changed_anything(stats))

    async def _with_tables(self, tx: Tx, run: Run, tables: ReadTables) -> Run:
        """Return the run with its columns, after storing the mappings of its header sets; pushed records have no columns.

        A model may later be asked about unmapped columns; the run does not wait for its answer.
        """
        ids = await keep_proposals(tx, run.source, run.stream, tables.first, ask=self._ask)
        read = {"columns": tables.columns, "columns_unmapped": tables.unmapped} if tables.columns else {}
        return replace(run, stats={**run.stats, **read}, columns=columns_of(tables), mappings=tuple(ids.values()))


async def known_to(tx: Tx, run: Run) -> tuple[KnownMapping, ...]:
    """Return the confirmed mappings of headers that the run may have; pushed records have none."""
    if isinstance(run.input, PushInput):
        return ()
    return bounded(await tx[MappingStore].confirmed(run.source, KNOWN))


def spool_bounds(snapshot: Path) -> tuple[int, int]:
    """Return the number of buckets for a snapshot's rows, and their maximum size in bytes."""
    with snapshot.open("rb") as file:
        packed = file.read(4).startswith(_PACKED)
    size = snapshot.stat().st_size
    return bucket_count(size, packed=packed), spool_room(size, packed=packed)


def reading_order(
    source: Source, stream: Stream, path: Path, known: tuple[KnownMapping, ...], limit: int | None = None
) -> ReadingOrder:
    """Return the order to read a snapshot by the source's settings, up to `limit` rows if given."""
    settings = context_of(source, stream)
    buckets, room = spool_bounds(path)
    return ReadingOrder(
        str(path), str(path.parent), source.connector, source.config, stream.value, settings, buckets, room,
        known=known, limit=limit,
    )  # fmt: skip


def order_of(
    run: Run, source: Source, path: Path, known: tuple[KnownMapping, ...], limit: int | None = None
) -> ReadingOrder:
    """Return the order to read the run's snapshot."""
    handed_in = run.stream == Stream.CATALOGUE and source.kind in HANDED_IN_KINDS
    return replace(
        reading_order(source, run.stream, path, known, limit),
        pushed=isinstance(run.input, PushInput),
        may_be_stock=handed_in and source.catalogue_at is not None,
        whole=run.complete,
    )
