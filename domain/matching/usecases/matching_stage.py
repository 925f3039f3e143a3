"""Matching after each run: index changed variants, then match them with the items of all other sources."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.draining import LEASE
from domain.matching.candidates import BatchMatcher, BatchResult, CandidateCache, Steps, Wanted
from domain.matching.features import MatchFeatures, StoredVariant, features_of, read_features
from domain.matching.index import ALL, Item, KeyChange, MatchModel, Queued, changes, lookup_keys
from domain.matching.model import ScoredPair
from domain.matching.ports import MatchIndexStore
from domain.matching.scoring import SAMPLE, SHIPPED, Weights
from ports.unit_of_work import Tx, UnitOfWork

R = TypeVar("R")
_LOG = logging.getLogger("joinery.matching")
READ = 1_000
"""Number of variants indexed in one transaction."""
MATCHED = 500
"""Number of variants matched in one transaction."""
_AHEAD = 2
"""Number of batches in progress at a time."""
_TWO = 2
"""Minimum number of sources for matching."""
_GROWN = 2
"""Growth of the number of items after which weights are learned again."""


class Offers(Protocol):
    """Consumer of scored pairs."""

    async def offer(self, tx: Tx, matched: Sequence[str], scored: Sequence[ScoredPair]) -> None:
        """Store the scores of these variants: `scored` has all their pairs of at least OFFERED_AT."""
        ...


class _More(Exception):
    """Variants were queued before the job could end."""


class Numbers:
    """A set of items' numbers, a byte each."""

    def __init__(self) -> None:
        self._held = bytearray()

    def add(self, number: int) -> None:
        """Add a number."""
        if number >= len(self._held):
            self._held.extend(bytes(number + 1 - len(self._held)))
        self._held[number] = 1

    def __contains__(self, number: object) -> bool:
        """Return whether the number was put in."""
        return isinstance(number, int) and number < len(self._held) and self._held[number] == 1


