"""Storing a run chunk by chunk: what is unchanged costs a look, what changed is written in one transaction a chunk."""

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from domain.catalogue.absence import PROBABLY_DISCONTINUED_AFTER, next_status
from domain.catalogue.batch import FingerprintDiff, KeyRange
from domain.catalogue.model import Product, Stream
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import ProductStatement
from domain.events.model import Event
from domain.jobs.model import ClaimedJob
from domain.kernel.problems import Problem
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs.model import Checkpoint, Run, RunErrorCode, RunStage
from domain.runs.usecases.chunking import Chunk, ChunkBuilder
from domain.runs.usecases.reading import CHUNK_ROWS, Findings, Reading, key_range_of
from domain.sources.model import Source
from ports.spool import Spool
from ports.unit_of_work import Tx, UnitOfWork

SHRINK_SHARE = 0.3
SHRINK_LEAST = 50


Offers = frozenset[tuple[str, str]]
"""Offers as (variant key, location)."""
Left = Callable[[Chunk, Collection[str], Offers], Offers]


class ShrinkRefused(Exception):
    """A complete run would withdraw too much; `stated` and `lost` count offers."""

    def __init__(self, stated: int, lost: int) -> None:
        self.stated, self.lost = stated, lost
        super().__init__(
            f"The run would withdraw {lost} of {stated} offers. If the feed is right, run it again "
            'or start the run with {"accept_shrink": true}.'
        )


@dataclass(frozen=True, slots=True)
class Prepared:
    """A chunk ready to be written: how it compares, and what the feed states under the keys that changed."""

    key_range: KeyRange
    chunk: Chunk
    diff: FingerprintDiff
    statements: list[ProductStatement]
    problems: list[Problem]


