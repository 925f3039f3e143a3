"""Use cases of runs: list runs, queue pulls and replays, and store pushed records."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.ingestion.model import FeedSettings
from domain.ingestion.ports import Connectors
from domain.jobs.ports import JobStore
from domain.kernel import retention
from domain.kernel.errors import Conflict, InvalidRequest, NotFound, Unprocessable
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import require_found
from domain.mappings.model import SourceMapping
from domain.runs.model import ProblemSelection, PushInput, Run, RunDay, RunFilter, RunTrigger, StartRun
from domain.runs.ports import PushStore, RunStore
from domain.runs.run_queue import build_queued_run_change, enqueue_run, new_execution_job, new_run, require_no_open_run
from domain.runs.sheets import create_feed_settings
from domain.runs.usecases.category_rules import CategoryRuleService
from domain.runs.usecases.dry_run import MAX_BATCH_RECORDS, DryRun
from domain.runs.usecases.scheduling import refuse_expired_batch
from domain.runs.usecases.snapshots import read_pushed_parts
from domain.sources.model import FETCHED_KINDS, FILE_KINDS, Source
from domain.sources.ports import SourceStore
from domain.storage.admission import create_quota_error
from domain.storage.ports import StorageLedger
from domain.usage import meters
from domain.usage.usecases.quota import refuse_if_spent
from ports.unit_of_work import Tx


async def find_run_of_mapping(tx: Tx, mapping: SourceMapping) -> Run | None:
    """Return the run whose snapshot a mapping belongs to, or else the one with the newest snapshot; None without snapshot."""
    replayable = await tx[RunStore].list_replayable(mapping.source, mapping.stream)
    return next((run for run in replayable if mapping.id in run.mappings), replayable[0] if replayable else None)


class Replayer:
    """Queues runs that read stored snapshots again; implements `domain.mappings.usecases.SnapshotReplay`."""

    def build_feed_settings(self, source: Source, stream: Stream) -> FeedSettings:
        """Return the settings for reading values of the source's stream."""
        return create_feed_settings(source, stream)

    async def queue_mapping_replay(self, tx: Tx, source: Source, mapping: SourceMapping) -> None:
        """Queue a run that reads the snapshot to which the mapping belongs, or else the newest snapshot of the stream.

        If no snapshot is stored, nothing is queued. Raises Conflict if a run of the stream is open.
        """
        chosen = await find_run_of_mapping(tx, mapping)
        if chosen is None:
            await require_no_open_run(tx, source.id, mapping.stream)
        else:
            await self._enqueue_replay(tx, source, chosen, RunTrigger.MAPPING)

    async def queue_replay(self, tx: Tx, source: Source, *, stream: Stream, accept_shrink: bool) -> Run:
        """Queue a run that reads the newest snapshot of the stream again; the source must be locked.

        Raises Conflict if a run of the stream is open, or if no snapshot is stored.

        Args:
            tx: The transaction.
            source: The source.
            stream: The stream.
            accept_shrink: Whether to disable the removal limit and prefer the snapshot of a run that it has refused.
        """
        refused = await tx[RunStore].find_run_over_removal_limit(source.id, stream) if accept_shrink else None
        if refused is not None and await tx[StorageLedger].is_stored(refused.snapshot or ""):
            return await self._enqueue_replay(tx, source, refused, RunTrigger.REPLAY, accept_shrink=True)
        replayable = await tx[RunStore].list_replayable(source.id, stream)
        if not replayable:
            raise Conflict(f"No {stream} data of the source is stored. Pull the source or send its data.")
        return await self._enqueue_replay(tx, source, replayable[0], RunTrigger.REPLAY, accept_shrink=accept_shrink)

    async def _enqueue_replay(
        self, tx: Tx, source: Source, earlier: Run, trigger: RunTrigger, *, accept_shrink: bool = False
    ) -> Run:
        stream = Stream.CATALOGUE if source.kind in FILE_KINDS else earlier.stream
        await require_no_open_run(tx, source.id, stream)
        # keep that the input is records, and whether it is complete; the batch has ended
        pushed = replace(earlier.input, batch=None, open=False) if isinstance(earlier.input, PushInput) else None
        run = new_run(source.id, trigger, tx.now, stream=stream, input=pushed, accept_shrink=accept_shrink)
        return await enqueue_run(tx, run.with_snapshot_of(earlier))


