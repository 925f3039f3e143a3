"""Processing of a feed in chunks: comparison with stored fingerprints, and application of statements to the catalogue."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from domain.catalogue.batch import FingerprintDiff, KeyRange, RowFingerprint
from domain.catalogue.model import Product, Stream, Variant
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import ProductStatement
from domain.ingestion.merging import RecordMerger
from domain.ingestion.ports import FeedReader
from domain.ingestion.reading import SpooledRows, Stated
from domain.kernel.problems import Problem, ProblemKind
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs.chunks import chunks_of, outdated, slot_of, slots_of
from domain.runs.model import PushInput, Run
from domain.runs.usecases.category_rules import filing_of
from domain.runs.usecases.spooling import ProblemLog
from domain.sources.model import Source
from ports.unit_of_work import Tx, UnitOfWork


@dataclass(frozen=True, slots=True)
class ChunkDiff:
    """The keys of some buckets, and their comparison with the stored fingerprints.

    Each key has a fingerprint, the line it is first named on, and a number of rows (long ones count several times).
    """

    buckets: range
    fingerprints: Mapping[str, RowFingerprint]
    lines: Mapping[str, int]
    rows: Mapping[str, int]
    key_range: KeyRange
    diff: FingerprintDiff


@dataclass(slots=True)
class Feed:
    """A run's spooled snapshot; no other run changes the source's fingerprints meanwhile."""

    uow: UnitOfWork
    tenant: Tenant
    context: AuditContext
    source: Source
    stream: Stream
    reader: FeedReader
    spooled: SpooledRows
    problems: ProblemLog = field(init=False)
    chunks: Sequence[range] = field(init=False)
    """The buckets of each chunk."""

    def __post_init__(self) -> None:
        """Divide the buckets into chunks, and begin with the problems of reading."""
        self.problems = ProblemLog(list(self.spooled.problems), self.spooled.problem_count)
        self.chunks = chunks_of(self.spooled.held, self.stream)

    def has(self, key: str) -> bool:
        """Return whether the feed contains the product key."""
        return names_product(self.spooled.slots, key)

    async def compare(self, number: int) -> ChunkDiff:
        """Compare a chunk's fingerprints with the stored ones, without writing."""
        buckets = self.chunks[number]
        gathered = await self.reader.gather(buckets)
        fingerprints = {fingerprint.key: fingerprint for fingerprint in gathered.fingerprints}
        lines, rows = (dict(zip(fingerprints, each, strict=True)) for each in (gathered.lines, gathered.rows))
        key_range = KeyRange(self.source.id, self.stream, *slots_of(buckets, len(self.spooled.held)))
        async with self.uow.scratch(self.tenant, self.context) as tx:
            diff = await tx[CatalogueStore].compare(key_range, gathered.fingerprints)
        return ChunkDiff(buckets, fingerprints, lines, rows, key_range, diff)

    async def states(self, chunk: ChunkDiff, keys: Collection[str]) -> Stated:
        """Read the feed's statements for some of the chunk's keys."""
        return await self.reader.states(chunk.buckets, keys) if keys else Stated((), ())


def names_product(slots: Sequence[int], key: str) -> bool:
    """Return whether the product key's slot is among the sorted slots (false positives: one key in two thousand million)."""
    slot = slot_of(key, Stream.CATALOGUE)
    place = bisect_left(slots, slot)
    return place < len(slots) and slots[place] == slot


@dataclass(slots=True)
class Portion:
    """A part of a chunk that is written in one transaction: changed keys and absent keys.

    `chunks` are written with it; the last portion of a chunk counts unchanged keys and those still absent. `statements`
    are the feed's, for the changed keys. `problems` include those of unchanged rows; `untold` counts problems beyond the
    limit. After reconciliation, `touches` has the IDs of the loaded products and the stated variants, `merges` the merge
    count at that time, and the statements are consumed.
    """

    chunk: ChunkDiff
    changed: frozenset[str]
    absent: Sequence[str]
    chunks: int
    last: bool
    statements: Sequence[ProductStatement] = ()
    problems: Sequence[Problem] = ()
    untold: int = 0
    reconciler: CatalogueReconciler | None = None
    touches: frozenset[str] = frozenset()
    merges: int = 0

    @property
    def is_idle(self) -> bool:
        """Return whether the portion leaves the catalogue unchanged."""
        return not self.statements and not self.absent


