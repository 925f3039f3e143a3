"""Writing a run chunk by chunk: what is unchanged costs a look, what changed is written in one transaction a chunk."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from domain.catalogue.absence import PROBABLY_DISCONTINUED_AFTER, next_status
from domain.catalogue.batch import KeyRange
from domain.catalogue.model import Product, Stream
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import ProductStatement
from domain.events.model import Event
from domain.jobs.model import ClaimedJob
from domain.kernel.problems import Problem, ProblemKind
from domain.kernel.tenancy import AuditContext
from domain.runs.chunks import shape_of
from domain.runs.model import Checkpoint, Run, RunStage
from domain.runs.usecases.chunking import ComparedChunk, Feed, FeedChunks
from domain.runs.usecases.spooling import ProblemLog
from domain.sources.model import Source
from ports.unit_of_work import Tx, UnitOfWork


@dataclass(frozen=True, slots=True)
class NormalisedChunk:
    """A compared chunk and what the feed states under the keys that changed."""

    compared: ComparedChunk
    statements: Sequence[ProductStatement]
    problems: Sequence[Problem]
    absent: Sequence[str]

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to bring the catalogue to."""
        return not self.statements and not self.absent


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A normalised chunk, reconciled with the catalogue as it was before the chunk in front of it was written.

    `touches`: the products that this rested on, and the variants that it states.
    """

    normalised: NormalisedChunk
    reconciler: CatalogueReconciler
    touches: frozenset[str]


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
        """Every chunk, one transaction each; while one is written the next is compared, normalised and reconciled."""
        last = len(self.chunks.buckets)
        if self.first == last:
            return
        beside: list[asyncio.Task[None]] = []
        before: frozenset[str] = frozenset()
        ahead = asyncio.create_task(self._prepare_chunk(self.first))
        try:
            for number in range(self.first, last):
                prepared = await ahead
                if number + 1 < last:
                    ahead = asyncio.create_task(self._prepare_chunk(number + 1))
                if isinstance(prepared, PreparedChunk):
                    if not before.isdisjoint(prepared.touches):  # what it rests on has been written since
                        prepared = await self._reconciled(await self._normalise(prepared.normalised.compared))
                    before = prepared.touches
                await self._write_chunk(prepared, number + 1)
                if self.counts.get("variants_created", 0) >= self.grown:
                    self.grown = self.counts["variants_created"] * 4
                    beside.append(asyncio.create_task(self.statistics()))
        finally:
            ahead.cancel()
            await asyncio.wait([ahead])
            await asyncio.gather(*beside, return_exceptions=True)

    async def _prepare_chunk(self, number: int) -> PreparedChunk | NormalisedChunk:
        """Everything that is done before the chunk's transaction; of stock, whose chunks share products, only a part."""
        normalised = await self._normalise(await self.chunks.compare(number))
        if normalised.is_idle or self.run.stream != Stream.CATALOGUE:
            return normalised
        return await self._reconciled(normalised)

    async def _normalise(self, compared: ComparedChunk) -> NormalisedChunk:
        stated = await self.chunks.states(compared.chunk, compared.diff.changed | compared.diff.returned)
        absent = sorted(compared.diff.absent) if self.run.complete else []
        return NormalisedChunk(compared, stated.statements, stated.problems, absent)

    async def _reconciled(self, normalised: NormalisedChunk) -> PreparedChunk:
        """The chunk's statements are used up by it."""
        chunk, statements, absent = normalised.compared.chunk, normalised.statements, normalised.absent
        keys = [statement.key for statement in statements] + list(absent)
        variants = [variant.key for statement in statements for variant in statement.variants]
        async with self.uow.read(self.job.tenant) as tx:
            reconciler = self._reconciler(tx, dict(await tx.catalogue.load(self.source.id, keys, variants)))
        touches = {f"p {key}" for key in reconciler.products} | {f"v {key}" for key in variants}

        def apply() -> None:
            for statement in statements:
                reconciler.line = chunk.lines[statement.key]
                product = reconciler.product(statement)
                reconciler.batch.fingerprints.append(replace(chunk.fingerprints[statement.key], product=product.id))
            for key in absent:
                if key in reconciler.products:
                    reconciler.absent(reconciler.products[key])

        await asyncio.to_thread(apply)
        return PreparedChunk(normalised, reconciler, frozenset(touches))

    async def _write_chunk(self, prepared: PreparedChunk | NormalisedChunk, written: int) -> None:
        async with self.uow.begin(self.job.tenant, self.context) as tx:
            events = await self._bring_catalogue(tx, prepared)
            stats, problems = {**self.run.stats, **self.stats()}, tuple(self._feed.problems.kept)
            checkpoint = Checkpoint(written, self._shape())
            run = replace(self.run, stats=stats, stage=RunStage.STORE, checkpoint=checkpoint)
            self.run = replace(run, problems=problems, deaths=0)
            await tx.runs.save(self.run)
            await tx.events.append(events)  # last before the fence: events hold the log's high watermark back
            await tx.jobs.hold(self.job, self.lease)

    async def _bring_catalogue(self, tx: Tx, prepared: PreparedChunk | NormalisedChunk) -> Sequence[Event]:
        """Bring the catalogue to what the chunk states; answers the events of that."""
        normalised = prepared.normalised if isinstance(prepared, PreparedChunk) else prepared
        diff = normalised.compared.diff
        self._count("unchanged", diff.unchanged)
        lingering = sorted(diff.lingering) if self.run.complete and self.run.stream == Stream.CATALOGUE else []
        if normalised.is_idle and not diff.changed and not diff.returned and not lingering:
            return ()
        if isinstance(prepared, PreparedChunk):
            reconciler = prepared.reconciler
        elif self.run.stream == Stream.CATALOGUE:
            reconciler = self._reconciler(tx, {})
        else:
            reconciler = await self._reconcile_stock(tx, normalised)
        for problem in (*normalised.problems, *reconciler.problems):
            self._feed.problems.add(problem)
        for name, number in reconciler.counts.items():
            self._count(name, number)
        batch = reconciler.finished([*normalised.absent, *lingering])
        await tx.catalogue.save(normalised.compared.key_range, batch, tx.now)
        return reconciler.events

    async def _reconcile_stock(self, tx: Tx, normalised: NormalisedChunk) -> CatalogueReconciler:
        chunk, statements, absent = normalised.compared.chunk, normalised.statements, normalised.absent
        keys = [statement.key for statement in statements] + list(absent)
        found = await tx.catalogue.load_by_variant(self.source.id, keys)
        reconciler = self._reconciler(tx, {product.key: product for product, _ in found.values()})
        for statement in statements:
            if statement.key not in found:
                detail = f"The catalogue has no item {statement.key}, or more than one; its stock was left out."
                line = chunk.lines[statement.key]
                reconciler.problems.append(Problem("sku", ProblemKind.MISSING, detail, line=line))
                continue
            product, variant = found[statement.key]
            for stated in statement.variants:
                stated.key = variant.key
                reconciler.stock(product, stated)
            reconciler.batch.fingerprints.append(replace(chunk.fingerprints[statement.key], product=product.id))
        for key in absent:
            if key in found:
                product, variant = found[key]
                reconciler.withdraw(product, variant.offers)
        return reconciler

    def _reconciler(self, tx: Tx, products: dict[str, Product]) -> CatalogueReconciler:
        run, feed = self.run, self._feed
        places = feed.places if run.stream == Stream.STOCK else None
        return CatalogueReconciler(self.source, run.id, run.stream, tx.now, run.complete, products, feed.has, places)

    async def age_absent_products(self) -> None:
        """After a complete catalogue run: move long absent products down the absence ladder."""
        if not self.run.complete or self.run.stream != Stream.CATALOGUE:
            return
        async with self.uow.begin(self.job.tenant, self.context) as tx:
            absences = await tx.catalogue.absences(self.source.id, tx.now - PROBABLY_DISCONTINUED_AFTER)
            due = {one.key: status for one in absences if (status := next_status(one, tx.now))}
            if not due:
                return
            reconciler = self._reconciler(tx, dict(await tx.catalogue.load(self.source.id, list(due))))
            for key, product in reconciler.products.items():
                reconciler.status(product, due[key])
            await tx.catalogue.save(KeyRange(self.source.id, self.run.stream, 0, 0), reconciler.finished([]), tx.now)
            await tx.events.append(reconciler.events)
            await tx.jobs.hold(self.job, self.lease)

    def stats(self) -> dict[str, int]:
        """The run's counts so far."""
        return {"rows": self._feed.rows, "problems": self._feed.problems.total, **self.counts}

    def _count(self, name: str, number: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + number