@dataclass(frozen=True, slots=True)
class PushRequest:
    """Pushed records of one call.

    Attributes:
        records: The records as a JSON array in UTF-8.
        record_count: Number of records.
        is_complete: Whether the batch is the source's whole catalogue.
        batch: Name of the batch, if several calls add records to one run.
        has_more: Whether further calls of the batch follow.
        accept_shrink: Whether the removal limit is disabled for the run.
    """

    records: bytes
    record_count: int
    is_complete: bool = False
    batch: str | None = None
    has_more: bool = False
    accept_shrink: bool = False


@dataclass(frozen=True, slots=True)
class RunService:
    """Use cases of runs: list runs, queue pulls and replays, and store pushed records.

    Attributes:
        dry_run: Previews the outcome of a push in dry runs; None to omit the preview.
    """

    connectors: Connectors
    dry_run: DryRun | None = None
    category_rules: CategoryRuleService = field(default_factory=CategoryRuleService)

    async def list_runs(self, tx: Tx, source: str, page_request: PageRequest) -> Page[Run]:
        """Return a page of a source's runs, newest first. Raises NotFound for an unknown source."""
        await _get_source(tx, source)
        return await tx[RunStore].page(page_request, RunFilter(source))

    async def count_by_day(self, tx: Tx, since: datetime) -> Sequence[RunDay]:
        """Return the numbers of successful and failed runs by source and day since `since`."""
        return await tx[RunStore].count_by_day(since)

    async def get(self, tx: Tx, id: str) -> Run:
        """Return a run. Raises NotFound."""
        return require_found(await tx[RunStore].get(id))

    async def set_problems_ignored(self, tx: Tx, id: str, selection: ProblemSelection, *, ignored: bool) -> Run:
        """Mark problems of a run as ignored or as open, and return the run.

        Problems with the same item, column and value are marked together. Later runs of the source keep ignored problems
        ignored.

        Raises:
            NotFound: The run does not exist, or the selection contains no problem.
            Conflict: The run has not ended.
        """
        before = require_found(await tx[RunStore].get(id, lock=True))
        if before.finished_at is None:
            raise Conflict("The run has not ended. Wait until it ends.")
        selected = {problem.identity for problem in selection.select(before.problems)}
        if not selected:
            raise NotFound
        after = before.with_ignored_problems(selected, ignored=ignored)
        if after != before:
            await tx[RunStore].save(after)
            old, new = ({"problems_ignored": run.stats.get("problems_ignored", 0)} for run in (before, after))
            await tx[AuditLog].add(Change("run", id, "update", old, new))
        return after

    async def queue_pull(self, tx: Tx, source: str, request: StartRun) -> Run:
        """Queue a run that fetches the stream now.

        Raises:
            NotFound: The source does not exist.
            Unprocessable: The source is not pulled, or its connector has no separate feed of the stream.
            Conflict: A run of the stream is open, or the source is not active.
        """
        found = await _get_source(tx, source, lock=True)
        self._refuse_unless_pulled(found, request.stream)
        found.refuse_unless_runnable()
        await require_no_open_run(tx, source, request.stream)
        run = new_run(source, RunTrigger.MANUAL, tx.now, stream=request.stream, accept_shrink=request.accept_shrink)
        return await enqueue_run(tx, run)

    async def queue_replay(self, tx: Tx, source: str, request: StartRun) -> Run:
        """Queue a run that reads the newest stored snapshot again instead of fetching.

        Raises:
            NotFound: The source does not exist.
            Conflict: A run of the stream is open, the source is not active, or no snapshot is stored.
        """
        found = await _get_source(tx, source, lock=True)
        found.refuse_unless_runnable()
        return await Replayer().queue_replay(tx, found, stream=request.stream, accept_shrink=request.accept_shrink)

    async def push(self, tx: Tx, source: str, push: PushRequest) -> Run:
        """Store the records of one call and return their run; unless `has_more` is set, queue the run.

        Raises:
            NotFound: The source does not exist.
            Unprocessable: The source is not of kind push.
            Conflict: The source is not active, or the batch has expired.
            InvalidRequest: `has_more` is set without a batch.
            QuotaExceeded: The plan has no records or storage left.
        """
        if push.has_more and push.batch is None:
            detail = "A batch that stays open for further calls (`more`: true) needs a name. Set `batch`."
            raise InvalidRequest.for_field("batch", "required", detail)
        found = await _get_source(tx, source, lock=not tx.is_dry_run)
        if found.kind != "push":
            raise Unprocessable(
                f"A source of kind {found.kind} does not accept records. Create a source of kind push and send them "
                f"there."
            )
        found.refuse_unless_runnable()
        await refuse_if_spent(tx, meters.RECORDS)
        run = await self._find_or_create_run(tx, source, push)
        assert isinstance(run.input, PushInput)
        part = run.input.parts
        updated_input = run.input.with_part(
            push.record_count, batch=push.batch, has_more=push.has_more, is_complete=push.is_complete
        )
        run = replace(run, input=updated_input, accept_shrink=run.accept_shrink or push.accept_shrink)
        await tx[RunStore].save(run)
        await _store_part(tx, run, part, push)
        if not push.has_more:
            await tx[JobStore].add(new_execution_job(run, tx.tenant))
        if tx.is_dry_run and self.dry_run is not None:
            first = 0 if updated_input.records <= MAX_BATCH_RECORDS else part
            left_out = updated_input.records - push.record_count if first else 0
            return await self.dry_run.preview_push(
                tx, found, run, read_pushed_parts(tx, run.id, range(first, updated_input.parts)), left_out
            )
        return run

    async def _find_or_create_run(self, tx: Tx, source: str, push: PushRequest) -> Run:
        """Return the queued run that collects the push's batch; without one, create a run."""
        if push.batch is not None:
            if run := await tx[PushStore].find_collecting(source, push.batch):
                return run
            refuse_expired_batch(await tx[PushStore].find_newest(source, push.batch), tx.now)
        run = new_run(source, RunTrigger.PUSH, tx.now, input=PushInput())
        await tx[RunStore].add(run)
        await tx[AuditLog].add(build_queued_run_change(run))
        return run

    def _refuse_unless_pulled(self, source: Source, stream: Stream) -> None:
        info = self.connectors.find_connector(source.connector)
        if source.kind not in FETCHED_KINDS:
            raise Unprocessable(f"A source of kind {source.kind} is not pulled. {_ALTERNATIVES_TO_PULL[source.kind]}")
        if info is None or not info.can_fetch:
            raise Unprocessable(
                f"The connector {source.connector} cannot pull. Set another connector, or create a source of kind file or push."
            )
        if not info.has_feed(stream, source.config):
            remedy = f"Set config.{info.stock_setting}, or omit" if stream in info.streams else "Omit"
            detail = f"The source has no separate {stream} feed. {remedy} the stream."
            raise Unprocessable.for_field("stream", "invalid_value", detail)


_ALTERNATIVES_TO_PULL = {
    "file": "Upload a file (POST /v1/sources/{id}/uploads), or replay the last one (POST /v1/sources/{id}/replay).",
    "push": "Send records (POST /v1/sources/{id}/records), or replay the last ones (POST /v1/sources/{id}/replay).",
    "mail": "Send mail to its inbound_address, or replay the last file (POST /v1/sources/{id}/replay).",
}
"""Instructions to start a run, for each kind of source that is not pulled."""


async def _store_part(tx: Tx, run: Run, part: int, push: PushRequest) -> None:
    """Store the records as part number `part` of the run. Raises QuotaExceeded."""
    add, expires = tx[PushStore].add_part, tx.now + retention.OPEN_BATCHES if push.batch is not None else None
    if not await add(run.id, part, push.records, expires):
        size = len(push.records) + 1
        if not (await tx[StorageLedger].make_space(size) and await add(run.id, part, push.records, expires)):
            raise create_quota_error(size, tx.now)


async def _get_source(tx: Tx, id: str, *, lock: bool = False) -> Source:
    return require_found(await tx[SourceStore].get(id, lock=lock))
