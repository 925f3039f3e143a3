"""Carrying out a run: fetch, parse and map, compare, guard, normalise, store; safe to take over at any point."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
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
from domain.ingestion.reading import NeedsMapping, StockSheet
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import DomainError, StorageFull, is_storage_full
from domain.kernel.tenancy import AuditContext
from domain.mappings.model import KNOWN
from domain.mappings.ports import MappingStore
from domain.runs.chunks import bucket_count, spool_room
from domain.runs.model import (
    REREADING,
    PushInput,
    Run,
    RunError,
    RunErrorCode,
    RunStage,
    WaitingReason,
)
from domain.runs.ports import RunStore
from domain.runs.sheets import context_of, settings_digest
from domain.runs.shrink import ShrinkRefused
from domain.runs.usecases import outcome
from domain.runs.usecases.chunking import FeedChunks, feed_of
from domain.runs.usecases.fetching import Fetcher, Snapshot
from domain.runs.usecases.guarding import refuse_shrink
from domain.runs.usecases.mapping import with_tables
from domain.runs.usecases.metering import RecordsSpent, reserve_records
from domain.runs.usecases.writing import ChunkWriter
from domain.secrets.ports import Vault
from domain.sources.model import HANDED_IN_KINDS, Ladder, Source
from domain.sources.ports import SourceStore
from domain.sources.usecases.signing import opened_credentials
from ports.objects import Objects
from ports.unit_of_work import Tx, UnitOfWork
from ports.workspaces import Workspaces

_LOG = logging.getLogger("joinery.runs")
TRIES: Final = 8
"""How often a run that meets unforeseen errors is tried: for some minutes, as the worker waits longer each time."""
AGAIN: Final = timedelta(seconds=2)
"""After which a run whose reader died is tried again."""
ROOM: Final = timedelta(seconds=15)
"""After which a run of submitted data is tried again when there was no space for it."""
LATER: Final = timedelta(minutes=1)
"""After which a source is asked again that names no time."""
SOON: Final = timedelta(seconds=1)
"""Before which none is asked again, whatever it says."""
_DIED: Final = (
    "Reading the feed came to a sudden end {times} times, so it is not tried again; most likely that lies in what it holds. "
    "What was stored before stays. {last}"
)
_PACKED: Final = (b"PK\x03\x04", b"\x1f\x8b")


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a run: what it works on and as whom."""

    job: ClaimedJob
    context: AuditContext
    run: Run
    source: Source
    connector_job: Job


