"""Writing a run chunk by chunk: what is unchanged costs a look, what changed is written, mostly a chunk a transaction."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from domain.catalogue.absence import PROBABLY_DISCONTINUED_AFTER, next_status
from domain.catalogue.batch import KeyRange
from domain.catalogue.model import Product, Stream
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import ProductStatement
from domain.catalogue.usecases.writing import write
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.problems import Problem
from domain.kernel.tenancy import AuditContext
from domain.runs.chunks import CHUNK_ROWS, portions_of, shape_of
from domain.runs.model import Checkpoint, Run, RunStage
from domain.runs.ports import RunStore
from domain.runs.usecases.category_rules import filing_of
from domain.runs.usecases.chunking import ComparedChunk, Feed, FeedChunks
from domain.runs.usecases.spooling import ProblemLog
from domain.runs.usecases.stating import Stating
from domain.sources.model import Source
from domain.usage.meters import RECORDS
from domain.usage.ports import UsageMeters
from ports.unit_of_work import Tx, UnitOfWork


@dataclass(frozen=True, slots=True)
class Portion:
    """What of a compared chunk is written in one transaction: keys that changed, and keys that are absent.

    `chunks` are written with it; the last portion of a chunk counts what did not change, and what is absent still.
    """

    compared: ComparedChunk
    changed: frozenset[str]
    absent: Sequence[str]
    chunks: int
    last: bool


@dataclass(frozen=True, slots=True)
class NormalisedPortion:
    """A portion of a chunk, and what the feed states under the keys that changed.

    `problems` are also those of rows that did not change; of more of these than are kept word by word, `untold` counts the
    others.
    """

    portion: Portion
    statements: Sequence[ProductStatement]
    problems: Sequence[Problem]
    untold: int = 0

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to bring the catalogue to."""
        return not self.statements and not self.portion.absent


@dataclass(frozen=True, slots=True)
class ReconciledPortion:
    """A normalised chunk, reconciled with the catalogue as it was before the chunk in front of it was written.

    `touches`: the products that this rested on, and the variants that it states. `merges`: how far merges had come.
    """

    normalised: NormalisedPortion
    reconciler: CatalogueReconciler
    touches: frozenset[str]
    merges: int


class _Merged(Exception):
    """Something was merged or unmerged since the portion was reconciled."""

    def __init__(self, portion: Portion) -> None:
        self.portion = portion