@dataclass(frozen=True, slots=True)
class MatchingStage:
    """The handler of `matching.match` jobs. Every batch is a transaction, fenced by the job's attempt; done twice it does no harm.

    Everything queued is read before anything is matched, so that what came together is weighed together.
    """

    uow: UnitOfWork
    offers: Offers
    lease: timedelta = LEASE
    read: int = READ
    matched: int = MATCHED

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Carry out one job: until the queue is empty."""
        work = _Work(self, job)
        while True:
            await work.read_all()
            await work.match_all()
            if await work.finished():
                return


@dataclass(frozen=True, slots=True)
class _Read:
    """Variants of the queue as items, what they change of the keys, and those that are there no more."""

    items: Sequence[Item]
    changes: Mapping[tuple[str, str], KeyChange]
    gone: Sequence[Queued]
    last: str


@dataclass(frozen=True, slots=True)
class _Matched:
    """A batch and what came of it; its cache may be looked through again."""

    batch: Sequence[Queued]
    linked: BatchResult
    cache: CandidateCache


class _Work:
    """One attempt. Computations run in threads to keep the event loop free."""

    def __init__(self, stage: MatchingStage, job: ClaimedJob) -> None:
        self._stage, self._job = stage, job
        self._context = job.context()
        self._fresh = Numbers()
        self._next = 1
        self._alone: bool | None = None

    async def read_all(self) -> None:
        """Index all queued variants; the next batch is read while one is written."""
        async with self._stage.uow.read(self._job.tenant) as tx:
            self._next = (await tx[MatchIndexStore].numbers(0)).start
        ahead = asyncio.ensure_future(self._read(""))
        try:
            while (batch := await ahead) is not None:
                ahead = asyncio.ensure_future(self._read(batch.last))
                await self._index(batch)
        finally:
            await _ended([ahead])

    async def _read(self, after: str) -> "_Read | None":
        async with self._stage.uow.read(self._job.tenant) as tx:
            queued = await tx[MatchIndexStore].stale(after, self._stage.read)
            if not queued:
                return None
            ids = [one.variant for one in queued]
            stored = await tx[MatchIndexStore].stored(ids)
            before = await tx[MatchIndexStore].of_variants(ids)
        stamps, numbers = {one.variant: one.stamp for one in queued}, {item.variant: item.number for item in before}
        for one in stored:
            if one.variant not in numbers:
                numbers[one.variant], self._next = self._next, self._next + 1
        items = await asyncio.to_thread(_items, stored, stamps, numbers)
        changed = await asyncio.to_thread(changes, before, items)
        return _Read(items, changed, [one for one in queued if one.variant not in numbers], ids[-1])

    async def _index(self, batch: "_Read") -> None:
        async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
            await tx[MatchIndexStore].index(batch.items, batch.changes)
            await tx[MatchIndexStore].matched(batch.gone)
            await tx[JobStore].hold(self._job, self._stage.lease)
        for item in batch.items:
            self._fresh.add(item.number)

    async def match_all(self) -> None:
        """Match all queued, indexed variants; batches are computed while others are read or written."""
        weights: Weights | None = None
        after: str | None = ""
        self._alone = None
        free, ahead = [CandidateCache() for _ in range(_AHEAD)], deque[asyncio.Task[_Matched]]()
        try:
            while True:
                while free and after is not None:
                    batch, items = await self._waiting(after)
                    after = batch[-1].variant if batch else None
                    if batch:
                        weights = weights or (SHIPPED if self._alone else await self._weights(free[0]))
                        ahead.append(asyncio.create_task(self._match(batch, items, weights, free.pop())))
                if not ahead:
                    return
                matched = await ahead.popleft()
                free.append(matched.cache)
                await self._keep(matched)
        finally:
            await _ended(ahead)

    async def _waiting(self, after: str) -> tuple[Sequence[Queued], Sequence[Item]]:
        """Return the next batch; its items too, unless there is no other source to match with."""
        async with self._stage.uow.read(self._job.tenant) as tx:
            if self._alone is None:
                self._alone = len((await tx[MatchIndexStore].listed([ALL])).get(ALL, ())) < _TWO
            batch = await tx[MatchIndexStore].waiting(after, self._stage.read if self._alone else self._stage.matched)
            return batch, () if self._alone else await tx[MatchIndexStore].of_variants([one.variant for one in batch])

    async def _match(
        self, batch: Sequence[Queued], items: Sequence[Item], weights: Weights, cache: CandidateCache
    ) -> "_Matched":
        moved = {one.variant for one in batch if not one.again}
        linked = await self._carried(BatchMatcher(cache, weights, self._fresh).linked(items, moved), cache)
        cache.evict()
        return _Matched(batch, linked, cache)

    async def _keep(self, matched: "_Matched") -> None:
        async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
            await self._stage.offers.offer(tx, [one.variant for one in matched.batch], matched.linked.pairs)
            if matched.linked.disturbed:
                await tx[MatchIndexStore].requeue(matched.linked.disturbed)
            await tx[MatchIndexStore].matched(matched.batch)
            await tx[JobStore].hold(self._job, self._stage.lease)

    async def _weights(self, cache: CandidateCache) -> Weights:
        """Return the tenant's own, learnt anew when it has grown; those that are shipped as long as there is too little."""
        async with self._stage.uow.read(self._job.tenant) as tx:
            model = await tx[MatchIndexStore].model()
            whole = (await tx[MatchIndexStore].numbers(0)).start - 1
            if model is not None and whole < _GROWN * model.items:
                return model.weights
            sample = await tx[MatchIndexStore].numbered(range(1, whole + 1, max(1, whole // SAMPLE)))
        before = model.weights if model else SHIPPED
        chosen = sorted(sample, key=lambda item: item.number)
        learnt = await self._carried(BatchMatcher(cache, SHIPPED).learnt(chosen, SHIPPED), cache)
        if learnt is None:
            return before
        async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
            await tx[MatchIndexStore].keep_model(MatchModel(whole, learnt, tx.now))
            await tx[JobStore].hold(self._job, self._stage.lease)
        return learnt

    async def _carried(self, steps: Steps[R], cache: CandidateCache) -> R:
        """Return what a linking comes to, given what it wants of the index."""
        while True:
            wanted, result = await asyncio.to_thread(_step, steps)
            if wanted is None:
                return result[0]
            async with self._stage.uow.read(self._job.tenant) as tx:
                listed = await tx[MatchIndexStore].listed(list(wanted.keys)) if wanted.keys else {}
                items = await tx[MatchIndexStore].numbered(list(wanted.numbers)) if wanted.numbers else ()
            cache.add(wanted.keys, listed, items)

    async def finished(self) -> bool:
        """End the job unless something was queued meanwhile: whoever queues from here on finds no open job, and adds one."""
        try:
            async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
                await tx[JobStore].finish(self._job)
                _refuse(more=not await tx[MatchIndexStore].idle())
        except _More:
            return False
        return True


async def _ended(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel the tasks and wait for them."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _refuse(*, more: bool) -> None:
    if more:
        raise _More


def _items(stored: Sequence[StoredVariant], stamps: dict[str, int], numbers: dict[str, int]) -> list[Item]:
    return [
        Item(one.variant, one.product, one.source, stamps[one.variant], _facts(one), numbers[one.variant])
        for one in stored
    ]


def _facts(stored: StoredVariant) -> MatchFeatures:
    """Return the facts of a variant; none at all where they cannot be made, for one variant must not hold up the others."""
    try:
        made = features_of(stored)
        lookup_keys(made)
    except Exception as error:
        _LOG.warning(
            "a variant cannot be read for matching",
            extra={"variant": stored.variant, "error": type(error).__name__},
        )
        return read_features(stored.variant, {})
    return made


def _step(steps: Steps[R]) -> tuple[Wanted | None, list[R]]:
    """Return the next question, or the end with its answer; StopIteration itself cannot leave a thread."""
    try:
        return next(steps), []
    except StopIteration as end:
        return None, [end.value]
