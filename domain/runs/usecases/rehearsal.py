"""What a run would come to, worked out in the transaction of a dry run, which is rolled back (docs/push.md)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from domain.audit.model import Change
from domain.catalogue.model import Product, Stream, Variant
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.events.model import Event
from domain.ingestion.ports import FeedReader, FeedReaders, ParseFailed, ReaderDied
from domain.ingestion.reading import NeedsMapping, StockSheet
from domain.kernel.plain import plain
from domain.kernel.problems import Problem
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs.model import PushInput, Run
from domain.runs.shrink import ShrinkRefused
from domain.runs.usecases.chunking import ComparedChunk, FeedChunks, feed_of
from domain.runs.usecases.execution import known_to, order_of
from domain.runs.usecases.guarding import refuse_shrink
from domain.runs.usecases.spooling import ProblemLog
from domain.runs.usecases.stating import Stating
from domain.sources.model import Source
from ports.unit_of_work import Tx
from ports.workspaces import Workspaces

ROWS: Final = 1_000
"""So many rows of a file are read."""
RECORDS: Final = 5_000
"""So many records of a batch are read, its earlier parts among them."""
BYTES: Final = 64 << 20
"""Bytes of a file that is read at all: what it holds comes from the object store first."""
SECONDS: Final = 20.0
TOLD: Final = 100
"""So many changes, events and problems are told one by one; all are counted."""


class _Released(Exception):
    """Lets go of the locks on what was loaded, so that nobody who writes waits for a dry run."""


@dataclass(frozen=True, slots=True)
class _Within:
    """A UnitOfWork that stays in the open transaction."""

    tx: Tx

    def begin(self, _tenant: Tenant, _context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        return nullcontext(self.tx)

    scratch = begin

    def read(self, _tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        return nullcontext(self.tx)

    snapshot = read


@dataclass(slots=True)
class _Outcome:
    """What came of it so far."""

    events: list[Event] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    log: ProblemLog = field(default_factory=ProblemLog)
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """Reads what was handed in as a run would, and holds it against the catalogue; nothing of it is stored."""

    readers: FeedReaders
    workspaces: Workspaces

    async def push(self, tx: Tx, source: Source, run: Run, parts: AsyncIterator[bytes], left_out: int) -> Run:
        """The run as these parts of it would end it; `left_out` counts records that came before them."""
        outcome = _Outcome()
        if isinstance(run.input, PushInput) and run.input.open:
            outcome.warnings.append("The batch stays open; this is what would come of it if it ended here.")
        if left_out:
            outcome.warnings.append(
                f"{left_out:,} records of the batch that came before are not read in a dry run, so what the batch would "
                "withdraw is not told."
            )
        return await self._rehearsed(tx, source, run, parts, outcome, whole=not left_out)

    async def file(self, tx: Tx, source: Source, run: Run, chunks: AsyncIterator[bytes], size: int) -> Run:
        """The run as a file of that size would end it."""
        outcome = _Outcome()
        if size > BYTES:
            outcome.warnings.append(f"A file of more than {BYTES >> 20} MiB is not read in a dry run.")
            return _told(tx, run, outcome)
        return await self._rehearsed(tx, source, run, chunks, outcome, limit=ROWS)

    async def _rehearsed(
        self,
        tx: Tx,
        source: Source,
        run: Run,
        content: AsyncIterator[bytes],
        outcome: _Outcome,
        *,
        whole: bool = True,
        limit: int | None = None,
    ) -> Run:
        with self.workspaces.folder() as folder:
            path = folder / "snapshot"
            with path.open("wb") as file:
                async for chunk in content:
                    file.write(chunk)
            try:
                async with asyncio.timeout(SECONDS):
                    await self._as_what_it_is(_Try(tx, source, run, outcome, whole, limit), path)
            except (ParseFailed, ReaderDied) as failure:
                outcome.warnings.append(f"The run would fail with parse_failed: {failure}")
            except NeedsMapping as failure:
                outcome.warnings.append(f"The run would stop with mapping_required: {failure}")
            except ShrinkRefused as refusal:
                outcome.warnings.append(f"The run would fail with shrink_refused: {refusal}")
            except TimeoutError:
                outcome.warnings.append(f"A dry run takes {SECONDS:.0f} seconds at most; what is told is incomplete.")
        return _told(tx, run, outcome)

    async def _as_what_it_is(self, attempt: "_Try", path: Path) -> None:
        for run in (attempt.run, replace(attempt.run, stream=Stream.STOCK)):
            order = order_of(run, attempt.source, path, await known_to(attempt.tx, run), attempt.limit)
            try:
                async with self.readers.open(order) as reader:
                    await replace(attempt, run=run).carry_out(reader)
                break
            except StockSheet:
                continue


@dataclass(frozen=True, slots=True)
class _Try:
    """One run, tried. `whole`: all that it would read is there."""

    tx: Tx
    source: Source
    run: Run
    outcome: _Outcome
    whole: bool
    limit: int | None

    async def carry_out(self, reader: FeedReader) -> None:
        tx, run, outcome = self.tx, self.run, self.outcome
        feed = feed_of(await reader.spool(_unheard), run.stream)
        outcome.log = feed.problems
        outcome.counts["rows"] = feed.rows
        cut = self.limit is not None and feed.rows >= self.limit
        if cut:
            outcome.warnings.append(
                f"Only the first {feed.rows:,} rows were read; what the whole file would withdraw is not told."
            )
        chunks = FeedChunks(_Within(tx), tx.tenant, tx.context, run.source, feed, reader, feed.chunks())
        complete = run.complete and self.whole and not cut
        if complete:
            await refuse_shrink(chunks, run)
        for number in range(len(chunks.buckets)):
            compared = await chunks.compare(number)
            reconciler = await self._applied(chunks, compared, complete=complete)
            outcome.events += reconciler.events
            outcome.counts.update(reconciler.counts)
            outcome.counts["unchanged"] += compared.diff.unchanged

    async def _applied(self, chunks: FeedChunks, compared: ComparedChunk, *, complete: bool) -> CatalogueReconciler:
        run, tx, diff, log = self.run, self.tx, compared.diff, chunks.feed.problems
        stated = await chunks.states(compared.chunk, diff.changed | diff.returned | frozenset(diff.troubled))
        statements = [one for one in stated.statements if one.key not in diff.troubled]
        absent = sorted(diff.absent)[:RECORDS] if complete else []
        if complete and len(diff.absent) > len(absent):
            self.outcome.warnings.append(f"{len(diff.absent) - len(absent):,} further items would be withdrawn.")
        keys = [*dict.fromkeys(statement.key for statement in statements), *absent]
        stock = run.stream == Stream.STOCK
        found: Mapping[str, tuple[Product, Variant]] = {}
        with suppress(_Released):
            async with tx.savepoint():
                if stock:
                    found = await tx[CatalogueStore].load_by_variant(run.source, keys)
                    products = {product.key: product for product, _ in found.values()}
                else:
                    variants = [variant.key for statement in statements for variant in statement.variants]
                    products = dict(await tx[CatalogueStore].load(run.source, keys, variants))
                raise _Released
        feed = chunks.feed
        places, names = feed.places if stock else None, feed.names_products
        reconciler = CatalogueReconciler(
            self.source, run.id, run.stream, tx.now, complete, products, feed.has, places, names_products=names
        )
        stating = Stating(reconciler, compared, run, log.room)

        def apply() -> None:
            if stock:
                stating.apply_stock(found, statements, stated.problems)
            else:
                stating.apply(statements, stated.problems)
            for key in absent:
                if stock and key in found:
                    reconciler.withdraw(found[key][0], found[key][1].offers)
                elif not stock and key in products:
                    reconciler.absent(products[key])

        await asyncio.to_thread(apply)
        for problem in (*stated.problems, *reconciler.problems):
            log.add(problem)
        return reconciler


async def _unheard(_rows: int) -> None:
    """Nobody waits to hear how far it is."""


def _told(tx: Tx, run: Run, outcome: _Outcome) -> Run:
    """Put down what `explain` tells, and answer the run with what it would count and report."""
    recorded, problems = tx.recorded, outcome.log
    recorded.changes += _changes(outcome.events[:TOLD])
    recorded.events += outcome.events[:TOLD]
    recorded.warnings += [*outcome.warnings, *map(_sentence, problems.kept[:TOLD])]
    if problems.total > TOLD:
        recorded.warnings.append(f"{problems.total - TOLD:,} further problems are not told one by one.")
    stats = {name: number for name, number in {**outcome.counts, "problems": problems.total}.items() if number}
    recorded.forecasts["outcome"] = {
        "stats": stats,
        "changes": len(outcome.events),
        "told": min(TOLD, len(outcome.events)),
    }
    return replace(run, stats={**run.stats, **stats}, problems=tuple(problems.kept))


def _changes(events: Iterable[Event]) -> Sequence[Change]:
    """The changes that the events tell of."""
    found = []
    for event in events:
        noun, _, what = event.type.partition(".")
        old: dict[str, Any] = {path: plain(before) for path, before, _ in event.fields if before is not None}
        new: dict[str, Any] = {path: plain(after) for path, _, after in event.fields if after is not None}
        found.append(Change(noun, event.subject, "create" if what == "created" else "update", old, new))
    return found


def _sentence(problem: Problem) -> str:
    place = [problem.sheet, f"line {problem.line}" if problem.line else None, problem.external_id]
    where = ", ".join(part for part in place if part)
    return f"{where}: {problem.field}: {problem.detail}" if where else f"{problem.field}: {problem.detail}"