@dataclass(slots=True)
class ChunkWriter:
    """Writes what one run read. Each chunk is fenced by the job's attempt and renews its lease."""

    uow: UnitOfWork
    job: ClaimedJob
    context: AuditContext
    lease: timedelta
    source: Source
    run: Run
    chunks: FeedChunks
    statistics: Callable[[], Coroutine[Any, Any, None]]
    """Has the store look at how much there is: after a thousand new items, four thousand, sixteen thousand and so on."""
    counts: dict[str, int] = field(default_factory=dict)
    grown: int = 1_000
    first: int = 0
    """The first chunk that no earlier attempt has written."""

    def __post_init__(self) -> None:
        """Go on where an attempt that died has stopped, when the chunks are the same; what it counted counts."""
        checkpoint = self.run.checkpoint
        if checkpoint and checkpoint.shape == self._shape():
            self.first = checkpoint.chunks
            kept = list(self.run.problems)
            self._feed.problems = ProblemLog(kept, self.run.stats.get("problems", len(kept)))
            self.counts = {name: n for name, n in self.run.stats.items() if name not in ("rows", "bytes", "problems")}

    @property
    def _feed(self) -> Feed:
        return self.chunks.feed

    def _shape(self) -> str:
        return shape_of(self.chunks.buckets, self._feed.buckets, self._feed.stream)

    async def write_chunks(self) -> None:
        """Every chunk, mostly in one transaction; while one is written the next is compared, normalised and reconciled."""
        beside: list[asyncio.Task[None]] = []
        before: frozenset[str] = frozenset()
        portions = self._prepared_portions()
        ahead = asyncio.ensure_future(anext(portions, None))
        try:
            while (prepared := await ahead) is not None:
                ahead = asyncio.ensure_future(anext(portions, None))
                if isinstance(prepared, ReconciledPortion):
                    if not before.isdisjoint(prepared.touches):  # what it rests on has been written since
                        prepared = await self._reconciled(await self._normalise(prepared.normalised.portion))
                    before = prepared.touches
                await self._write_latest(prepared)
                if self.counts.get("variants_created", 0) >= self.grown:
                    self.grown = self.counts["variants_created"] * 4
                    beside.append(asyncio.create_task(self.statistics()))
        finally:
            ahead.cancel()
            await asyncio.wait([ahead])
            await portions.aclose()
            await asyncio.gather(*beside, return_exceptions=True)

    async def _prepared_portions(self) -> AsyncGenerator[ReconciledPortion | NormalisedPortion, None]:
        """Everything that is done before a portion's transaction; of stock, whose chunks share products, only a part."""
        for number in range(self.first, len(self.chunks.buckets)):
            compared = await self.chunks.compare(number)
            for portion in self._portions(compared, number):
                normalised = await self._normalise(portion)
                stock = self.run.stream != Stream.CATALOGUE
                yield normalised if normalised.is_idle or stock else await self._reconciled(normalised)

    def _portions(self, compared: ComparedChunk, number: int) -> Iterator[Portion]:
        rows, diff = compared.chunk.rows, compared.diff
        changed = {key: rows[key] for key in rows if key in diff.changed or key in diff.returned}
        absent = dict.fromkeys(sorted(diff.absent) if self.run.complete else (), 1)
        portions = portions_of(changed | absent, 2 * CHUNK_ROWS[self.run.stream])
        for place, keys in enumerate(portions, start=1):
            last = place == len(portions)
            gone = [key for key in keys if key in absent]
            yield Portion(compared, frozenset(keys).difference(gone), gone, number + last, last)

    async def _normalise(self, portion: Portion) -> NormalisedPortion:
        chunk, troubled = portion.compared.chunk, portion.compared.diff.troubled if portion.last else {}
        stated = await self.chunks.states(chunk, portion.changed)
        again = list(troubled)[: self._feed.problems.room]
        known = (await self.chunks.states(chunk, again)).problems if again else ()
        untold = sum(troubled.values()) - sum(troubled[key] for key in again)
        return NormalisedPortion(portion, stated.statements, (*stated.problems, *known), untold)

    async def _reconciled(self, normalised: NormalisedPortion) -> ReconciledPortion:
        """The chunk's statements are used up by it."""
        portion, statements = normalised.portion, normalised.statements
        absent = portion.absent
        keys = list(dict.fromkeys(statement.key for statement in statements)) + list(absent)
        variants = [variant.key for statement in statements for variant in statement.variants]
        async with self.uow.read(self.job.tenant) as tx:
            merges = await tx[CatalogueStore].merge_count()
            reconciler = self._reconciler(tx, dict(await tx[CatalogueStore].load(self.source.id, keys, variants)))
            reconciler.filing = await filing_of(tx, self.source.id)
        touches = {f"p {key}" for key in reconciler.products} | {f"v {key}" for key in variants}
        stating = Stating(reconciler, portion.compared, self.run, self._feed.problems.room)

        def apply() -> None:
            stating.apply(statements, normalised.problems)
            for key in absent:
                if key in reconciler.products:
                    reconciler.absent(reconciler.products[key])

        await asyncio.to_thread(apply)
        return ReconciledPortion(normalised, reconciler, frozenset(touches), merges)

    async def _write_latest(self, prepared: ReconciledPortion | NormalisedPortion) -> None:
        """Write a portion; one that rests on what was merged or unmerged since is reconciled anew before."""
        while True:
            try:
                return await self._write_portion(prepared)
            except _Merged as outdated:
                prepared = await self._reconciled(await self._normalise(outdated.portion))

    async def _write_portion(self, prepared: ReconciledPortion | NormalisedPortion) -> None:
        """One transaction. Raises LeaseLost, whatever it stumbles over, when another worker has the job by now."""
        try:
            await self._written(prepared)
        except _Merged:
            raise
        except Exception:
            async with self.uow.begin(self.job.tenant, self.context) as tx:
                await tx[JobStore].hold(self.job, self.lease)
            raise

    async def _written(self, prepared: ReconciledPortion | NormalisedPortion) -> None:
        normalised = prepared.normalised if isinstance(prepared, ReconciledPortion) else prepared
        async with self.uow.begin(self.job.tenant, self.context) as tx:
            events = await self._bring_catalogue(tx, prepared, normalised)
            stats, problems = {**self.run.stats, **self.stats()}, tuple(self._feed.problems.kept)
            checkpoint = Checkpoint(normalised.portion.chunks, self._shape())
            run = replace(self.run, stats=stats, stage=RunStage.STORE, checkpoint=checkpoint)
            self.run = replace(run, problems=problems, deaths=0)
            await tx[RunStore].save(self.run)
            await tx[EventLog].append(events)  # last before the fence: events hold the log's high watermark back
            await tx[JobStore].hold(self.job, self.lease)

    async def _bring_catalogue(
        self, tx: Tx, prepared: ReconciledPortion | NormalisedPortion, normalised: NormalisedPortion
    ) -> Sequence[Event]:
        """Bring the catalogue to what the portion states; answers the events of that."""
        portion = normalised.portion
        diff, lingering = portion.compared.diff, list[str]()
        if portion.last:
            self._count("unchanged", diff.unchanged)
            if self.run.complete and self.run.stream == Stream.CATALOGUE:
                lingering = sorted(diff.lingering)
        if normalised.is_idle and not (portion.changed or lingering or normalised.problems or normalised.untold):
            return ()
        merges = await tx[CatalogueStore].take_turn()
        if isinstance(prepared, ReconciledPortion):
            if prepared.merges != merges:
                raise _Merged(portion)
            reconciler = prepared.reconciler
        elif self.run.stream == Stream.CATALOGUE:
            reconciler = self._reconciler(tx, {})
        else:
            reconciler = await self._reconcile_stock(tx, normalised)
        for problem in (*normalised.problems, *reconciler.problems):
            self._feed.problems.add(problem)
        self._feed.problems.total += normalised.untold
        for name, number in reconciler.counts.items():
            self._count(name, number)
        absent = [key for key in (*portion.absent, *lingering) if key not in reconciler.listed]
        events = await write(tx, portion.compared.key_range, reconciler, absent)
        if records := _made_or_changed(reconciler, portion.absent):
            await tx[UsageMeters].count(RECORDS, records, self.run.id)
        return events

    async def _reconcile_stock(self, tx: Tx, normalised: NormalisedPortion) -> CatalogueReconciler:
        portion, statements = normalised.portion, normalised.statements
        keys = [statement.key for statement in statements] + list(portion.absent)
        found = await tx[CatalogueStore].load_by_variant(self.source.id, keys)
        reconciler = self._reconciler(tx, {product.key: product for product, _ in found.values()})
        stating = Stating(reconciler, portion.compared, self.run, self._feed.problems.room)
        stating.apply_stock(found, statements, normalised.problems)
        for key in portion.absent:
            if key in found:
                product, variant = found[key]
                reconciler.withdraw(product, variant.offers)
        return reconciler

    def _reconciler(self, tx: Tx, products: dict[str, Product]) -> CatalogueReconciler:
        run, feed = self.run, self._feed
        places = feed.places if run.stream == Stream.STOCK else None
        names = feed.names_products
        return CatalogueReconciler(
            self.source, run.id, run.stream, tx.now, run.complete, products, feed.has, places, names_products=names
        )

    async def age_absent_products(self) -> None:
        """After a complete catalogue run: move long absent products down the absence ladder."""
        if not self.run.complete or self.run.stream != Stream.CATALOGUE:
            return
        async with self.uow.begin(self.job.tenant, self.context) as tx:
            absences = await tx[CatalogueStore].absences(self.source.id, tx.now - PROBABLY_DISCONTINUED_AFTER)
            due = {one.key: status for one in absences if (status := next_status(one, tx.now))}
            if not due:
                return
            await tx[CatalogueStore].take_turn()
            reconciler = self._reconciler(tx, dict(await tx[CatalogueStore].load(self.source.id, list(due))))
            for key, product in reconciler.products.items():
                reconciler.status(product, due[key])
            await tx[EventLog].append(await write(tx, KeyRange(self.source.id, self.run.stream, 0, 0), reconciler))
            await tx[JobStore].hold(self.job, self.lease)

    def stats(self) -> dict[str, int]:
        """The run's counts so far."""
        return {"rows": self._feed.rows, "problems": self._feed.problems.total, **self.counts}

    def _count(self, name: str, number: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + number


def _made_or_changed(reconciler: CatalogueReconciler, absent: Collection[str]) -> int:
    """The items that count against the plan: what a feed only stops listing is free."""
    gone = frozenset(absent)
    return sum(product.key not in gone for product in reconciler.batch.touched.values())
