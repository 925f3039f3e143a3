"""Use cases of mappings: confirmation by people, proposals by runs and questions to a model."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Protocol

from domain.audit.model import Act
from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.ingestion.mapping.learned import digest_of
from domain.ingestion.model import FeedSettings
from domain.ingestion.reading import ReadTable
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.errors import NotFound
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.mappings.asking import (
    ASK,
    INSTRUCTIONS,
    BadGuess,
    Guess,
    answered,
    askable,
    asking,
    data_of,
    delay,
    guesses_of,
    schema_of,
)
from domain.mappings.confirming import confirm
from domain.mappings.model import (
    KEPT,
    Confirmation,
    MappingFilter,
    MappingStatus,
    SourceMapping,
    confirmed,
    put_back,
)
from domain.mappings.ports import MappingStore
from domain.mappings.proposing import brought_up_to_date, new_mapping
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.usage.meters import AI_TOKENS
from domain.usage.model import ModelUse
from domain.usage.ports import UsageMeters
from ports.models import ModelLater, ModelQuestion, ModelRefused, Models, ModelUsage
from ports.unit_of_work import Tx, UnitOfWork

_LOG = logging.getLogger("joinery.mappings")
_MODEL_TIMEOUT_SECONDS = 120.0
"""Seconds after which a model that has not answered is asked again later."""
_RETRY_AFTER = timedelta(seconds=2)
_LONGEST = timedelta(days=1)


class Replaying(Protocol):
    """Port for replaying a source's stored snapshot after a mapping was confirmed."""

    def settings(self, source: Source, stream: Stream) -> FeedSettings:
        """Return the settings by which the stream's values are read."""
        ...

    async def after_mapping(self, tx: Tx, source: Source, mapping: SourceMapping) -> None:
        """Queue a run over the snapshot that the mapping belongs to; do nothing if no snapshot is stored.

        Raises Conflict while a run is open.
        """
        ...


@dataclass(frozen=True, slots=True)
class MappingService:
    """Use cases for mappings of a tenant's sources."""

    replaying: Replaying

    async def list_mappings(self, tx: Tx, source: str, page_request: PageRequest) -> Page[SourceMapping]:
        """Return a source's mappings, newest first. Raises NotFound for an unknown source."""
        if await tx[SourceStore].get(source) is None:
            raise NotFound
        return await tx[MappingStore].page(page_request, MappingFilter(source))

    async def get(self, tx: Tx, id: str, *, lock: bool = False) -> SourceMapping:
        """Return one mapping. Raises NotFound."""
        mapping = await tx[MappingStore].get(id, lock=lock)
        if mapping is None:
            raise NotFound
        return mapping

    async def confirm(self, tx: Tx, id: str, asked: Confirmation) -> SourceMapping:
        """Confirm the mapping, with edits, and queue a run over the source's stored snapshot.

        Return a mapping that is confirmed already and does not change as it is, without a run.

        Raises:
            NotFound: The mapping does not exist.
            InvalidRequest: An edit is invalid (`confirming.confirm`).
            Unprocessable: The mapping cannot be used (`confirming.confirm`).
            Conflict: A run is open, or the source is not active.

        """
        source, before = await self._locked(tx, id)
        after = confirm(before, asked.columns, self.replaying.settings(source, before.stream), tx.now)
        if after == before:
            return before
        await self._save(tx, source, before, after)
        return after

    async def take_back(self, tx: Tx, act: Act) -> None:
        """Restore the mappings that the act confirmed to their former state, and queue runs over the stored snapshots.

        Raises NotFound; raises Conflict while a run is open or the source is not active.
        """
        for _, change in act.changes("mapping"):
            source, before = await self._locked(tx, change.id)
            after = put_back(before, change.before, tx.now)
            if after.confirmed_at is None and after.status == MappingStatus.CONFIRMED:
                after = replace(after, confirmed_at=tx.now)
            await self._save(tx, source, before, after)

    async def _locked(self, tx: Tx, id: str) -> tuple[Source, SourceMapping]:
        """Return a mapping and its source, the source locked first. Raises NotFound."""
        source = await tx[SourceStore].get((await self.get(tx, id)).source, lock=True)
        mapping = await self.get(tx, id, lock=True)
        if source is None:
            raise NotFound
        return source, mapping

    async def _save(self, tx: Tx, source: Source, before: SourceMapping, after: SourceMapping) -> None:
        source.refuse_unless_runnable()
        await tx[MappingStore].save(after)
        await tx[AuditLog].add(confirmed(before, after))
        await self.replaying.after_mapping(tx, source, after)


