"""Carrying out a run: fetch, parse and map, compare, guard, normalise, store; safe to take over at any point."""

import asyncio
import errno
import logging
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from domain.catalogue.model import Stream
from domain.ingestion.model import FeedTable
from domain.ingestion.vocabulary.senses import score_header
from domain.jobs.model import ClaimedJob
from domain.kernel.errors import DomainError
from domain.kernel.tenancy import Actor, AuditContext
from domain.runs.chunks import bucket_count
from domain.runs.model import (
    REREADING,
    Fetched,
    PushInput,
    Run,
    RunError,
    RunErrorCode,
    RunStage,
    WaitingReason,
)
from domain.runs.sheets import context_of, settings_digest
from domain.runs.shrink import SHRINK_LEAST, Offers, ShrinkRefused, allowance, confirms, kept_by_stock, offers_of
from domain.runs.usecases import outcome
from domain.runs.usecases.chunking import ChunkBuilder, ComparedChunk, FeedChunks
from domain.runs.usecases.fetching import Fetcher, Snapshot
from domain.runs.usecases.spooling import Interrupted, NeedsMapping, RowSpooler, SpooledFeed, StockSheet
from domain.runs.usecases.writing import ChunkWriter
from domain.sources.model import Ladder, Source
from ports.codec import Codec
from ports.connectors import Connectors, FetchFailed, Job, ParseFailed, Validators
from ports.objects import Objects
from ports.secrets import Vault
from ports.spool import Spools
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.runs")
TRIES: Final = 8
"""How often a run that meets unforeseen errors is tried: for some minutes, as the worker waits longer each time."""
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
        spools: Spools,
        codec: Codec,
        *,
        statistics: Callable[[], Coroutine[Any, Any, None]] | None = None,
        ladder: Ladder | None = None,
        lease: timedelta = timedelta(seconds=30),
        workspace: Path | None = None,
    ) -> None:
        self._uow = uow
        self._connectors = connectors
        self._vault = vault
        self._spools = spools
        self._codec = codec
        self._statistics = statistics or _nothing
        self._ladder = ladder or Ladder()
        self._lease = lease
        self._workspace = workspace
        self._fetcher = Fetcher(uow, connectors, objects, codec)

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Carry the run out to its end, or put it off. Raises LeaseLost when another worker took it over."""
        attempt = await self._begin(job)
        if attempt is None:
            return
        try:
            await self._carry_out(attempt, lost)
        except FetchFailed as failure:
            await self._fetch_failed(attempt, failure)
        except ParseFailed as failure:
            await self._fail(attempt, RunError(RunErrorCode.PARSE_FAILED, str(failure)))
        except NeedsMapping as failure:
            async with self._uow.begin(job.tenant, attempt.context) as tx:
                await outcome.ask_for_mapping(tx, job, await self._latest(tx, attempt), str(failure))
        except ShrinkRefused as refusal:
            stats = {**attempt.run.stats, "stated": refusal.stated, "would_withdraw": refusal.lost}
            await self._fail(attempt, RunError(RunErrorCode.SHRINK_REFUSED, str(refusal)), stats)
        except DomainError:
            raise
        except Exception as error:
            await self._unforeseen(attempt, error)

    async def _unforeseen(self, attempt: Attempt, error: Exception) -> None:
        """A full disk fails the run at once; anything else is tried again some times before it does."""
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            message = "The service has no space left to keep the feed; nothing was changed. Run it again later."
            await self._fail(attempt, RunError(RunErrorCode.STORAGE_FULL, message))
            return
        if attempt.job.attempt - attempt.run.waits < TRIES:
            raise error
        _LOG.error("run given up after %d attempts", TRIES, exc_info=error, extra={"run": attempt.run.id})
        message = (
            "The service met an error of its own; what was stored so far stays. Its operators can see it in the log."
        )
        await self._fail(attempt, RunError(RunErrorCode.INTERNAL_ERROR, message))

    async def _begin(self, job: ClaimedJob) -> Attempt | None:
        context = AuditContext(Actor("service", "worker"), job.kind)
        async with self._uow.begin(job.tenant, context) as tx:
            run = await tx.runs.get(str(job.args["run"]))
            source = await tx.sources.get(run.source, lock=True) if run else None  # as one with its credentials
            if run is None or source is None or run.finished_at is not None:
                await tx.jobs.finish(job)
                return None
            if not source.runnable:
                await outcome.cancel(tx, job, run, f"The source is {source.status}.")
                return None
            run = run.started(tx.now)
            await tx.runs.save(run)
            try:
                connector_job = await self._connector_job(tx, run, source)
            except ValueError:
                message = "The stored credentials cannot be opened; store them again."
                await outcome.fail(tx, job, run, RunError(RunErrorCode.CREDENTIALS_REFUSED, message), self._ladder)
                return None
            attempt = Attempt(job, context, run, source, connector_job)
            await tx.jobs.hold(job, self._lease)
            return attempt

    async def _connector_job(self, tx: Tx, run: Run, source: Source) -> Job:
        sealed = await tx.sources.sealed(source.id)
        info = self._connectors.info(source.connector)
        credentials = self._vault.open(sealed, source.id, info.destination(source.config)) if sealed and info else None
        good = await tx.runs.last_good(source.id, run.stream)
        fetched = good.fetched_under(settings_digest(source, run.stream)) if good else None
        validators = Validators(fetched.etag, fetched.last_modified) if fetched else Validators()
        return Job(source.config, credentials, run.stream.value, validators)

    async def _carry_out(self, attempt: Attempt, lost: asyncio.Event) -> None:
        """Fetch, then work the snapshot through; one that turns out to be a stock sheet is worked through as such."""
        with tempfile.TemporaryDirectory(prefix="joinery-run-", dir=self._workspace) as folder:
            snapshot = await self._fetcher.fetch_snapshot(
                attempt.job.tenant, attempt.run, attempt.source, attempt.connector_job, Path(folder)
            )
            run = await self._keep_snapshot(attempt, snapshot)
            if run is None:
                return
            assert snapshot.path is not None
            try:
                await self._work_through(replace(attempt, run=run), snapshot.path, lost)
            except StockSheet:
                run = replace(run, stream=Stream.STOCK)
                await self._save(attempt, run)
                await self._work_through(replace(attempt, run=run), snapshot.path, lost)

    async def _keep_snapshot(self, attempt: Attempt, snapshot: Snapshot) -> Run | None:
        """The run with what the fetch gave; None when the feed is the very one of the last good run, which ends it."""
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            run, digest, key = attempt.run, settings_digest(attempt.source, attempt.run.stream), snapshot.key
            good, unchanged = await tx.runs.last_good(run.source, run.stream), False
            if good and (before := good.fetched_under(digest)) and before.whole:
                unchanged = snapshot.unchanged or snapshot.key == good.snapshot
                key = good.snapshot if unchanged else key
            if run.snapshot is None or run.fetched_under(digest) is None:
                fetched = Fetched(digest, run.complete, snapshot.validators.etag, snapshot.validators.last_modified)
                run = replace(run, served_by=snapshot.served_by, fetched=fetched, checkpoint=None)
            stats = {**run.stats, "bytes": snapshot.size} | ({"unchanged_feed": 1} if unchanged else {})
            run = replace(run, snapshot=key, stats=stats, stage=RunStage.DONE if unchanged else RunStage.PARSE)
            if unchanged and run.trigger not in REREADING:
                await outcome.succeed(tx, attempt.job, run, changed=False)
                return None
            await tx.runs.save(run)
            await tx.jobs.hold(attempt.job, self._lease)
            return run

    async def _work_through(self, attempt: Attempt, path: Path, lost: asyncio.Event) -> None:
        """The pipeline from the snapshot on: parse and map, compare, guard, normalise, store."""
        run, context = attempt.run, context_of(attempt.source, attempt.run.stream)
        feed = SpooledFeed(_buckets(path), run.stream)
        with self._spools.open(feed.buckets) as spool:
            await self._spool_rows(attempt, path, RowSpooler(self._codec, spool, context, feed), feed, lost)
            chunks = FeedChunks(
                self._uow,
                attempt.job.tenant,
                attempt.context,
                run.source,
                feed,
                ChunkBuilder(self._codec, spool, feed, context),
                feed.chunks(),
            )
            writer = ChunkWriter(
                self._uow, attempt.job, attempt.context, self._lease, attempt.source, run, chunks, self._statistics
            )
            if not writer.first:
                await refuse_shrink(chunks, run)
            await writer.write_chunks()
            await writer.age_absent_products()
        stats = {**run.stats, **writer.stats()}
        run = replace(writer.run, stats=stats, problems=tuple(feed.problems.kept))
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            await outcome.succeed(tx, attempt.job, run, changed=outcome.changed_anything(stats))

    async def _spool_rows(
        self, attempt: Attempt, path: Path, spooler: RowSpooler, feed: SpooledFeed, lost: asyncio.Event
    ) -> None:
        """Read in a thread; meanwhile say how far it is, and stop it when the lease is lost."""
        work = asyncio.create_task(asyncio.to_thread(self._read, attempt, path, spooler, feed))
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=2)
                if lost.is_set():
                    feed.stop = True
                elif not work.done():
                    await self._save(attempt, replace(attempt.run, stats={**attempt.run.stats, "rows": feed.rows}))
            work.result()
        except Interrupted:
            raise asyncio.CancelledError from None
        finally:
            feed.stop = True
            if not work.done():
                await asyncio.wait({work})
        feed.close()

    def _read(self, attempt: Attempt, path: Path, spooler: RowSpooler, feed: SpooledFeed) -> None:
        if isinstance(attempt.run.input, PushInput):
            spooler.records(self._fetcher.parts(path))
            return
        tables: Iterator[FeedTable] = self._connectors.tables(
            attempt.source.connector, attempt.connector_job, path, score_header, feed.problems.add
        )
        spooler.tables(tables, may_be_stock=attempt.run.may_be_stock and attempt.source.catalogue_at is not None)

    async def _save(self, attempt: Attempt, run: Run) -> None:
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            await tx.runs.save(run)
            await tx.jobs.hold(attempt.job, self._lease)

    async def _latest(self, tx: Tx, attempt: Attempt) -> Run:
        """The run as stored, so that what its chunks counted is kept."""
        return await tx.runs.get(attempt.run.id) or attempt.run

    async def _fail(self, attempt: Attempt, error: RunError, stats: dict[str, int] | None = None) -> None:
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            run = await self._latest(tx, attempt)
            if stats is not None:
                run = replace(run, stats={**run.stats, **stats})
            await outcome.fail(tx, attempt.job, run, error, self._ladder)
        _LOG.info("run failed", extra={"run": attempt.run.id, "code": error.code})

    async def _fetch_failed(self, attempt: Attempt, failure: FetchFailed) -> None:
        if failure.waiting is None or attempt.run.waited_out:
            await self._fail(attempt, RunError(RunErrorCode(failure.code), str(failure)))
            return
        until = failure.retry_at or datetime.now(UTC) + timedelta(minutes=1)
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            run = await self._latest(tx, attempt)
            await outcome.wait(tx, attempt.job, run, WaitingReason(failure.waiting), until, str(failure))


def _buckets(path: Path) -> int:
    with path.open("rb") as file:
        head = file.read(4)
    return bucket_count(path.stat().st_size, packed=head.startswith(_PACKED))


async def refuse_shrink(chunks: FeedChunks, run: Run) -> None:
    """Raises ShrinkRefused when the run would withdraw too much and nobody said that it may."""
    if not run.complete or run.accept_shrink:
        return
    async with chunks.uow.read(chunks.tenant) as tx:
        stated = await tx.catalogue.stated_offers(run.source, run.stream)
        before = await tx.runs.last_ended(run.source, run.stream)
    if stated <= SHRINK_LEAST:
        return
    allowed = allowance(stated)
    # every offer under a changed key counts at first: an upper bound that reads no changed row
    lost = await _lost(chunks, run.stream, allowed, exactly=run.stream == Stream.STOCK)
    if lost > allowed and run.stream == Stream.CATALOGUE:
        lost = await _lost(chunks, run.stream, stated, exactly=True)
    if lost > allowed and not confirms(before, lost):
        raise ShrinkRefused(stated, lost)


async def _lost(chunks: FeedChunks, stream: Stream, enough: int, *, exactly: bool) -> int:
    """How many offers the run would withdraw; counting stops past `enough`."""
    lost = 0
    for number in range(len(chunks.buckets)):
        compared = await chunks.compare(number)
        if keys := compared.diff.changed | compared.diff.absent:
            async with chunks.uow.read(chunks.tenant) as tx:
                held = await tx.catalogue.stated_of(chunks.source, stream, sorted(keys))
            if held and exactly:
                held -= await asyncio.to_thread(_kept, chunks, compared, held)
            lost += len(held)
        if lost > enough:
            break
    return lost


def _kept(chunks: FeedChunks, compared: ComparedChunk, held: Offers) -> Offers:
    """Which of the offers held under changed keys the feed states anew."""
    changed = compared.diff.changed
    if chunks.feed.stream == Stream.STOCK:
        return kept_by_stock(held, changed, chunks.feed.places())
    statements, _ = chunks.builder.statements(compared.chunk, changed)
    return offers_of(statements)
