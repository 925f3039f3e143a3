"""Use cases of runs: list, start, replay, and push records."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.ingestion.model import FeedSettings
from domain.ingestion.ports import Connectors
from domain.jobs.ports import JobStore
from domain.kernel import retention
from domain.kernel.errors import Conflict, InvalidRequest, Unprocessable
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import existing
from domain.mappings.model import SourceMapping
from domain.runs.model import PushInput, Run, RunDay, RunFilter, RunTrigger, StartRun
from domain.runs.ports import PushStore, RunStore
from domain.runs.queueing import enqueue, execution, queued, refuse_open, started
from domain.runs.sheets import context_of
from domain.runs.usecases.category_rules import CategoryRuleService
from domain.runs.usecases.rehearsal import RECORDS, Rehearsal
from domain.runs.usecases.scheduling import refuse_expired
from domain.runs.usecases.snapshots import pushed_parts
from domain.sources.model import FETCHED_KINDS, HANDED_IN_KINDS, Source
from domain.sources.ports import SourceStore
from domain.storage.keeping import no_room
from domain.storage.ports import StorageLedger
from domain.usage import meters
from domain.usage.usecases.quota import refuse_spent
from ports.unit_of_work import Tx


class Replayer:
    """Replays of stored data; implements domain.mappings.usecases.Replaying."""

    def settings(self, source: Source, stream: Stream) -> FeedSettings:
        """Return the settings for reading the source's values."""
        return context_of(source, stream)

    async def after_mapping(self, tx: Tx, source: Source, mapping: SourceMapping) -> None:
        """Queue a run over the snapshot that the mapping is about, or else the newest; none if nothing is stored.

        Raises Conflict while a run is open.
        """
        kept = await tx[RunStore].replayable(source.id, mapping.stream)
        chosen = next((run for run in kept if mapping.id in run.mappings), kept[0] if kept else None)
        if chosen is None:
            await refuse_open(tx, source.id, mapping.stream)
        else:
            await self._queue(tx, source, chosen, RunTrigger.MAPPING)

    async def replay(self, tx: Tx, source: Source, *, stream: Stream, accept_shrink: bool) -> Run:
        """Queue a run over the newest snapshot of the stream; with `accept_shrink`, over the one that the removal limit refused.

        The source is locked. Raises Conflict while a run is open, or if nothing is stored.
        """
        refused = await tx[RunStore].refused(source.id, stream) if accept_shrink else None
        if refused is not None and await tx[StorageLedger].holds(refused.snapshot or ""):
            return await self._queue(tx, source, refused, RunTrigger.REPLAY, accept_shrink=True)
        kept = await tx[RunStore].replayable(source.id, stream)
        if not kept:
            raise Conflict(
                f"Nothing of the source's {stream} is kept that could be read again; pull it, or hand its data in."
            )
        return await self._queue(tx, source, kept[0], RunTrigger.REPLAY, accept_shrink=accept_shrink)

    async def _queue(
        self, tx: Tx, source: Source, read: Run, trigger: RunTrigger, *, accept_shrink: bool = False
    ) -> Run:
        stream = Stream.CATALOGUE if source.kind in HANDED_IN_KINDS else read.stream
        await refuse_open(tx, source.id, stream)
        # keep that the input is records, and whether it is complete; the batch has ended
        pushed = replace(read.input, batch=None, open=False) if isinstance(read.input, PushInput) else None
        run = queued(source.id, trigger, tx.now, stream=stream, input=pushed, accept_shrink=accept_shrink)
        return await enqueue(tx, run.over(read))


@dataclass(frozen=True, slots=True)
class Push:
    """Records of one call: `records` is a JSON array in UTF-8, `count` their number.

    `batch` names the run that several calls fill; `more` keeps it open for the next one; `complete`: the batch is the
    source's whole catalogue. `accept_shrink` disables the removal limit.
    """

    records: bytes
    count: int
    complete: bool = False
    batch: str | None = None
    more: bool = False
    accept_shrink: bool = False