async def keep_proposals(
    tx: Tx, source: str, stream: Stream, tables: Sequence[ReadTable], *, ask: bool = False
) -> dict[str, str]:
    """Store or update one mapping for each header set of a feed; return the mapping IDs by digest of the header set.

    With `ask`, add a job for each mapping that has columns to ask a model about.
    """
    tables_by_digest: dict[str, ReadTable] = {}
    for table in tables:
        if table.asked:
            tables_by_digest.setdefault(digest_of(table.mapping.headers), table)
    if not tables_by_digest:
        return {}
    mappings_by_digest = {
        mapping.digest: mapping for mapping in await tx[MappingStore].of_headers(source, list(tables_by_digest))
    }
    ids = {}
    for digest, table in tables_by_digest.items():
        before = mappings_by_digest.get(digest)
        if before is None:
            mapping = new_mapping(source, stream, table, tx.now)
            await tx[MappingStore].add(mapping)
        elif (mapping := brought_up_to_date(before, table, stream, tx.now)) != before:
            await tx[MappingStore].save(mapping)
        if ask and askable(mapping):
            await tx[JobStore].add(asking(tx.tenant, mapping.id))
        ids[digest] = mapping.id
    if len(mappings_by_digest) < len(tables_by_digest):
        await tx[MappingStore].prune(source, KEPT)
    return ids


@dataclass(frozen=True, slots=True)
class _Question:
    mapping: SourceMapping
    places: tuple[int, ...]
    settings: FeedSettings


@dataclass(frozen=True, slots=True)
class MappingAsking:
    """Handler of `mappings.ask` jobs. It holds no database connection while it waits for the model.

    An answer is dropped if a person or a run has changed the mapping in the meantime.
    """

    uow: UnitOfWork
    models: Models | None
    settings: Callable[[Source, Stream], FeedSettings]
    patience: float = _MODEL_TIMEOUT_SECONDS

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Ask the model about one mapping and store the outcome."""
        question = await self._question(job)
        if question is None or self.models is None:
            async with self.uow.begin(job.tenant, job.context()) as tx:
                await tx[JobStore].finish(job)
            return
        mapping, places = question.mapping, question.places
        try:
            async with asyncio.timeout(self.patience):
                answer = await self.models.ask(
                    ModelQuestion(ASK, INSTRUCTIONS, data_of(mapping, places), schema_of(places))
                )
            guesses = guesses_of(answer.value, places)
        except BadGuess as fault:
            _LOG.warning("model answer discarded", extra={"mapping": mapping.id, "reason": str(fault)})
            await self._save_answer(job, question, (), answer.usage)
        except ModelRefused as refusal:
            _LOG.info("model refused the question", extra={"mapping": mapping.id, "reason": str(refusal)})
            await self._save_answer(job, question, (), refusal.usage)
        except ModelLater as failure:
            await self._put_off(job, mapping, str(failure), failure.after, failure.usage)
        except TimeoutError:
            await self._put_off(job, mapping, "no answer in time", None, None)
        else:
            await self._save_answer(job, question, guesses, answer.usage)

    async def _question(self, job: ClaimedJob) -> _Question | None:
        async with self.uow.read(job.tenant) as tx:
            mapping = await tx[MappingStore].get(str(job.args["mapping"]))
            source = await tx[SourceStore].get(mapping.source) if mapping else None
        if mapping is None or source is None:
            return None
        places = askable(mapping)
        return _Question(mapping, places, self.settings(source, mapping.stream)) if places else None

    async def _save_answer(
        self, job: ClaimedJob, question: _Question, guesses: Sequence[Guess], usage: ModelUsage | None
    ) -> None:
        before = question.mapping
        async with self.uow.begin(job.tenant, job.context()) as tx:
            await _count(tx, before, usage)
            current = await tx[MappingStore].get(before.id, lock=True)
            if current == before:
                await tx[MappingStore].save(answered(before, question.places, guesses, question.settings, tx.now))
            elif current and current.status == MappingStatus.PROPOSED and delay(job.attempt) is not None:
                await tx[JobStore].put_off(job, tx.now + _RETRY_AFTER)
                return
            await tx[JobStore].finish(job)

    async def _put_off(
        self, job: ClaimedJob, mapping: SourceMapping, reason: str, after: timedelta | None, usage: ModelUsage | None
    ) -> None:
        """Postpone the job, or finish it after the last attempt; the next run with these headers then queues another."""
        wait = delay(job.attempt)
        _LOG.info("model question postponed", extra={"mapping": mapping.id, "reason": reason})
        async with self.uow.begin(job.tenant, job.context()) as tx:
            await _count(tx, mapping, usage)
            if wait is None:
                await tx[JobStore].finish(job)
            else:
                await tx[JobStore].put_off(job, tx.now + min(_LONGEST, max(wait, after or wait)))


async def _count(tx: Tx, mapping: SourceMapping, usage: ModelUsage | None) -> None:
    if usage is None:
        return
    taken = usage.model, usage.input_tokens, usage.output_tokens, usage.cost_micros
    use = ModelUse(new_id("use"), ASK, mapping.id, *taken, tx.now)
    await tx.store(ModelUse).add(use)
    await tx[UsageMeters].count(AI_TOKENS, usage.input_tokens + usage.output_tokens, use.id)
