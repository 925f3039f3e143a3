"""After each run: what is new or has changed is read into the index, then matched with what all other sources have."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

from domain.jobs.model import ClaimedJob
from domain.jobs.usecases.draining import LEASE
from domain.kernel.tenancy import Actor, AuditContext
from domain.matching.indexed import Item, MatchModel, Queued, StoredVariant, changes
from domain.matching.linking import SAMPLE, Linking, Steps, Wanted
from domain.matching.model import ScoredPair
from domain.matching.sight import Sight
from domain.matching.stored import facts_of
from domain.matching.weights import SHIPPED, Weights
from ports.unit_of_work import Tx, UnitOfWork

R = TypeVar("R")
READ: int = 1_000
"""Variants that are read into the index in one transaction."""
MATCHED: int = 500
"""Variants that are matched in one transaction."""
_GROWN: int = 2
"""Weights are learnt anew once there are so many times as many items."""


class Offers(Protocol):
    """What becomes of scored pairs."""

    async def offer(self, tx: Tx, matched: Sequence[str], scored: Sequence[ScoredPair]) -> None:
        """Keep what the matcher says of these variants: `scored` are all their pairs of OFFERED_AT and more."""
        ...


class _More(Exception):
    """Something was queued before the job could end."""


class Numbers:
    """A set of items' numbers, a byte each."""

    def __init__(self) -> None:
        self._held = bytearray()

    def add(self, number: int) -> None:
        """Put a number in."""
        if number >= len(self._held):
            self._held.extend(bytes(number + 1 - len(self._held)))
        self._held[number] = 1

    def __contains__(self, number: object) -> bool:
        """Whether the number was put in."""
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


class _Work:
    """One attempt. Reckoning runs in threads, which leave the loop its turn."""

    def __init__(self, stage: MatchingStage, job: ClaimedJob) -> None:
        self._stage, self._job = stage, job
        self._context = AuditContext(Actor("service", "worker"), job.kind)
        self._fresh = Numbers()

    async def read_all(self) -> None:
        """Bring the index to what the queue names."""
        after: str | None = ""
        while after is not None:
            after = await self._read(after)

    async def _read(self, after: str) -> str | None:
        async with self._stage.uow.read(self._job.tenant) as tx:
            batch = await tx.match_index.stale(after, self._stage.read)
            if not batch:
                return None
            ids = [one.variant for one in batch]
            stored = await tx.match_index.stored(ids)
            before = await tx.match_index.of_variants(ids)
            new = await tx.match_index.numbers(len(ids))
        known = {item.variant: item.number for item in before}
        numbers = known | dict(zip((one for one in ids if one not in known), new, strict=False))
        stamps = {one.variant: one.stamp for one in batch}
        items = await asyncio.to_thread(_items, stored, stamps, numbers)
        changed = await asyncio.to_thread(changes, before, items)
        gone = stamps.keys() - {item.variant for item in items}
        async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
            await tx.match_index.index(items, changed)
            await tx.match_index.matched([one for one in batch if one.variant in gone])
            await tx.jobs.hold(self._job, self._stage.lease)
        for item in items:
            self._fresh.add(item.number)
        return ids[-1]

    async def match_all(self) -> None:
        """Match all that waits and is in the index as it is now."""
        weights: Weights | None = None
        sight, after = Sight(), ""
        while True:
            async with self._stage.uow.read(self._job.tenant) as tx:
                batch = await tx.match_index.waiting(after, self._stage.matched)
                items = await tx.match_index.of_variants([one.variant for one in batch])
            if not batch:
                return
            weights = weights or await self._weights(sight)
            await self._match(batch, items, Linking(sight, weights, self._fresh), sight)
            sight.forget()
            after = batch[-1].variant

    async def _match(self, batch: Sequence[Queued], items: Sequence[Item], linking: Linking, sight: Sight) -> None:
        moved = {one.variant for one in batch if not one.again}
        linked = await self._carried(linking.linked(items, moved), sight)
        async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
            await self._stage.offers.offer(tx, [one.variant for one in batch], linked.pairs)
            if linked.disturbed:
                await tx.match_index.requeue(linked.disturbed)
            await tx.match_index.matched(batch)
            await tx.jobs.hold(self._job, self._stage.lease)

    async def _weights(self, sight: Sight) -> Weights:
        """The tenant's own, learnt anew when it has grown; those that are shipped as long as there is too little."""
        async with self._stage.uow.read(self._job.tenant) as tx:
            model = await tx.match_index.model()
            whole = (await tx.match_index.numbers(0)).start - 1
            if model is not None and whole < _GROWN * model.items:
                return model.weights
            sample = await tx.match_index.numbered(range(1, whole + 1, max(1, whole // SAMPLE)))
        before = model.weights if model else SHIPPED
        chosen = sorted(sample, key=lambda item: item.number)
        learnt = await self._carried(Linking(sight, SHIPPED).learnt(chosen, SHIPPED), sight)
        if learnt is None:
            return before
        async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
            await tx.match_index.keep_model(MatchModel(whole, learnt, tx.now))
            await tx.jobs.hold(self._job, self._stage.lease)
        return learnt

    async def _carried(self, steps: Steps[R], sight: Sight) -> R:
        """What a linking comes to, given what it wants of the index."""
        while True:
            wanted, result = await asyncio.to_thread(_step, steps)
            if wanted is None:
                return result[0]
            async with self._stage.uow.read(self._job.tenant) as tx:
                listed = await tx.match_index.listed(list(wanted.keys)) if wanted.keys else {}
                items = await tx.match_index.numbered(list(wanted.numbers)) if wanted.numbers else ()
            sight.see(wanted.keys, listed, items)

    async def finished(self) -> bool:
        """End the job unless something was queued meanwhile: whoever queues from here on finds no open job, and adds one."""
        try:
            async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
                await tx.jobs.finish(self._job)
                if not await tx.match_index.idle():
                    raise _More
        except _More:
            return False
        return True


def _items(stored: Sequence[StoredVariant], stamps: dict[str, int], numbers: dict[str, int]) -> list[Item]:
    return [
        Item(one.variant, one.product, one.source, stamps[one.variant], facts_of(one), numbers[one.variant])
        for one in stored
    ]


def _step(steps: Steps[R]) -> tuple[Wanted | None, list[R]]:
    """The next question, or the end with its answer; StopIteration itself cannot leave a thread."""
    try:
        return next(steps), []
    except StopIteration as end:
        return None, [end.value]
