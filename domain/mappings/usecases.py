"""Use cases of column mappings: confirmation by users, proposals by runs, and guesses by a language model."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from domain.audit.model import AuditAct
from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import compute_header_digest
from domain.ingestion.model import FeedSettings
from domain.ingestion.snapshot_results import MappedTable
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.errors import NotFound
from domain.kernel.paging import Page, PageRequest
from domain.mappings.confirmation import apply_confirmation
from domain.mappings.model import (
    MAX_MAPPINGS,
    MappingConfirmation,
    MappingFilter,
    MappingStatus,
    SourceMapping,
    build_confirmation_change,
    restore_mapping,
)
from domain.mappings.model_requests import (
    INSTRUCTIONS,
    MODEL_REQUEST_JOB,
    ColumnGuess,
    InvalidModelAnswer,
    apply_guesses,
    build_answer_schema,
    build_request_data,
    compute_retry_delay,
    create_model_request_job,
    find_request_positions,
    parse_guesses,
)
from domain.mappings.ports import MappingStore
from domain.mappings.proposal_log import propose_mapping, update_proposal
from domain.proposals.model import create_proposing_job
from domain.proposals.staleness import mark_stale
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.usage.model_budget import record_model_use
from ports.language_models import LanguageModels, ModelPrompt, ModelRefused, ModelUnavailable, ModelUsage
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.mappings")
_MODEL_TIMEOUT_SECONDS = 120.0
"""Maximum seconds to wait for a model's response; after this time, the request is postponed."""
_RETRY_DELAY = timedelta(seconds=2)
_MAX_RETRY_DELAY = timedelta(days=1)


class SnapshotReplay(Protocol):
    """Port that queues runs over stored files after a mapping was confirmed."""

    def build_feed_settings(self, source: Source, stream: Stream) -> FeedSettings:
        """Return the settings with which the values of the source's stream are read."""
        ...

    async def queue_mapping_replay(self, tx: Tx, source: Source, mapping: SourceMapping) -> None:
        """Queue a run that reads a stored file again; do nothing if no file of the mapping's stream is stored.

        The newest file with the mapping's table is read, or else the newest file of the stream. Raises Conflict while a
        run of the stream is open.
        """
        ...


@dataclass(frozen=True, slots=True)
class MappingService:
    """Use cases of the column mappings of a tenant's sources.

    Attributes:
        snapshot_replay: Queues runs over stored files.
    """

    snapshot_replay: SnapshotReplay

    async def list_mappings(self, tx: Tx, source: str, page_request: PageRequest) -> Page[SourceMapping]:
        """Return a page of a source's mappings, newest first. Raises NotFound for an unknown source."""
        if await tx[SourceStore].get(source) is None:
            raise NotFound
        return await tx[MappingStore].page(page_request, MappingFilter(source))

    async def get(self, tx: Tx, id: str, *, lock: bool = False) -> SourceMapping:
        """Return a mapping; lock it until the end of the transaction if `lock` is set. Raises NotFound."""
        mapping = await tx[MappingStore].get(id, lock=lock)
        if mapping is None:
            raise NotFound
        return mapping

    async def confirm_mapping(self, tx: Tx, id: str, confirmation: MappingConfirmation) -> SourceMapping:
        """Confirm a mapping with edits, and queue a run over the source's stored file.

        If the mapping is already confirmed and the edits change nothing, it is returned and no run is queued.

        Raises:
            NotFound: The mapping does not exist.
            InvalidRequest: An edit is invalid (`apply_confirmation`).
            Unprocessable: The mapping cannot be used (`apply_confirmation`).
            Conflict: A run is open, or the source is not active.
        """
        source, before = await self._lock_mapping(tx, id)
        after = apply_confirmation(
            before, confirmation.columns, self.snapshot_replay.build_feed_settings(source, before.stream), tx.now
        )
        if after == before:
            return before
        await self._save_and_replay(tx, source, before, after)
        return after

    async def store_confirmed_mappings(
        self, tx: Tx, source: str, stream: Stream, tables: Sequence[MappedTable]
    ) -> Sequence[SourceMapping]:
        """Store the mappings of tables as confirmed, before the first run of their source, and return them.

        Tables that people cannot map, tables in which no column identifies items, and tables whose headers have a mapping
        already, from an earlier attempt, are omitted.
        """
        proposed = [
            propose_mapping(source, stream, table, tx.now)
            for table in tables
            if table.is_confirmable and not table.mapping.missing
        ]
        digests = sorted({mapping.digest for mapping in proposed})
        known = {mapping.digest for mapping in await tx[MappingStore].lock_by_digest(source, digests)}
        stored: dict[str, SourceMapping] = {}
        for mapping in proposed:
            if mapping.digest not in stored and mapping.digest not in known:
                confirmed = replace(mapping, status=MappingStatus.CONFIRMED, confirmed_at=tx.now)
                stored[mapping.digest] = confirmed
                await tx[MappingStore].add(confirmed)
                await tx[AuditLog].add(build_confirmation_change(mapping, confirmed))
        return tuple(stored.values())

    async def undo_confirmation(self, tx: Tx, act: AuditAct) -> None:
        """Restore mappings to their state before an audit act confirmed them, and queue runs over the stored files.

        Raises NotFound; Conflict while a run is open or if the source is not active.
        """
        for _, change in act.list_changes("mapping"):
            source, before = await self._lock_mapping(tx, change.id)
            after = restore_mapping(before, change.before, tx.now)
            if after.confirmed_at is None and after.status == MappingStatus.CONFIRMED:
                after = replace(after, confirmed_at=tx.now)
            await self._save_and_replay(tx, source, before, after)

    async def _lock_mapping(self, tx: Tx, id: str) -> tuple[Source, SourceMapping]:
        """Lock the source of a mapping, then the mapping, and return both. Raises NotFound."""
        source = await tx[SourceStore].get((await self.get(tx, id)).source, lock=True)
        mapping = await self.get(tx, id, lock=True)
        if source is None:
            raise NotFound
        return source, mapping

    async def _save_and_replay(self, tx: Tx, source: Source, before: SourceMapping, after: SourceMapping) -> None:
        """Store a changed mapping with an audit entry, and queue a run over the stored file."""
        source.refuse_unless_runnable()
        await tx[MappingStore].save(after)
        await tx[AuditLog].add(build_confirmation_change(before, after))
        await mark_stale(tx, after.id, "The column mapping has been changed.")
        await self.snapshot_replay.queue_mapping_replay(tx, source, after)


