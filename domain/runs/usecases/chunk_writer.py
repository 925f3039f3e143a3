"""Writing of a run's changes, usually one chunk per transaction."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from domain.catalogue.batch import SlotRange
from domain.catalogue.missed_runs import PROBABLY_DISCONTINUED_AFTER, compute_next_status
from domain.catalogue.model import Stream
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.writer import write_reconciled
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.matching.usecases.pair_updates import erase_compared_values
from domain.runs.chunks import CHUNK_ROWS, describe_division, split_keys
from domain.runs.model import Checkpoint, Run, RunStage
from domain.runs.ports import RunStore
from domain.runs.usecases.chunk_changes import (
    ChunkDiff,
    ChunkPortion,
    FeedComparison,
    StatementApplier,
    create_reconciler,
)
from domain.runs.usecases.spool import ProblemLog
from domain.usage.meters import RECORDS
from domain.usage.ports import UsageMeters
from ports.unit_of_work import Tx


class _MergesChanged(Exception):
    """The catalogue's merges have changed since the portion was reconciled."""


@dataclass(slots=True)
class ChunkWriter:
    """Writes the changes of one run, chunk by chunk.

    Each transaction renews the worker's lease of the job, and fails with LeaseLost if another worker has taken over.

    Attributes:
        counts: Counts of the run so far, by name.
        next_update_count: Number of created variants at which the statistics are updated next.
    """

    job: ClaimedJob
    lease: timedelta
    run: Run
    feed: FeedComparison
    update_statistics: Callable[[], Coroutine[Any, Any, None]]
    """Updates the store's statistics; called after 1,000 created variants, then after four times as many each time."""
    counts: Counter[str] = field(default_factory=Counter)
    next_update_count: int = 1_000
    first_chunk: int = 0
    """Index of the first chunk to write; earlier attempts have written the chunks before."""

    def __post_init__(self) -> None:
        """Resume after the chunks that an earlier attempt has written, if its division into chunks is the same."""
        run = self.run
        if run.checkpoint and run.checkpoint.shape == self._describe_division():
            self.first_chunk = run.checkpoint.chunks
            stored = list(run.problems)
            self.feed.problems = ProblemLog(stored, run.stats.get("problems", len(stored)))
            self.counts.update(
                {name: count for name, count in run.stats.items() if name not in ("rows", "bytes", "problems")}
            )

    def _describe_division(self) -> str:
        return describe_division(self.feed.chunks, len(self.feed.spooled.bucket_sizes), self.feed.stream)

    @property
    def _is_catalogue(self) -> bool:
        """True if the run reads the catalogue stream, not the stock stream."""
        return self.run.stream == Stream.CATALOGUE

    async def write_chunks(self) -> None:
        """Write all chunks. While a portion is written, the next portion is compared, normalised and reconciled."""
        updates: list[asyncio.Task[None]] = []
        previous_ids: frozenset[str] = frozenset()
        portions = self._prepare_portions()
        next_portion = asyncio.ensure_future(anext(portions, None))
        try:
            while (portion := await next_portion) is not None:
                next_portion = asyncio.ensure_future(anext(portions, None))
                if portion.reconciler is not None:
                    if not previous_ids.isdisjoint(portion.dependency_keys):  # changed by the previous portion
                        await self._prepare_portion(portion)
                    previous_ids = portion.dependency_keys
                await self._write(portion)
                if self.counts["variants_created"] >= self.next_update_count:
                    self.next_update_count = self.counts["variants_created"] * 4
                    updates.append(asyncio.create_task(self.update_statistics()))
        finally:
            next_portion.cancel()
            await asyncio.wait([next_portion])
            await portions.aclose()
            await asyncio.gather(*updates, return_exceptions=True)

    async def _prepare_portions(self) -> AsyncGenerator[ChunkPortion, None]:
        for number in range(self.first_chunk, len(self.feed.chunks)):
            for portion in self._split_chunk(await self.feed.compare_chunk(number), number):
                await self._prepare_portion(portion)
                yield portion

    def _split_chunk(self, chunk: ChunkDiff, number: int) -> Iterator[ChunkPortion]:
        rows, diff = chunk.row_counts, chunk.diff
        changed = {key: rows[key] for key in rows if key in diff.changed or key in diff.returned}
        absent = dict.fromkeys(sorted(diff.absent) if self.run.is_complete else (), 1)
        portions = split_keys(changed | absent, 2 * CHUNK_ROWS[self.run.stream])
        for portion_number, keys in enumerate(portions, start=1):
            is_last = portion_number == len(portions)
            portion_absent = [key for key in keys if key in absent]
            yield ChunkPortion(
                chunk, frozenset(keys).difference(portion_absent), portion_absent, number + is_last, is_last
            )

    async def _prepare_portion(self, portion: ChunkPortion) -> None:
        """Read the portion's products and problems; for a catalogue, also reconcile them with the stored products."""
        # stock is reconciled in the transaction, because several chunks may contain the same product
        chunk, problem_counts = portion.chunk, portion.chunk.diff.problem_count_by_key if portion.is_last else {}
        read = await self.feed.read_statements(chunk, portion.changed)
        listed_keys = list(problem_counts)[: self.feed.problems.remaining]
        earlier_problems = (await self.feed.read_statements(chunk, listed_keys)).problems if listed_keys else ()
        portion.statements, portion.problems = read.statements, (*read.problems, *earlier_problems)
        portion.unlisted_problem_count = sum(problem_counts.values()) - sum(problem_counts[key] for key in listed_keys)
        if self._is_catalogue and not portion.leaves_catalogue_unchanged:
            await self._reconcile(portion)

    async def _reconcile(self, portion: ChunkPortion) -> None:
        variants = [variant.key for statement in portion.statements for variant in statement.variants]
        async with self.feed.uow.begin_reading(self.job.tenant) as tx:
            portion.merge_revision = await tx[CatalogueStore].get_merge_revision()
            reconciliation = await StatementApplier.load(
                tx, self.feed, self.run, portion, is_complete=self.run.is_complete
            )
            portion.reconciler = reconciler = reconciliation.reconciler
        portion.dependency_keys = frozenset(
            (*(f"p {key}" for key in reconciler.products), *(f"v {key}" for key in variants))
        )
        await asyncio.to_thread(reconciliation.apply)

    async def _write(self, portion: ChunkPortion) -> None:
        """Write a portion in one transaction; first reconcile it again if merges have changed.

        Raises LeaseLost, even instead of another error, if another worker has taken over the job.
        """
        while True:
            try:
                return await self._write_once(portion)
            except _MergesChanged:
                await self._prepare_portion(portion)
            except Exception:
                async with self.feed.uow.begin(self.job.tenant, self.feed.context) as tx:
                    await tx[JobStore].renew_lease(self.job, self.lease)
                raise

    async def _write_once(self, portion: ChunkPortion) -> None:
        async with self.feed.uow.begin(self.job.tenant, self.feed.context) as tx:
            events = await self._write_catalogue(tx, portion)
            checkpoint = Checkpoint(portion.completed_chunks, self._describe_division())
            stats, problems = {**self.run.stats, **self.get_stats()}, tuple(self.feed.problems.stored)
            run = replace(self.run, stats=stats, stage=RunStage.STORE, checkpoint=checkpoint)
            self.run = replace(run, problems=problems, crashes=0)
            await tx[RunStore].save(self.run)
            await tx[EventLog].append(events)  # as late as possible: uncommitted events delay the log's high watermark
            await tx[JobStore].renew_lease(self.job, self.lease)

    async def _write_catalogue(self, tx: Tx, portion: ChunkPortion) -> Sequence[Event]:
        """Write the portion's changes to the catalogue; return the events of the changes."""
        diff, still_absent = portion.chunk.diff, list[str]()
        if portion.is_last and self.run.is_complete and self._is_catalogue:
            still_absent = sorted(diff.still_absent)
        is_unchanged = portion.leaves_catalogue_unchanged and not (
            portion.changed or still_absent or portion.problems or portion.unlisted_problem_count
        )
        reconciler = portion.reconciler
        if (
            not is_unchanged
            and await tx[CatalogueStore].lock_for_writing() != portion.merge_revision
            and reconciler is not None
        ):
            raise _MergesChanged
        if portion.is_last:
            self.counts["unchanged"] += diff.unchanged_count
        if is_unchanged:
            return ()
        if reconciler is None and self._is_catalogue:
            reconciler = create_reconciler(tx, self.feed, self.run, {}, self.run.is_complete)
        elif reconciler is None:
            stock = await StatementApplier.load(tx, self.feed, self.run, portion, is_complete=self.run.is_complete)
            stock.apply()
            reconciler = stock.reconciler
        for problem in (*portion.problems, *reconciler.problems):
            self.feed.problems.add(problem)
        self.feed.problems.total += portion.unlisted_problem_count
        self.counts.update(reconciler.counts)
        absent = [
            key for key in (*portion.absent, *still_absent) if key not in reconciler.products_with_listed_variants
        ]
        events = await write_reconciled(tx, portion.chunk.slot_range, reconciler, absent)
        if reconciler.erased_variants:
            await erase_compared_values(tx, reconciler.erased_variants)
        withdrawn = frozenset(portion.absent)  # items that a feed no longer lists do not count against the quota
        if records := sum(product.key not in withdrawn for product in reconciler.batch.touched.values()):
            await tx[UsageMeters].add_usage(RECORDS, records, self.run.id)
        return events

    async def update_absent_products(self) -> None:
        """Change the status of long-absent products (`compute_next_status`) if the run is a complete catalogue run."""
        if not self.run.is_complete or not self._is_catalogue:
            return
        source = self.run.source
        async with self.feed.uow.begin(self.job.tenant, self.feed.context) as tx:
            absences = await tx[CatalogueStore].find_absent_products(source, tx.now - PROBABLY_DISCONTINUED_AFTER)
            due = {one.key: status for one in absences if (status := compute_next_status(one, tx.now))}
            if not due:
                return
            await tx[CatalogueStore].lock_for_writing()
            products = dict(await tx[CatalogueStore].load_products(source, list(due)))
            reconciler = create_reconciler(tx, self.feed, self.run, products, is_complete=True)
            for key, product in products.items():
                reconciler.change_status(product, due[key])
            await tx[EventLog].append(await write_reconciled(tx, SlotRange(source, self.run.stream, 0, 0), reconciler))
            await tx[JobStore].renew_lease(self.job, self.lease)

    def get_stats(self) -> dict[str, int]:
        """Return the counts of the run so far, as for `Run.stats`."""
        return {"rows": self.feed.spooled.row_count, "problems": self.feed.problems.total, **self.counts}
