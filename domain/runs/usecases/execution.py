"""Carrying out a run: fetch, parse and map, then normalise and store chunk by chunk; safe to take over at any point."""

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
from domain.ingestion.model import Context, Table
from domain.ingestion.vocabulary import score_header
from domain.jobs.model import ClaimedJob
from domain.kernel.errors import DomainError
from domain.kernel.tenancy import Actor, AuditContext
from domain.runs.model import (
    REREADING,
    Fetched,
    PushInput,
    Run,
    RunError,
    RunErrorCode,
    RunStage,
    RunTrigger,
    WaitingReason,
)
from domain.runs.usecases import outcome
from domain.runs.usecases.chunking import ChunkBuilder
from domain.runs.usecases.fetching import Fetcher, Snapshot, settings_digest
from domain.runs.usecases.reading import Interrupted, NeedsMapping, Reader, Reading, StockSheet
from domain.runs.usecases.storing import ShrinkRefused, Storer
from domain.sources.model import Ladder, Source
from ports.codec import Codec
from ports.connectors import Connectors, FetchFailed, Job, ParseFailed, Validators
from ports.objects import Objects
from ports.secrets import Vault
from ports.spool import Spool, Spools
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.runs")
BUCKET_BYTES: Final = 16 << 10
MOST_BUCKETS: Final = 1024
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
            source = await tx.sources.get(run.source) if run else None
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
        credentials = self._vault.open(sealed, source.id) if sealed else None
        good = await tx.runs.last_good(source.id, run.stream)
        validators = Validators()
        if good and good.fetched and good.fetched.settings == settings_digest(source, run.stream):
            validators = Validators(good.fetched.etag, good.fetched.last_modified)
        return Job(source.config, credentials, run.stream, validators)

    async def _carry_out(self, attempt: Attempt, lost: asyncio.Event) -> None:
        with tempfile.TemporaryDirectory(prefix="joinery-run-", dir=self._workspace) as name:
            job = attempt.job
            snapshot = await self._fetcher.snapshot(
                job.tenant, attempt.run, attempt.source, attempt.connector_job, Path(name)
            )
            async with self._uow.begin(job.tenant, attempt.context) as tx:
                run, unchanged = await self._fetched(tx, attempt, snapshot)
                if unchanged:
                    await outcome.succeed(tx, job, run, changed=False)
                    return
                await tx.runs.save(run)
                await tx.jobs.hold(job, self._lease)
            assert snapshot.path is not None
            await self._store(replace(attempt, run=run), snapshot.path, lost)

    async def _fetched(self, tx: Tx, attempt: Attempt, snapshot: Snapshot) -> tuple[Run, bool]:
        """The run with what the fetch gave, and whether the feed is the very one of the last good run."""
        run, digest = attempt.run, settings_digest(attempt.source, attempt.run.stream)
        good = await tx.runs.last_good(run.source, run.stream)
        unchanged = False
        key = snapshot.key
        if good and good.fetched and good.fetched.settings == digest and good.fetched.whole:
            unchanged = snapshot.unchanged or snapshot.key == good.snapshot
            key = good.snapshot if unchanged else key
        if run.snapshot is None or run.fetched is None or run.fetched.settings != digest:
            fetched = Fetched(digest, run.complete, snapshot.validators.etag, snapshot.validators.last_modified)
            run = replace(run, served_by=snapshot.served_by, fetched=fetched, checkpoint=None)
        stats = {**run.stats, "bytes": snapshot.size} | ({"unchanged_feed": 1} if unchanged else {})
        stage = RunStage.DONE if unchanged else RunStage.PARSE
        return replace(run, snapshot=key, stats=stats, stage=stage), unchanged and run.trigger not in REREADING

    async def _store(self, attempt: Attempt, path: Path, lost: asyncio.Event) -> None:
        try:
            await self._read_and_store(attempt, path, lost)
        except StockSheet:
            run = replace(attempt.run, stream=Stream.STOCK)
            async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
                await tx.runs.save(run)
                await tx.jobs.hold(attempt.job, self._lease)
            await self._read_and_store(replace(attempt, run=run), path, lost)

    async def _read_and_store(self, attempt: Attempt, path: Path, lost: asyncio.Event) -> None:
        context = context_of(attempt.source, attempt.run.stream)
        reading = Reading(buckets_of(path), attempt.run.stream)
        with self._spools.open(reading.buckets) as spool:
            await self._read(attempt, path, context, reading, spool, lost)
            reading.close()
            storer = Storer(
                uow=self._uow,
                tenant=attempt.job.tenant,
                context=attempt.context,
                job=attempt.job,
                lease=self._lease,
                source=attempt.source,
                run=attempt.run,
                reading=reading,
                chunk_builder=ChunkBuilder(self._codec, reading.sheets, context),
                spool=spool,
                complete=attempt.run.complete,
                statistics=self._statistics,
            )
            await storer.guard()
            await storer.store()
            await storer.age()
        stats = {**attempt.run.stats, **storer.stats()}
        run = replace(storer.run, stats=stats, problems=tuple(reading.findings.kept))
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            await outcome.succeed(tx, attempt.job, run, changed=outcome.told(stats))

    async def _read(
        self, attempt: Attempt, path: Path, context: Context, reading: Reading, spool: Spool, lost: asyncio.Event
    ) -> None:
        """Read in a thread; meanwhile say how far it is, and stop it when the lease is lost."""
        run = attempt.run
        handed_in = run.trigger in (RunTrigger.UPLOAD, RunTrigger.MAIL) and run.stream == Stream.CATALOGUE
        may_be_stock = handed_in and attempt.source.catalogue_at is not None
        reader = Reader(self._codec, spool, context, reading, may_be_stock=may_be_stock)
        work = asyncio.create_task(asyncio.to_thread(self._walk, attempt, path, reader, reading))
        try:
            while not work.done():
                await asyncio.wait({work}, timeout=2)
                if lost.is_set():
                    reading.stop = True
                elif not work.done():
                    await self._progress(attempt, reading)
            work.result()
        except Interrupted:
            raise asyncio.CancelledError from None
        finally:
            reading.stop = True
            if not work.done():
                await asyncio.wait({work})

    def _walk(self, attempt: Attempt, path: Path, reader: Reader, reading: Reading) -> None:
        if isinstance(attempt.run.input, PushInput):
            reader.records(self._fetcher.parts(path))
            return
        tables: Iterator[Table] = self._connectors.tables(
            attempt.source.connector, attempt.connector_job, path, score_header, reading.findings.add
        )
        reader.tables(tables)

    async def _progress(self, attempt: Attempt, reading: Reading) -> None:
        async with self._uow.begin(attempt.job.tenant, attempt.context) as tx:
            await tx.runs.save(replace(attempt.run, stats={**attempt.run.stats, "rows": reading.rows}))
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


def context_of(source: Source, stream: Stream) -> Context:
    """How the source's values are to be read."""
    config = source.config
    currency = config.get("currency")
    return Context(
        currency=str(currency).lower() if currency else None,
        decimal=str(config.get("decimal", "auto")),
        warehouse=config.get("warehouse"),
        price_code=config.get("price_code"),
        stream=stream.value,
    )


def buckets_of(path: Path) -> int:
    """How many buckets a snapshot's rows are put aside in, by its size; packed ones hold about six times as much."""
    with path.open("rb") as file:
        head = file.read(4)
    size = path.stat().st_size * (6 if head.startswith(_PACKED) else 1)
    return max(1, min(MOST_BUCKETS, -(-size // BUCKET_BYTES)))
