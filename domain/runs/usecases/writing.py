"""Writing of a run in chunks: unchanged rows cost a comparison, changes are written, mostly one chunk per transaction."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from domain.catalogue.absence import PROBABLY_DISCONTINUED_AFTER, next_status
from domain.catalogue.batch import KeyRange
from domain.catalogue.model import Stream
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.writing import write
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.runs.chunks import CHUNK_ROWS, portions_of, shape_of
from domain.runs.model import Checkpoint, Run, RunStage
from domain.runs.ports import RunStore
from domain.runs.usecases.chunking import ChunkDiff, Feed, Portion, Reconciliation, reconciler_of
from domain.runs.usecases.spooling import ProblemLog
from domain.usage.meters import RECORDS
from domain.usage.ports import UsageMeters
from ports.unit_of_work import Tx


class _Merged(Exception):
    """The catalogue's merges changed since the portion was reconciled."""


@dataclass(slots=True)
class ChunkWriter:
    """Writer of one run's chunks, each fenced by the job's attempt and renewing its lease."""

    job: ClaimedJob
    lease: timedelta
    run: Run
    feed: Feed
    statistics: Callable[[], Coroutine[Any, Any, None]]
    """Has the store look at how much there is: after a thousand new items, four thousand, sixteen thousand and so on."""
    counts: Counter[str] = field(default_factory=Counter)
    grown: int = 1_000
    first: int = 0
    """The first chunk that no earlier attempt has written."""

    def __post_init__(self) -> None:
        """Continue after an earlier attempt if the chunks are the same, including its counts."""
        run = self.run
        if run.checkpoint and run.checkpoint.shape == self._shape():
            self.first = run.checkpoint.chunks
            kept = list(run.problems)
            self.feed.problems = ProblemLog(kept, run.stats.get("problems", len(kept)))
            self.counts.update({name: n for name, n in run.stats.items() if name not in ("rows", "bytes", "problems")})

    def _shape(self) -> str:
        return shape_of(self.feed.chunks, len(self.feed.spooled.held), self.feed.stream)

    @property
    def _of_catalogue(self) -> bool:
        return self.run.stream == Stream.CATALOGUE

    async def write_chunks(self) -> None:
        """Write every chunk; the next one is compared, normalised and reconciled meanwhile."""
        beside: list[asyncio.Task[None]] = []
        before: frozenset[str] = frozenset()
        portions = self._prepared_portions()
        ahead = asyncio.ensure_future(anext(portions, None))
        try:
            while (portion := await ahead) is not None:
                ahead = asyncio.ensure_future(anext(portions, None))
                if portion.reconciler is not None:
                    if not before.isdisjoint(portion.touches):  # its dependencies have been written since
                        await self._prepare_portion(portion)
                    before = portion.touches
                await self._write(portion)
                if self.counts["variants_created"] >= self.grown:
                    self.grown = self.counts["variants_created"] * 4
                    beside.append(asyncio.create_task(self.statistics()))
        finally:
            ahead.cancel()
            await asyncio.wait([ahead])
            await portions.aclose()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _prepared_portions(self) -> AsyncGenerator[Portion, None]:
        for number in range(self.first, len(self.feed.chunks)):
            for portion in self._portions(await self.feed.compare(number), number):
                await self._prepare_portion(portion)
                yield portion

    def _portions(self, chunk: ChunkDiff, number: int) -> Iterator[Portion]:
        rows, diff = chunk.rows, chunk.diff
        changed = {key: rows[key] for key in rows if key in diff.changed or key in diff.returned}
        absent = dict.fromkeys(sorted(diff.absent) if self.run.complete else (), 1)
        portions = portions_of(changed | absent, 2 * CHUNK_ROWS[self.run.stream])
        for place, keys in enumerate(portions, start=1):
            last = place == len(portions)
            gone = [key for key in keys if key in absent]
            yield Portion(chunk, frozenset(keys).difference(gone), gone, number + last, last)

    async def _prepare_portion(self, portion: Portion) -> None:
        """Prepare the portion before its transaction; stock is reconciled in the transaction, because its chunks share products."""
        chunk, troubled = portion.chunk, portion.chunk.diff.troubled if portion.last else {}
        stated = await self.feed.states(chunk, portion.changed)
        again = list(troubled)[: self.feed.problems.room]
        known = (await self.feed.states(chunk, again)).problems if again else ()
        portion.statements, portion.problems = stated.statements, (*stated.problems, *known)
        portion.untold = sum(troubled.values()) - sum(troubled[key] for key in again)
        if self._of_catalogue and not portion.is_idle:
            await self._reconcile(portion)

    async def _reconcile(self, portion: Portion) -> None:
        variants = [variant.key for statement in portion.statements for variant in statement.variants]
        async with self.feed.uow.read(self.job.tenant) as tx:
            portion.merges = await tx[CatalogueStore].merge_count()
            reconciliation = await Reconciliation.begin(tx, self.feed, self.run, portion, complete=self.run.complete)
            portion.reconciler = reconciler = reconciliation.reconciler
        portion.touches = frozenset((*(f"p {key}" for key in reconciler.products), *(f"v {key}" for key in variants)))
        await asyncio.to_thread(reconciliation.apply)

    async def _write(self, portion: Portion) -> None:
        """Write a portion in one transaction, after reconciling it again if merges changed.

        Raises LeaseLost instead of any other error if another worker has taken over the job.
        """
        while True:
            try:
                return await self._written(portion)
            except _Merged:
                await self._prepare_portion(portion)
            except Exception:
                async with self.feed.uow.begin(self.job.tenant, self.feed.context) as tx:
                    await tx[JobStore].hold(self.job, self.lease)
                raise

    async def _written(self, portion: Portion) -> None:
        async with self.feed.uow.begin(self.job.tenant, self.feed.context) as tx:
            events = await self._write_catalogue(tx, portion)
            checkpoint = Checkpoint(portion.chunks, self._shape())
            stats, problems = {**self.run.stats, **self.stats()}, tuple(self.feed.problems.kept)
            run = replace(self.run, stats=stats, stage=RunStage.STORE, checkpoint=checkpoint)
            self.run = replace(run, problems=problems, deaths=0)
            await tx[RunStore].save(self.run)
            await tx[EventLog].append(events)  # last before the fence: events hold the log's high watermark back
            await tx[JobStore].hold(self.job, self.lease)

    async def _write_catalogue(self, tx: Tx, portion: Portion) -> Sequence[Event]:
        """Write the portion's changes to the catalogue and return their events."""
        diff, lingering = portion.chunk.diff, list[str]()
        if portion.last and self.run.complete and self._of_catalogue:
            lingering = sorted(diff.lingering)
        idle = portion.is_idle and not (portion.changed or lingering or portion.problems or portion.untold)
        reconciler = portion.reconciler
        if not idle and await tx[CatalogueStore].take_turn() != portion.merges and reconciler is not None:
            raise _Merged
        if portion.last:
            self.counts["unchanged"] += diff.unchanged
        if idle:
            return ()
        if reconciler is None and self._of_catalogue:
            reconciler = reconciler_of(tx, self.feed, self.run, {}, self.run.complete)
        elif reconciler is None:
            stock = await Reconciliation.begin(tx, self.feed, self.run, portion, complete=self.run.complete)
            stock.apply()
            reconciler = stock.reconciler
        for problem in (*portion.problems, *reconciler.problems):
            self.feed.problems.add(problem)
        self.feed.problems.total += portion.untold
        self.counts.update(reconciler.counts)
        absent = [key for key in (*portion.absent, *lingering) if key not in reconciler.listed]
        events = await write(tx, portion.chunk.key_range, reconciler, absent)
        gone = frozenset(portion.absent)  # items that a feed merely drops do not count against the quota
        if records := sum(product.key not in gone for product in reconciler.batch.touched.values()):
            await tx[UsageMeters].count(RECORDS, records, self.run.id)
        return events

    async def age_absent_products(self) -> None:
        """Update the status of long absent products after a complete catalogue run."""
        if not self.run.complete or not self._of_catalogue:
            return
        source = self.run.source
        async with self.feed.uow.begin(self.job.tenant, self.feed.context) as tx:
            absences = await tx[CatalogueStore].absences(source, tx.now - PROBABLY_DISCONTINUED_AFTER)
            due = {one.key: status for one in absences if (status := next_status(one, tx.now))}
            if not due:
                return
            await tx[CatalogueStore].take_turn()
            products = dict(await tx[CatalogueStore].load(source, list(due)))
            reconciler = reconciler_of(tx, self.feed, self.run, products, complete=True)
            for key, product in products.items():
                reconciler.status(product, due[key])
            await tx[EventLog].append(await write(tx, KeyRange(source, self.run.stream, 0, 0), reconciler))
            await tx[JobStore].hold(self.job, self.lease)

    def stats(self) -> dict[str, int]:
        """Return the run's counts so far."""
        return {"rows": self.feed.spooled.rows, "problems": self.feed.problems.total, **self.counts}