@dataclass(slots=True)
class Reconciliation:
    """Application of a portion's statements to the catalogue.

    `begin` creates it in a transaction; `apply` only computes. `room` is the number of problems that the run can still
    store. `stock` maps the keys of a stock sheet to their variants.
    """

    run: Run
    portion: Portion
    reconciler: CatalogueReconciler
    room: int
    stock: Mapping[str, tuple[Product, Variant]]

    @classmethod
    async def begin(cls, tx: Tx, feed: Feed, run: Run, portion: Portion, *, complete: bool) -> "Reconciliation":
        """Load the portion's products; `complete` allows withdrawing objects that are not stated."""
        keys = [*dict.fromkeys(statement.key for statement in portion.statements), *portion.absent]
        stock: Mapping[str, tuple[Product, Variant]] = {}
        if run.stream == Stream.STOCK:
            stock = await tx[CatalogueStore].load_by_variant(run.source, keys)
            products = {product.key: product for product, _ in stock.values()}
        else:
            variants = [variant.key for statement in portion.statements for variant in statement.variants]
            products = dict(await tx[CatalogueStore].load(run.source, keys, variants))
        reconciler = reconciler_of(tx, feed, run, products, complete)
        if run.stream == Stream.CATALOGUE:
            reconciler.filing = await filing_of(tx, run.source)
        return cls(run, portion, reconciler, feed.problems.room, stock)

    def apply(self) -> None:
        """Apply the statements, and withdraw absent products."""
        troubles = Counter(problem.external_id for problem in self.portion.problems)
        if self.run.stream == Stream.STOCK:
            self._apply_stock(troubles)
        else:
            self._apply_catalogue(troubles)

    def _apply_catalogue(self, troubles: "Counter[str | None]") -> None:
        reconciler, portion = self.reconciler, self.portion
        if isinstance(self.run.input, PushInput):
            reconciler.replaces_data = True
            for key, records in groupby(portion.statements, lambda record: record.key):
                start = len(reconciler.problems)
                if (merged := self._merged(key, list(records))) is not None:
                    self._apply_statement(merged, troubles, start)
        else:
            for statement in portion.statements:
                self._apply_statement(statement, troubles, len(reconciler.problems))
        if not self.run.complete:
            reconciler.batch.outdated += [outdated(key, self.run.stream) for key in sorted(reconciler.moved_from)]
        for key in portion.absent:
            if key in reconciler.products:
                reconciler.absent(reconciler.products[key])

    def _apply_stock(self, troubles: "Counter[str | None]") -> None:
        """Apply a stock sheet's statements to the variants with their keys; report keys without a variant."""
        reconciler, chunk = self.reconciler, self.portion.chunk
        for statement in self.portion.statements:
            key = statement.key
            if key not in self.stock:
                detail = f"The catalogue has no item {key}, or more than one; its stock was left out."
                problem = Problem("sku", ProblemKind.MISSING, detail, line=chunk.lines[key], external_id=key)
                reconciler.problems.append(problem)
                continue
            product, variant = self.stock[key]
            for stated in statement.variants:
                stated.key = variant.key
                reconciler.stock(product, stated)
            mark = replace(chunk.fingerprints[key], product=product.id, problems=troubles[key])
            reconciler.batch.fingerprints.append(mark)
        for key in self.portion.absent:
            if key in self.stock:
                product, variant = self.stock[key]
                reconciler.withdraw(product, variant.offers)

    def _apply_statement(self, statement: ProductStatement, troubles: "Counter[str | None]", start: int) -> None:
        """Apply a statement; problems of the reconciler from index `start` on get its key."""
        reconciler, key, chunk = self.reconciler, statement.key, self.portion.chunk
        reconciler.line = chunk.lines[key]
        product = reconciler.product(statement)
        problems = reconciler.problems
        refused = len(problems) > start
        if refused:
            problems[start:] = [replace(problem, external_id=key) for problem in problems[start:]]
        if product.key != key:  # the statement under the product's own key is outdated
            reconciler.batch.outdated.append(outdated(product.key, self.run.stream))
            return
        mark = replace(chunk.fingerprints[key], product=product.id, problems=troubles[key])
        if refused and start < self.room:  # the next run must report again what did not fit
            mark = replace(mark, fingerprint=b"")
        reconciler.batch.fingerprints.append(mark)

    def _merged(self, key: str, records: Sequence[ProductStatement]) -> ProductStatement | None:
        """Merge the records of a product with the source's previous statement."""
        reconciler, chunk = self.reconciler, self.portion.chunk
        resumed = key in chunk.diff.resumed or key in chunk.diff.returned
        product = reconciler.products.get(key)
        merger = RecordMerger(product, lambda name: reconciler.held(name, key), self.run.complete, resumed)
        statement = merger.merged(records)
        line = chunk.lines[key]
        reconciler.problems += [replace(problem, line=line, external_id=key) for problem in merger.problems]
        return statement


def reconciler_of(tx: Tx, feed: Feed, run: Run, products: dict[str, Product], complete: bool) -> CatalogueReconciler:
    """Return a reconciler of those products for the run."""
    places = feed.spooled.places if run.stream == Stream.STOCK else None
    names = feed.spooled.names_products
    return CatalogueReconciler(
        feed.source, run.id, run.stream, tx.now, complete, products, feed.has, places, names_products=names
    )
