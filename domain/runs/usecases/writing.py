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
from domain.runs.usecases.chunking import Chunk, ComparedChunk, Feed, FeedChunks
from domain.runs.usecases.spooling import ProblemLog
from domain.sources.model import Source
from ports.unit_of_work import Tx, UnitOfWork


@dataclass(frozen=True, slots=True)
class NormalisedChunk:
    """A compared chunk and what the feed states under the keys that changed."""

    compared: ComparedChunk
    statements: Sequence[ProductStatement]
    problems: Sequence[Problem]


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
        """Every chunk, one transaction each; while one is written the next is compared and normalised."""
        last = len(self.chunks.buckets)
        if self.first == last:
            return
        beside: list[asyncio.Task[None]] = []
        ahead = asyncio.create_task(self._normalise_chunk(self.first))
        try:
            for number in range(self.first, last):
                normalised = await ahead
                if number + 1 < last:
                    ahead = asyncio.create_task(self._normalise_chunk(number + 1))
                await self._write_chunk(normalised, number + 1)
                if self.counts.get("variants_created", 0) >= self.grown:
                    self.grown = self.counts["variants_created"] * 4
                    beside.append(asyncio.create_task(self.statistics()))
        finally:
            ahead.cancel()
            await asyncio.wait([ahead])
            await asyncio.gather(*beside, return_exceptions=True)

    async def _normalise_chunk(self, number: int) -> NormalisedChunk:
        """Compare the chunk and normalise what changed."""
        compared = await self.chunks.compare(number)
        stated = await self.chunks.states(compared.chunk, compared.diff.changed | compared.diff.returned)
        return NormalisedChunk(compared, stated.statements, stated.problems)

    async def _write_chunk(self, normalised: NormalisedChunk, written: int) -> None:
        async with self.uow.begin(self.job.tenant, self.context) as tx:
            events = await self._reconcile_chunk(tx, normalised)
            stats, problems = {**self.run.stats, **self.stats()}, tuple(self._feed.problems.kept)
            checkpoint = Checkpoint(written, self._shape())
            run = replace(self.run, stats=stats, stage=RunStage.STORE, checkpoint=checkpoint)
            self.run = replace(run, problems=problems, deaths=0)
            await tx.runs.save(self.run)
            await tx.events.append(events)  # last before the fence: events hold the log's high watermark back
            await tx.jobs.hold(self.job, self.lease)

    async def _reconcile_chunk(self, tx: Tx, normalised: NormalisedChunk) -> Sequence[Event]:
        """Bring the catalogue to what the chunk states; answers the events of that."""
        compared, statements = normalised.compared, normalised.statements
        diff, catalogue = compared.diff, self.run.stream == Stream.CATALOGUE
        self._count("unchanged", diff.unchanged)
        lingering = sorted(diff.lingering) if self.run.complete and catalogue else []
        absent = sorted(diff.absent) if self.run.complete else []
        if not diff.changed and not diff.returned and not absent and not lingering:
            return ()
        reconcile = self._reconcile_products if catalogue else self._reconcile_stock
        reconciler = await reconcile(tx, compared.chunk, statements, absent)
        for problem in (*normalised.problems, *reconciler.problems):
            self._feed.problems.add(problem)
        for name, number in reconciler.counts.items():
            self._count(name, number)
        await tx.catalogue.save(compared.key_range, reconciler.finished(absent + lingering), tx.now)
        return reconciler.events

    async def _reconcile_products(
        self, tx: Tx, chunk: Chunk, statements: Sequence[ProductStatement], absent: Sequence[str]
    ) -> CatalogueReconciler:
        keys = [statement.key for statement in statements] + list(absent)
        variants = [variant.key for statement in statements for variant in statement.variants]
        reconciler = self._reconciler(tx, dict(await tx.catalogue.load(self.source.id, keys, variants)))

        def apply() -> None:
            for statement in statements:
                reconciler.line = chunk.lines[statement.key]
                product = reconciler.product(statement)
                reconciler.batch.fingerprints.append(replace(chunk.fingerprints[statement.key], product=product.id))
            for key in absent:
                if key in reconciler.products:
                    reconciler.absent(reconciler.products[key])

        await asyncio.to_thread(apply)
        return reconciler

    async def _reconcile_stock(
        self, tx: Tx, chunk: Chunk, statements: Sequence[ProductStatement], absent: Sequence[str]
    ) -> CatalogueReconciler:
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