async def _nothing() -> None:
    """For stores that keep no statistics."""


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
        statistics: Callable[[], Coroutine[Any, Any, None]] | None = None,
        ladder: Ladder | None = None,
        ask_models: bool = False,
        lease: timedelta = timedelta(seconds=30),
    ) -> None:
        self._uow = uow
        self._connectors = connectors
        self._vault = vault
        self._readers = readers
        self._workspaces = workspaces
        self._slots = slots or ConcurrencyLimit(1)
        self._statistics = statistics or _nothing
        self._ladder = ladder or Ladder()
        self._ask = ask_models
        self._lease = lease
        self._fetcher = Fetcher(uow, connectors, objects)

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Carry the run out to its end, or put it off. Raises LeaseLost when another worker took it over."""
        attempt = await self._begin(job)
        if attempt is None:
            return
        try:
            await self._carry_out(attempt)
        except FetchFailed as failure:
            await self._fetch_failed(attempt, failure)
        except ParseFailed as failure:
            await self._fail(attempt, RunError(RunErrorCode.PARSE_FAILED, str(failure)))
        except NeedsMapping as failure:
            await self._needs_mapping(attempt, failure)
        except ShrinkRefused as refusal:
            stats = {**attempt.run.stats, "stated": refusal.stated, "would_withdraw": refusal.lost}
            await self._fail(attempt, RunError(RunErrorCode.SHRINK_REFUSED, str(refusal)), stats)
        except RecordsSpent as refusal:
            await self._fail(attempt, RunError(RunErrorCode.QUOTA_EXCEEDED, str(refusal)))
        except ReaderDied as death:
            await self._died(attempt, str(death))
        except Exception as error:
            await self._unforeseen(attempt, error)

    async def _needs_mapping(self, attempt: Attempt, failure: NeedsMapping) -> None:
        """What the headers are proposed to mean is kept, for a person to confirm; the run waits for that."""
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            latest = await self._latest(tx, attempt)
            await tx[SourceStore].get(
                latest.source, lock=True
            )  # in the order of those who confirm: the source, then mappings
            run = await with_tables(tx, latest, failure.tables, ask=self._ask)
            asked = ""
            if run.mappings:
                asked = f" Confirm {', '.join(run.mappings[:3])} with POST /v1/mappings/{{id}}/confirm."
            await outcome.ask_for_mapping(tx, attempt.job, run, f"{failure}{asked}")

    async def _unforeseen(self, attempt: Attempt, error: Exception) -> None:
        """A full disk is no fault of the run; anything else is tried again some times before it fails."""
        if isinstance(error, StorageFull) or is_storage_full(error):
            await self._storage_full(attempt, error)
            return
        if isinstance(error, DomainError):
            raise error
        if attempt.job.attempt - attempt.run.waits - attempt.run.turns < TRIES:
            raise error
        _LOG.error("run given up after %d attempts", TRIES, exc_info=error, extra={"run": attempt.run.id})
        message = (
            "The service met an error of its own; what was stored so far stays. Its operators can see it in the log."
        )
        await self._fail(attempt, RunError(RunErrorCode.INTERNAL_ERROR, message))

    async def _storage_full(self, attempt: Attempt, error: Exception) -> None:
        """Fail a pull, which can be repeated; put off a run of submitted data until there is space.

        An object store gets space again, but a work folder may be too small for the file for ever, so that the run would
        block its source. Therefore such a run fails after some waits, unless its input is pushed records, of which the
        sender may have no other copy.
        """
        lacks_folder = not isinstance(error, StorageFull) and not isinstance(attempt.run.input, PushInput)
        if attempt.run.input is None or (lacks_folder and attempt.run.waited_out):
            message = "The service has no space left to keep the feed; nothing was changed. Run it again later."
            if attempt.run.input is not None:
                message = "The service has no space left to process the file. Upload or send it again later."
            await self._fail(attempt, RunError(RunErrorCode.STORAGE_FULL, message))
            return
        message = "The service has no space left. The submitted data is kept, and is read once there is space."
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            until = tx.now + ROOM
            run = (await self._latest(tx, attempt)).put_off(WaitingReason.RETRY, until, message)
            await outcome.wait(tx, attempt.job, run, until)

    async def _died(self, attempt: Attempt, death: str) -> None:
        """What read the feed ended without a word: the run is tried again, but not without end."""
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            run = (await self._latest(tx, attempt)).died()
            _LOG.warning("the reader of a feed died", extra={"run": run.id, "death": death, "deaths": run.deaths})
            if run.hopeless:
                await self._give_up(tx, attempt.job, run, death)
                return
            await tx[RunStore].save(run)
            await tx[JobStore].put_off(attempt.job, tx.now + AGAIN)

    async def _give_up(self, tx: Tx, job: ClaimedJob, run: Run, death: str) -> None:
        message = _DIED.format(times=run.deaths, last=death).strip()
        await outcome.fail(tx, job, run, RunError(RunErrorCode.PARSE_FAILED, message), self._ladder)

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
            await tx[RunStore].save(run)
            try:
                connector_job = await self._connector_job(tx, run, source)
            except ValueError:
                message = "The stored credentials cannot be opened; store them again."
                await outcome.fail(tx, job, run, RunError(RunErrorCode.CREDENTIALS_REFUSED, message), self._ladder)
                return None
            attempt = Attempt(job, context, run, source, connector_job)
            await tx[JobStore].hold(job, self._lease)
            return attempt

    async def _connector_job(self, tx: Tx, run: Run, source: Source) -> Job:
        credentials = await opened_credentials(tx, self._vault, self._connectors, source)
        good = await tx[RunStore].last_good(source.id, run.stream)
        fetched = good.fetched_under(settings_digest(source, run.stream), source.checked_at) if good else None
        validators = Validators(fetched.etag, fetched.last_modified) if fetched else Validators()
        return Job(source.config, credentials, run.stream.value, validators, tx.tenant.org)

    async def _carry_out(self, attempt: Attempt) -> None:
        """Fetch, then work the snapshot through; one that turns out to be a stock sheet is worked through as such.

        Fetching waits for others; only what computes takes one of the slots.
        """
        with self._workspaces.folder() as folder:
            snapshot = await self._fetcher.fetch_snapshot(
                attempt.job.tenant, attempt.run, attempt.source, attempt.connector_job, folder
            )
            async with self._slots.slot(attempt.job.tenant.org):
                run = await self._keep_snapshot(attempt, snapshot)
                if run is None:
                    return
                assert snapshot.path is not None
                try:
                    await self._work_through(replace(attempt, run=run), snapshot.path)
                except StockSheet:
                    run = replace(run, stream=Stream.STOCK)
                    await self._save(attempt, run)
                    await self._work_through(replace(attempt, run=run), snapshot.path)

    async def _keep_snapshot(self, attempt: Attempt, snapshot: Snapshot) -> Run | None:
        """The run with what the fetch gave; None when the feed is the very one of the last good run, which ends it."""
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
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
                await outcome.succeed(tx, attempt.job, run, changed=False)
                return None
            await tx[RunStore].save(run)
            await tx[JobStore].hold(attempt.job, self._lease)
            return run

    async def _work_through(self, attempt: Attempt, path: Path) -> None:
        """The pipeline from the snapshot on: parse and map, compare, guard, normalise, store."""
        run = attempt.run
        async with self._readers.open(order_of(run, attempt.source, path, await self._known(attempt))) as reader:

            async def told(rows: int) -> None:
                await self._save(attempt, replace(run, stats={**run.stats, "rows": rows}))

            spooled = await reader.spool(told)
            async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
                run = await with_tables(tx, run, spooled.tables, ask=self._ask)
                await tx[RunStore].save(run)
                await tx[JobStore].hold(attempt.job, self._lease)
            feed = feed_of(spooled, run.stream)
            chunks = FeedChunks(self._uow, attempt.job.tenant, attempt.context, run.source, feed, reader, feed.chunks())
            writer = ChunkWriter(
                self._uow, attempt.job, attempt.context, self._lease, attempt.source, run, chunks, self._statistics
            )
            if not writer.first:
                await refuse_shrink(chunks, run)
                await reserve_records(chunks, run)
            await writer.write_chunks()
            await writer.age_absent_products()
        stats = {**run.stats, **writer.stats()}
        run = replace(writer.run, stats=stats, problems=tuple(feed.problems.kept))
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            await outcome.succeed(tx, attempt.job, run, changed=outcome.changed_anything(stats))

    async def _known(self, attempt: Attempt) -> tuple[KnownMapping, ...]:
        async with self._uow.read(attempt.job.tenant) as tx:
            return await known_to(tx, attempt.run)

    async def _save(self, attempt: Attempt, run: Run) -> None:
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            await tx[RunStore].save(run)
            await tx[JobStore].hold(attempt.job, self._lease)

    async def _latest(self, tx: Tx, attempt: Attempt) -> Run:
        """The run as stored, so that what its chunks counted is kept."""
        return await tx[RunStore].get(attempt.run.id) or attempt.run

    async def _fail(self, attempt: Attempt, error: RunError, stats: dict[str, int] | None = None) -> None:
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            run = await self._latest(tx, attempt)
            if stats is not None:
                run = replace(run, stats={**run.stats, **stats})
            await outcome.fail(tx, attempt.job, run, error, self._ladder)
        _LOG.info("run failed", extra={"run": attempt.run.id, "code": error.code})

    async def _fetch_failed(self, attempt: Attempt, failure: FetchFailed) -> None:
        if failure.waiting is None or (attempt.run.waited_out and not failure.own):
            await self._fail(attempt, RunError(RunErrorCode(failure.code), str(failure)))
            return
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            run = await self._latest(tx, attempt)
            until = max(failure.retry_at or tx.now + LATER, tx.now + SOON)
            run = run.put_off(WaitingReason(failure.waiting), until, str(failure), own=failure.own)
            await outcome.wait(tx, attempt.job, run, until)


def size_of(path: Path) -> tuple[int, bool]:
    """The snapshot's bytes, and whether they are packed."""
    with path.open("rb") as file:
        head = file.read(4)
    return path.stat().st_size, head.startswith(_PACKED)


async def known_to(tx: Tx, run: Run) -> tuple[KnownMapping, ...]:
    """What people have confirmed of the headers that the run may meet; records have none."""
    if isinstance(run.input, PushInput):
        return ()
    return bounded(await tx[MappingStore].confirmed(run.source, KNOWN))


def order_of(
    run: Run, source: Source, path: Path, known: tuple[KnownMapping, ...], limit: int | None = None
) -> ReadingOrder:
    """How the run's snapshot is to be read; no further than `limit` rows, when one is given."""
    handed_in = run.stream == Stream.CATALOGUE and source.kind in HANDED_IN_KINDS
    size, packed = size_of(path)
    return ReadingOrder(
        snapshot=str(path),
        folder=str(path.parent),
        connector=source.connector,
        config=source.config,
        stream=run.stream.value,
        settings=context_of(source, run.stream),
        buckets=bucket_count(size, packed=packed),
        room=spool_room(size, packed=packed),
        pushed=isinstance(run.input, PushInput),
        may_be_stock=handed_in and source.catalogue_at is not None,
        known=known,
        whole=run.complete,
        limit=limit,
    )