@dataclass(frozen=True, slots=True)
class RunService:
    """Runs of a tenant, which are queued here and executed by workers. With a `rehearsal`, a dry run previews a push."""

    connectors: Connectors
    rehearsal: Rehearsal | None = None
    category_rules: CategoryRuleService = field(default_factory=CategoryRuleService)

    async def list_runs(self, tx: Tx, source: str, page_request: PageRequest) -> Page[Run]:
        """Return a page of a source's runs, newest first. Raises NotFound for an unknown source."""
        await _source(tx, source)
        return await tx[RunStore].page(page_request, RunFilter(source))

    async def days(self, tx: Tx, since: datetime) -> Sequence[RunDay]:
        """Return how each source's runs ended, by day since the time."""
        return await tx[RunStore].days(since)

    async def get(self, tx: Tx, id: str) -> Run:
        """Return a run. Raises NotFound."""
        return existing(await tx[RunStore].get(id))

    async def start(self, tx: Tx, source: str, asked: StartRun) -> Run:
        """Queue a pull now.

        Raises NotFound; Unprocessable for sources that are not pulled and for a stock pull of a connector that does not
        read stock apart; Conflict while a run of the stream is open or the source is not active.
        """
        found = await _source(tx, source, lock=True)
        self._refuse_unless_pulled(found, asked.stream)
        found.refuse_unless_runnable()
        await refuse_open(tx, source, asked.stream)
        run = queued(source, RunTrigger.MANUAL, tx.now, stream=asked.stream, accept_shrink=asked.accept_shrink)
        return await enqueue(tx, run)

    async def replay(self, tx: Tx, source: str, asked: StartRun) -> Run:
        """Queue a run over the newest stored snapshot, without fetching.

        Raises NotFound; Conflict while a run is open, if the source is not active, or if nothing is stored.
        """
        found = await _source(tx, source, lock=True)
        found.refuse_unless_runnable()
        return await Replayer().replay(tx, found, stream=asked.stream, accept_shrink=asked.accept_shrink)

    async def push(self, tx: Tx, source: str, push: Push) -> Run:
        """Store records; without `more` the run is queued after those already there.

        Raises NotFound, Unprocessable unless the source is pushed, Conflict unless it is active and for a batch that has
        expired, InvalidRequest for `more` without a batch to keep open, QuotaExceeded.
        """
        if push.more and push.batch is None:
            detail = "With more: true the batch stays open for further calls, so give it a name of your own."
            raise InvalidRequest.of("batch", "required", detail)
        found = await _source(tx, source, lock=not tx.dry)
        if found.kind != "push":
            raise Unprocessable(
                f"A source of kind {found.kind} takes no records; make a source of kind push and send them there."
            )
        found.refuse_unless_runnable()
        await refuse_spent(tx, meters.RECORDS)
        run = await self._collecting(tx, source, push)
        assert isinstance(run.input, PushInput)
        part = run.input.parts
        filled = run.input.with_part(push.count, batch=push.batch, more=push.more, complete=push.complete)
        run = replace(run, input=filled, accept_shrink=run.accept_shrink or push.accept_shrink)
        await tx[RunStore].save(run)
        await _keep_part(tx, run, part, push)
        if not push.more:
            await tx[JobStore].add(execution(run, tx.tenant))
        if tx.dry and self.rehearsal is not None:
            first = 0 if filled.records <= RECORDS else part
            left_out = filled.records - push.count if first else 0
            return await self.rehearsal.push(
                tx, found, run, pushed_parts(tx, run.id, range(first, filled.parts)), left_out
            )
        return run

    async def _collecting(self, tx: Tx, source: str, push: Push) -> Run:
        """Return the run that collects the batch of this push, or a new run."""
        if push.batch is not None:
            if run := await tx[PushStore].collecting(source, push.batch):
                return run
            refuse_expired(await tx[PushStore].newest(source, push.batch), tx.now)
        run = queued(source, RunTrigger.PUSH, tx.now, input=PushInput())
        await tx[RunStore].add(run)
        await tx[AuditLog].add(started(run))
        return run

    def _refuse_unless_pulled(self, source: Source, stream: Stream) -> None:
        info = self.connectors.info(source.connector)
        if source.kind not in FETCHED_KINDS:
            raise Unprocessable(f"A source of kind {source.kind} is not pulled. {_HANDED_IN[source.kind]}")
        if info is None or not info.fetches:
            raise Unprocessable(
                f"The connector {source.connector} pulls nothing; set another one, or hand the data in."
            )
        if not info.reads(stream, source.config):
            remedy = f"Set config.{info.stock_setting}, or leave" if stream in info.streams else "Leave"
            detail = f"The source has no separate {stream} feed. {remedy} the stream out."
            raise Unprocessable.of("stream", "invalid_value", detail)


_HANDED_IN = {
    "file": "Announce a file (POST /v1/sources/{id}/uploads), or read the last one again (POST /v1/sources/{id}/replay).",
    "push": "Send records (POST /v1/sources/{id}/records), or read the last ones again (POST /v1/sources/{id}/replay).",
    "mail": "Send mail to its inbound_address, or read the last file again (POST /v1/sources/{id}/replay).",
}
"""How to start a run of each kind that is not pulled."""


async def _keep_part(tx: Tx, run: Run, part: int, push: Push) -> None:
    """Store a part. Raises QuotaExceeded."""
    add, expires = tx[PushStore].add_part, tx.now + retention.OPEN_BATCHES if push.batch is not None else None
    if not await add(run.id, part, push.records, expires):
        size = len(push.records) + 1
        if not (await tx[StorageLedger].make_room(size) and await add(run.id, part, push.records, expires)):
            raise no_room(size, tx.now)


async def _source(tx: Tx, id: str, *, lock: bool = False) -> Source:
    return existing(await tx[SourceStore].get(id, lock=lock))