async def store_proposals(
    tx: Tx, source: str, stream: Stream, tables: Sequence[MappedTable], *, uses_model: bool = False
) -> dict[str, str]:
    """Store or update one mapping for each header set in a feed; return the mapping IDs by digest of the headers.

    Args:
        tx: The transaction.
        source: The ID of the source.
        stream: The stream of the run.
        tables: The tables that the run has read.
        uses_model: Whether to queue requests to a language model about unmapped and doubtful columns.
    """
    tables_by_digest: dict[str, MappedTable] = {}
    for table in tables:
        if table.is_confirmable:
            tables_by_digest.setdefault(compute_header_digest(table.mapping.headers), table)
    if not tables_by_digest:
        return {}
    mappings_by_digest = {
        mapping.digest: mapping for mapping in await tx[MappingStore].lock_by_digest(source, list(tables_by_digest))
    }
    ids = {}
    for digest, table in tables_by_digest.items():
        before = mappings_by_digest.get(digest)
        if before is None:
            mapping = propose_mapping(source, stream, table, tx.now)
            await tx[MappingStore].add(mapping)
        elif (mapping := update_proposal(before, table, stream, tx.now)) != before:
            await tx[MappingStore].save(mapping)
            await mark_stale(tx, mapping.id, "A run has proposed other columns.")
        if uses_model and find_request_positions(mapping):
            await tx[JobStore].add(create_model_request_job(tx.tenant, mapping.id))
        ids[digest] = mapping.id
    if len(mappings_by_digest) < len(tables_by_digest):
        await tx[MappingStore].prune(source, MAX_MAPPINGS)
    return ids


@dataclass(frozen=True, slots=True)
class _ModelRequest:
    """Request to a model about columns of a mapping.

    Attributes:
        mapping: The mapping.
        positions: The positions of the columns.
        settings: The settings with which values are read.
    """

    mapping: SourceMapping
    positions: tuple[int, ...]
    settings: FeedSettings


