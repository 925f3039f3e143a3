"""After a run: a model is asked what the columns mean that nothing else understood; people confirm what it says, or do not."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from domain.catalogue.model import Stream
from domain.ingestion.model import FeedSettings
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.ids import new_id
from domain.mappings.asking import (
    ASK,
    INSTRUCTIONS,
    BadGuess,
    Guess,
    answered,
    askable,
    data_of,
    delay,
    guesses_of,
    schema_of,
)
from domain.mappings.model import MappingStatus, SourceMapping
from domain.mappings.ports import MappingStore
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.usage.meters import AI_TOKENS
from domain.usage.model import ModelUse
from domain.usage.ports import UsageMeters
from ports.models import ModelAnswer, ModelLater, ModelQuestion, ModelRefused, Models, ModelUsage
from ports.unit_of_work import Tx, UnitOfWork

_LOG: Final = logging.getLogger("joinery.mappings")
_PATIENCE: Final = 120.0
"""Seconds until a model that says nothing counts as one to ask later."""
_AGAIN: Final = timedelta(seconds=2)
_LONGEST: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class _Question:
    mapping: SourceMapping
    places: tuple[int, ...]
    settings: FeedSettings

    def put(self) -> ModelQuestion:
        return ModelQuestion(ASK, INSTRUCTIONS, data_of(self.mapping, self.places), schema_of(self.places))


@dataclass(frozen=True, slots=True)
class MappingAsking:
    """The handler of `mappings.ask` jobs. No connection is held while the model thinks.

    What it says counts only for the very mapping that it was asked about: where a person or a run was quicker it is dropped.
    """

    uow: UnitOfWork
    models: Models | None
    settings: Callable[[Source, Stream], FeedSettings]
    patience: float = _PATIENCE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Carry out one job."""
        question = await self._question(job)
        if question is None or self.models is None:
            async with self.uow.begin(job.tenant, job.context()) as tx:
                await tx[JobStore].finish(job)
            return
        try:
            async with asyncio.timeout(self.patience):
                answer = await self.models.ask(question.put())
        except ModelRefused as refusal:
            _LOG.info("a model refused", extra={"mapping": question.mapping.id, "reason": str(refusal)})
            await self._put_down(job, question, (), refusal.usage)
        except ModelLater as failure:
            await self._later(job, question, str(failure), failure.after, failure.usage)
        except TimeoutError:
            await self._later(job, question, "it said nothing", None, None)
        else:
            await self._put_down(job, question, _guesses(question, answer), answer.usage)

    async def _question(self, job: ClaimedJob) -> _Question | None:
        async with self.uow.read(job.tenant) as tx:
            mapping = await tx[MappingStore].get(str(job.args["mapping"]))
            source = await tx[SourceStore].get(mapping.source) if mapping else None
        if mapping is None or source is None:
            return None
        places = askable(mapping)
        return _Question(mapping, places, self.settings(source, mapping.stream)) if places else None

    async def _put_down(
        self, job: ClaimedJob, question: _Question, guesses: Sequence[Guess], usage: ModelUsage | None
    ) -> None:
        before = question.mapping
        async with self.uow.begin(job.tenant, job.context()) as tx:
            await _use(tx, before, usage)
            now = await tx[MappingStore].get(before.id, lock=True)
            if now == before:
                await tx[MappingStore].save(answered(before, question.places, guesses, question.settings, tx.now))
            elif now and now.status == MappingStatus.PROPOSED and delay(job.attempt) is not None:
                await tx[JobStore].put_off(job, tx.now + _AGAIN)
                return
            await tx[JobStore].finish(job)

    async def _later(
        self, job: ClaimedJob, question: _Question, reason: str, after: timedelta | None, usage: ModelUsage | None
    ) -> None:
        """Asked again, but not without end: then the next run that reads these headers has it asked anew."""
        wait = delay(job.attempt)
        _LOG.info("a model is asked later", extra={"mapping": question.mapping.id, "reason": reason})
        async with self.uow.begin(job.tenant, job.context()) as tx:
            await _use(tx, question.mapping, usage)
            if wait is None:
                await tx[JobStore].finish(job)
            else:
                await tx[JobStore].put_off(job, tx.now + min(_LONGEST, max(wait, after or wait)))


def _guesses(question: _Question, answer: ModelAnswer) -> Sequence[Guess]:
    try:
        return guesses_of(answer.value, question.places)
    except BadGuess as fault:
        _LOG.warning("a model's answer is void", extra={"mapping": question.mapping.id, "reason": str(fault)})
        return ()


async def _use(tx: Tx, mapping: SourceMapping, usage: ModelUsage | None) -> None:
    if usage is None:
        return
    taken = usage.model, usage.input_tokens, usage.output_tokens, usage.cost_micros
    use = ModelUse(new_id("use"), ASK, mapping.id, *taken, tx.now)
    await tx.store(ModelUse).add(use)
    await tx[UsageMeters].count(AI_TOKENS, usage.input_tokens + usage.output_tokens, use.id)