@dataclass(slots=True)
class Storer:
    """Stores what one run read. Each chunk is fenced by the job's attempt and renews its lease."""

    uow: UnitOfWork
    tenant: Tenant
    context: AuditContext
    job: ClaimedJob
    lease: timedelta
    source: Source
    run: Run
    reading: Reading
    chunk_builder: ChunkBuilder
    spool: Spool
    complete: bool
    statistics: Callable[[], Coroutine[Any, Any, None]]
    """Has the store look at how much there is: after a thousand new items, four thousand, sixteen thousand and so on."""
    counts: dict[str, int] = field(default_factory=dict)
    chunks: list[range] = field(default_factory=list)
    grown: int = 1_000
    first: int = 0
    """The first chunk that no earlier attempt has stored."""

    def __post_init__(self) -> None:
        """Go on where an attempt that died has stopped, when the chunks are the same; what it counted counts."""
        self.chunks = self.reading.chunks()
        checkpoint = self.run.checkpoint
        if checkpoint and checkpoint.shape == self._shape():
            self.first = checkpoint.chunks
            kept = list(self.run.problems)
            self.reading.findings = Findings(kept, self.run.stats.get("problems", len(kept)))
            self.counts = {name: n for name, n in self.run.stats.items() if name not in ("rows", "bytes", "problems")}

    def _shape(self) -> str:
        """How the snapshot falls into chunks; another release may divide it otherwise, and then starts over."""
        return f"{len(self.chunks)} of {self.reading.buckets} by {CHUNK_ROWS[self.reading.stream]}"

    async def guard(self) -> None:
        """The shrink guard (decisions.md §3). Raises ShrinkRefused; writes nothing."""
        if not self.complete or self.run.accept_shrink or self.first:
            return
        async with self.uow.read(self.tenant) as tx:
            stated = await tx.catalogue.stated_offers(self.source.id, self.run.stream)
            before = await tx.runs.last_ended(self.source.id, self.run.stream)
        if stated <= SHRINK_LEAST:
            return
        allowed = max(SHRINK_LEAST, int(stated * SHRINK_SHARE))
        lost = await self._lost(allowed, self._stock_left if self.run.stream == Stream.STOCK else None)
        if lost > allowed and self.run.stream == Stream.CATALOGUE:
            lost = await self._lost(stated, self._offered)
        if lost > allowed and not agrees(before, lost):
            raise ShrinkRefused(stated, lost)

    async def _lost(self, enough: int, left: "Left | None") -> int:
        """How many offers the run would withdraw; counting stops past `enough`.

        `left` tells which of the offers held under changed keys stay; without it all count, an upper bound that reads no
        changed row.
        """
        lost = 0
        for buckets in self.chunks:
            chunk = await self._chunk(buckets)
            async with self.uow.scratch(self.tenant, self.context) as tx:
                diff = await tx.catalogue.compare(self._key_range(buckets), list(chunk.fingerprints.values()))
                keys = diff.changed | diff.absent
                held = await tx.catalogue.stated_of(self.source.id, self.run.stream, sorted(keys))
            if held and left is not None:
                held -= await asyncio.to_thread(left, chunk, diff.changed, held)
            lost += len(held)
            if lost > enough:
                break
        return lost

    def _stock_left(self, chunk: Chunk, keys: Collection[str], held: Offers) -> Offers:
        """A stock sheet keeps the offers of the items it names, at the locations it has columns for."""
        places = self.reading.places()
        return frozenset(offer for offer in held if offer[0] in keys and (places is None or offer[1] in places))

    def _offered(self, chunk: Chunk, keys: Collection[str], held: Offers) -> Offers:
        """What the feed states anew under the keys that changed."""
        statements, _ = self.chunk_builder.statements(chunk, keys)
        return frozenset(
            (variant.key, offer.location)
            for statement in statements
            for variant in statement.variants
            for offer in variant.offers
        )

    async def store(self) -> None:
        """Every chunk, one transaction each; while one is written the next is compared and normalised."""
        if self.first == len(self.chunks):
            return
        beside: list[asyncio.Task[None]] = []
        ahead = asyncio.create_task(self._prepare(self.first))
        try:
            for index in range(self.first, len(self.chunks)):
                prepared = await ahead
                if index + 1 < len(self.chunks):
                    ahead = asyncio.create_task(self._prepare(index + 1))
                await self._write(prepared, index + 1)
                if self.counts.get("variants_created", 0) >= self.grown:
                    self.grown = self.counts["variants_created"] * 4
                    beside.append(asyncio.create_task(self.statistics()))
        finally:
            ahead.cancel()
            await asyncio.wait([ahead])
            await asyncio.gather(*beside, return_exceptions=True)

    async def _prepare(self, index: int) -> "Prepared":
        """Compare and normalise a chunk. Only this run changes its marks, so the comparison stands until it is written."""
        buckets = self.chunks[index]
        chunk, key_range = await self._chunk(buckets), self._key_range(buckets)
        async with self.uow.scratch(self.tenant, self.context) as tx:
            diff = await tx.catalogue.compare(key_range, list(chunk.fingerprints.values()))
        changed = diff.changed | diff.returned
        statements, problems = await asyncio.to_thread(self.chunk_builder.statements, chunk, changed)
        for key in [key for key in chunk.lines if key not in changed]:
            del chunk.lines[key]
        return Prepared(key_range, chunk, diff, statements, problems)

    async def _write(self, prepared: "Prepared", stored: int) -> None:
        async with self.uow.begin(self.tenant, self.context) as tx:
            events = await self._store(tx, prepared)
            stats = {**self.run.stats, **self.stats()}
            checkpoint, problems = Checkpoint(stored, self._shape()), tuple(self.reading.findings.kept)
            self.run = replace(self.run, stats=stats, stage=RunStage.STORE, checkpoint=checkpoint, problems=problems)
            await tx.runs.save(self.run)
            await tx.events.append(events)  # last before the fence: events hold the log's high watermark back
            await tx.jobs.hold(self.job, self.lease)

    async def _chunk(self, buckets: range) -> Chunk:
        return await asyncio.to_thread(self._gather, buckets)

    def _gather(self, buckets: range) -> Chunk:
        return self.chunk_builder.chunk([line for bucket in buckets for line in self.spool.lines(bucket)])

    def _key_range(self, buckets: range) -> KeyRange:
        return KeyRange(self.source.id, self.run.stream, *key_range_of(buckets, self.reading.buckets))

    async def _store(self, tx: Tx, prepared: "Prepared") -> Sequence[Event]:
        diff, chunk, statements = prepared.diff, prepared.chunk, prepared.statements
        self._count("unchanged", diff.unchanged)
        lingering = sorted(diff.lingering) if self.complete and self.run.stream == Stream.CATALOGUE else []
        absent = sorted(diff.absent) if self.complete else []
        if not diff.changed and not diff.returned and not absent and not lingering:
            return ()
        apply = self._catalogue if self.run.stream == Stream.CATALOGUE else self._stock
        reconciler = await apply(tx, chunk, statements, absent)
        for problem in (*prepared.problems, *reconciler.problems):
            self.reading.findings.add(problem)
        for name, number in reconciler.counts.items():
            self._count(name, number)
        await tx.catalogue.save(prepared.key_range, reconciler.finished(absent + lingering), tx.now)
        return reconciler.events

    async def _catalogue(
        self, tx: Tx, chunk: Chunk, statements: Sequence[ProductStatement], absent: Sequence[str]
    ) -> CatalogueReconciler:
        keys = [statement.key for statement in statements] + list(absent)
        variants = [variant.key for statement in statements for variant in statement.variants]
        reconciler = self._reconciler(tx, dict(await tx.catalogue.load(self.source.id, keys, variants)))

        def apply() -> None:
            for statement in statements:
                reconciler.line = chunk.lines[statement.key][0][1]
                product = reconciler.product(statement)
                reconciler.batch.fingerprints.append(replace(chunk.fingerprints[statement.key], product=product.id))
            for key in absent:
                if key in reconciler.products:
                    reconciler.absent(reconciler.products[key])

        await asyncio.to_thread(apply)
        return reconciler

    async def _stock(
        self, tx: Tx, chunk: Chunk, statements: Sequence[ProductStatement], absent: Sequence[str]
    ) -> CatalogueReconciler:
        keys = [statement.key for statement in statements] + list(absent)
        found = await tx.catalogue.load_by_variant(self.source.id, keys)
        reconciler = self._reconciler(tx, {product.key: product for product, _ in found.values()})
        for statement in statements:
            if statement.key not in found:
                detail = f"The catalogue has no item {statement.key}, or more than one; its stock was left out."
                line = chunk.lines[statement.key][0][1]
                reconciler.problems.append(Problem("sku", "missing", detail, line=line))
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
        places = self.reading.places() if self.run.stream == Stream.STOCK else None
        return CatalogueReconciler(
            self.source, self.run.id, self.run.stream, tx.now, self.complete, products, self.reading.has, places
        )

    async def age(self) -> None:
        """After a complete catalogue run: move long absent products down the ladder (decisions.md §3)."""
        if not self.complete or self.run.stream != Stream.CATALOGUE:
            return
        async with self.uow.begin(self.tenant, self.context) as tx:
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
        return {"rows": self.reading.rows, "problems": self.reading.findings.total, **self.counts}

    def _count(self, name: str, number: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + number


def agrees(before: Run | None, lost: int) -> bool:
    """Second sight: the run before was refused for losing about as many."""
    if before is None or before.error is None or before.error.code != RunErrorCode.SHRINK_REFUSED:
        return False
    return lost <= before.stats.get("would_withdraw", 0) * 1.1