@dataclass(frozen=True, slots=True)
class MappingRequestJob:
    """Handler of `mappings.ask` jobs, each of which requests a model's guesses for columns of a mapping.

    No database connection is held while waiting for the model.

    The answer of the model is discarded if a user or a run has changed the mapping in the meantime.

    Attributes:
        models: The language models, or None if none is configured.
        build_feed_settings: Returns the settings with which the values of a source's stream are read.
        timeout_seconds: The time limit for the response of the model.
    """

    uow: UnitOfWork
    models: LanguageModels | None
    build_feed_settings: Callable[[Source, Stream], FeedSettings]
    timeout_seconds: float = _MODEL_TIMEOUT_SECONDS

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Request a model's guesses for the columns of the job's mapping, and store them in the mapping."""
        request = await self._load_request(job)
        if request is None or self.models is None:
            async with self.uow.begin(job.tenant, job.create_context()) as tx:
                await tx[JobStore].finish(job)
            return
        mapping, positions = request.mapping, request.positions
        try:
            async with asyncio.timeout(self.timeout_seconds):
                answer = await self.models.generate(
                    ModelPrompt(
                        MODEL_REQUEST_JOB,
                        INSTRUCTIONS,
                        build_request_data(mapping, positions),
                        build_answer_schema(positions),
                    )
                )
            guesses = parse_guesses(answer.value, positions)
        except InvalidModelAnswer as fault:
            _LOG.warning("model answer discarded", extra={"mapping": mapping.id, "reason": str(fault)})
            await self._save_answer(job, request, (), answer.usage)
        except ModelRefused as refusal:
            _LOG.info(
                "model request about a mapping failed, no retry", extra={"mapping": mapping.id, "reason": str(refusal)}
            )
            await self._save_answer(job, request, (), refusal.usage)
        except ModelUnavailable as failure:
            await self._postpone(job, mapping, str(failure), failure.retry_after, failure.usage)
        except TimeoutError:
            await self._postpone(job, mapping, "no response", None, None)
        else:
            await self._save_answer(job, request, guesses, answer.usage)

    async def _load_request(self, job: ClaimedJob) -> _ModelRequest | None:
        """Return the request for the job's mapping; None if there are no columns to send."""
        async with self.uow.begin_reading(job.tenant) as tx:
            mapping = await tx[MappingStore].get(str(job.args["mapping"]))
            source = await tx[SourceStore].get(mapping.source) if mapping else None
        if mapping is None or source is None:
            return None
        positions = find_request_positions(mapping)
        return (
            _ModelRequest(mapping, positions, self.build_feed_settings(source, mapping.stream)) if positions else None
        )

    async def _save_answer(
        self, job: ClaimedJob, request: _ModelRequest, guesses: Sequence[ColumnGuess], usage: ModelUsage | None
    ) -> None:
        """Store the guesses and the usage, and finish the job; repeat the job if the mapping has changed."""
        before = request.mapping
        async with self.uow.begin(job.tenant, job.create_context()) as tx:
            await record_model_use(tx, MODEL_REQUEST_JOB, before.id, usage)
            current = await tx[MappingStore].get(before.id, lock=True)
            if current == before:
                await tx[MappingStore].save(apply_guesses(before, request.positions, guesses, request.settings, tx.now))
            elif current and current.status == MappingStatus.PROPOSED and compute_retry_delay(job.attempt) is not None:
                await tx[JobStore].reschedule(job, tx.now + _RETRY_DELAY)
                return
            await tx[JobStore].add(create_proposing_job(tx.tenant, mapping=before.id))
            await tx[JobStore].finish(job)

    async def _postpone(
        self,
        job: ClaimedJob,
        mapping: SourceMapping,
        reason: str,
        retry_after: timedelta | None,
        usage: ModelUsage | None,
    ) -> None:
        """Postpone the job, or finish it after the last attempt.

        After the job is finished, the next run with the mapping's headers queues another job.

        Args:
            job: The job.
            mapping: The mapping.
            reason: The reason for the log.
            retry_after: The delay that the model's provider requests, or None.
            usage: The usage of the failed request, or None.
        """
        delay = compute_retry_delay(job.attempt)
        _LOG.info("model request about a mapping postponed", extra={"mapping": mapping.id, "reason": reason})
        async with self.uow.begin(job.tenant, job.create_context()) as tx:
            await record_model_use(tx, MODEL_REQUEST_JOB, mapping.id, usage)
            if delay is None:
                await tx[JobStore].add(create_proposing_job(tx.tenant, mapping=mapping.id))
                await tx[JobStore].finish(job)
            else:
                await tx[JobStore].reschedule(job, tx.now + min(_MAX_RETRY_DELAY, max(delay, retry_after or delay)))
