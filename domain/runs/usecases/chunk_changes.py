"""Processing of a feed in chunks: comparison with stored fingerprints, and computation of catalogue changes."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby

from domain.catalogue.batch import FingerprintDiff, RowFingerprint, SlotRange
from domain.catalogue.model import Product, Stream, Variant
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.reconciler import CatalogueReconciler
from domain.catalogue.statements import ProductStatement
from domain.ingestion.ports import FeedReader
from domain.ingestion.record_merge import RecordMerger
from domain.ingestion.snapshot_results import FeedStatements, SpoolResult
from domain.kernel.problems import Problem, ProblemKind
from domain.kernel.tenancy import AuditContext, Tenant
from domain.runs.chunks import compute_slot, compute_slot_range, create_invalid_fingerprint, divide_buckets
from domain.runs.model import Run
from domain.runs.usecases.category_rules import load_category_assigner
from domain.runs.usecases.spool import ProblemLog
from domain.sources.model import Source
from ports.unit_of_work import Tx, UnitOfWork


@dataclass(frozen=True, slots=True)
class ChunkDiff:
    """Keys of one chunk, and the result of comparing their fingerprints with the stored ones.

    Attributes:
        buckets: The chunk's buckets.
        fingerprints: Fingerprint of each key's rows.
        lines: Line on which each key first occurs.
        row_counts: Number of rows of each key; long rows count several times.
        slot_range: The source, the stream, and the range of the slots (hashes of keys) that the chunk covers.
        diff: Result of the comparison.
    """

    buckets: range
    fingerprints: Mapping[str, RowFingerprint]
    lines: Mapping[str, int]
    row_counts: Mapping[str, int]
    slot_range: SlotRange
    diff: FingerprintDiff


@dataclass(slots=True)
class FeedComparison:
    """Spooled snapshot of a run, which is compared with the stored fingerprints chunk by chunk."""

    uow: UnitOfWork
    tenant: Tenant
    context: AuditContext
    source: Source
    stream: Stream
    reader: FeedReader
    spooled: SpoolResult
    problems: ProblemLog = field(init=False)
    chunks: Sequence[range] = field(init=False)
    """The buckets of each chunk."""

    def __post_init__(self) -> None:
        """Divide the buckets into chunks, and copy the problems found while spooling."""
        self.problems = ProblemLog(list(self.spooled.problems), self.spooled.problem_count)
        self.chunks = divide_buckets(self.spooled.bucket_sizes, self.stream)

    def contains_product(self, key: str) -> bool:
        """Return whether any row of the feed has the product key."""
        return contains_product_key(self.spooled.slots, key)

    async def compare_chunk(self, chunk_number: int) -> ChunkDiff:
        """Compare the fingerprints of chunk `chunk_number` (from 0) with the stored ones; nothing is stored."""
        buckets = self.chunks[chunk_number]
        keys = await self.reader.load_keys(buckets)
        fingerprints = {fingerprint.key: fingerprint for fingerprint in keys.fingerprints}
        lines, rows = (dict(zip(fingerprints, values, strict=True)) for values in (keys.lines, keys.row_counts))
        key_range = SlotRange(self.source.id, self.stream, *compute_slot_range(buckets, len(self.spooled.bucket_sizes)))
        async with self.uow.begin_scratch(self.tenant, self.context) as tx:
            diff = await tx[CatalogueStore].compare_fingerprints(key_range, keys.fingerprints)
        return ChunkDiff(buckets, fingerprints, lines, rows, key_range, diff)

    async def read_statements(self, chunk: ChunkDiff, keys: Collection[str]) -> FeedStatements:
        """Return what the feed states about the products with these keys of the chunk."""
        return await self.reader.load_statements(chunk.buckets, keys) if keys else FeedStatements((), ())


def contains_product_key(slots: Sequence[int], key: str) -> bool:
    """Return whether a feed contains the product key.

    Only the slots are compared. A key that is not in the feed has the same slot as a given key of the feed with a
    probability of 1 in SLOT_COUNT; the result is then wrongly True.

    Args:
        slots: Slots of all product keys of the feed, in ascending order.
        key: The product key.
    """
    slot = compute_slot(key, Stream.CATALOGUE)
    index = bisect_left(slots, slot)
    return index < len(slots) and slots[index] == slot


@dataclass(slots=True)
class ChunkPortion:
    """Part of a chunk that is written in one transaction.

    Attributes:
        chunk: The chunk.
        changed: Keys of the portion whose rows have changed.
        absent: Keys that the feed no longer contains.
        completed_chunks: Number of chunks that are stored completely once this portion is written.
        is_last: Whether this is the chunk's last portion.
        statements: The feed's statements for the changed keys; reconciliation modifies them.
        problems: Problems of the changed rows and, in the last portion, of unchanged rows.
        unlisted_problem_count: Number of problems of unchanged rows that are counted but not listed.
        reconciler: The reconciler with the computed changes; None before reconciliation.
        dependency_keys: Keys of the products (`p …`) and variants (`v …`) on which the computed changes depend.
        merge_revision: The catalogue's merge revision at the time of reconciliation.
    """

    chunk: ChunkDiff
    changed: frozenset[str]
    absent: Sequence[str]
    completed_chunks: int
    is_last: bool
    statements: Sequence[ProductStatement] = ()
    problems: Sequence[Problem] = ()
    unlisted_problem_count: int = 0
    reconciler: CatalogueReconciler | None = None
    dependency_keys: frozenset[str] = frozenset()
    merge_revision: int = 0

    @property
    def leaves_catalogue_unchanged(self) -> bool:
        """True if the portion has neither statements nor absent keys, so that it does not change the catalogue."""
        return not self.statements and not self.absent


@dataclass(slots=True)
class StatementApplier:
    """Computes the catalogue changes that follow from a portion of a feed.

    Attributes:
        run: The run.
        portion: The portion.
        reconciler: The reconciler that computes the changes.
        remaining_problems: Number of problems that can still be stored with the run.
        variants_by_stock_key: Product and variant for each key of a stock sheet; empty for a catalogue.
    """

    run: Run
    portion: ChunkPortion
    reconciler: CatalogueReconciler
    remaining_problems: int
    variants_by_stock_key: Mapping[str, tuple[Product, Variant]]

    @classmethod
    async def load(
        cls, tx: Tx, feed: FeedComparison, run: Run, portion: ChunkPortion, *, is_complete: bool
    ) -> "StatementApplier":
        """Load the portion's products in the transaction, and return an applier of the portion.

        Args:
            tx: The transaction.
            feed: The run's feed.
            run: The run.
            portion: The portion.
            is_complete: Whether variants and offers without a statement are withdrawn.
        """
        keys = [*dict.fromkeys(statement.key for statement in portion.statements), *portion.absent]
        stock: Mapping[str, tuple[Product, Variant]] = {}
        if run.stream == Stream.STOCK:
            stock = await tx[CatalogueStore].load_variants(run.source, keys)
            products = {product.key: product for product, _ in stock.values()}
        else:
            variants = [variant.key for statement in portion.statements for variant in statement.variants]
            products = dict(await tx[CatalogueStore].load_products(run.source, keys, variants))
        reconciler = create_reconciler(tx, feed, run, products, is_complete)
        if run.stream == Stream.CATALOGUE:
            reconciler.category_assigner = await load_category_assigner(tx, run.source)
        return cls(run, portion, reconciler, feed.problems.remaining, stock)

    def apply(self) -> None:
        """Compute the changes from the feed's products and the absent keys, without access to the database."""
        problem_counts = Counter(problem.external_id for problem in self.portion.problems)
        if self.run.stream == Stream.STOCK:
            self._apply_stock(problem_counts)
        else:
            self._apply_catalogue(problem_counts)

    def _apply_catalogue(self, problem_counts: "Counter[str | None]") -> None:
        reconciler, portion = self.reconciler, self.portion
        if reconciler.replaces_data:
            for key, records in groupby(portion.statements, lambda record: record.key):
                start = len(reconciler.problems)
                if (merged := self._merge_records(key, list(records))) is not None:
                    self._apply_statement(merged, problem_counts, start)
        else:
            for statement in portion.statements:
                self._apply_statement(statement, problem_counts, len(reconciler.problems))
        if not self.run.is_complete:
            reconciler.batch.invalidated_fingerprints += [
                create_invalid_fingerprint(key, self.run.stream) for key in sorted(reconciler.moved_from_product_keys)
            ]
        for key in portion.absent:
            if key in reconciler.products:
                reconciler.withdraw_absent_product(reconciler.products[key])

    def _apply_stock(self, problem_counts: "Counter[str | None]") -> None:
        """Apply the offers of a stock sheet to the variants with the same keys; withdraw the offers of absent keys.

        A key without a variant is reported as a problem.

        Args:
            problem_counts: Number of problems that were found while reading, by key.
        """
        reconciler, chunk = self.reconciler, self.portion.chunk
        for statement in self.portion.statements:
            key = statement.key
            if key not in self.variants_by_stock_key:
                detail = (
                    f"The key {key} matches no item of the source, or more than one. The stock of the key was ignored."
                )
                problem = Problem("sku", ProblemKind.MISSING, detail, line=chunk.lines[key], external_id=key)
                reconciler.problems.append(problem)
                continue
            product, variant = self.variants_by_stock_key[key]
            for statement_variant in statement.variants:
                statement_variant.key = variant.key
                reconciler.apply_stock(product, statement_variant)
            fingerprint = replace(chunk.fingerprints[key], product_id=product.id, problem_count=problem_counts[key])
            reconciler.batch.fingerprints.append(fingerprint)
        for key in self.portion.absent:
            if key in self.variants_by_stock_key:
                product, variant = self.variants_by_stock_key[key]
                reconciler.withdraw_offers(product, variant.offers)

    def _apply_statement(self, statement: ProductStatement, problem_counts: "Counter[str | None]", start: int) -> None:
        """Apply what the feed states about one product to the stored product, and record the fingerprint of the rows.

        Args:
            statement: The statement.
            problem_counts: Number of problems that were found while reading, by key.
            start: Number of problems that the reconciler had before this statement.
        """
        reconciler, key, chunk = self.reconciler, statement.key, self.portion.chunk
        reconciler.line = chunk.lines[key]
        product = reconciler.apply_product(statement)
        problems = reconciler.problems
        has_problems = len(problems) > start
        if has_problems:
            problems[start:] = [replace(problem, external_id=key) for problem in problems[start:]]
        if product.key != key:  # the statement under the product's own key is outdated
            reconciler.batch.invalidated_fingerprints.append(create_invalid_fingerprint(product.key, self.run.stream))
            return
        row_fingerprint = replace(chunk.fingerprints[key], product_id=product.id, problem_count=problem_counts[key])
        if has_problems and start < self.remaining_problems:  # the next run must report these problems again
            row_fingerprint = replace(row_fingerprint, fingerprint=b"")
        reconciler.batch.fingerprints.append(row_fingerprint)

    def _merge_records(self, key: str, records: Sequence[ProductStatement]) -> ProductStatement | None:
        """Merge pushed records of a product with its stored data, and return the resulting ProductStatement.

        Returns None if the records contain only offers of an unknown product.
        """
        reconciler, chunk = self.reconciler, self.portion.chunk
        has_returned = key in chunk.diff.reappeared or key in chunk.diff.returned
        product = reconciler.products.get(key)
        merger = RecordMerger(
            product, lambda variant_key: reconciler.find_variant(variant_key, key), self.run.is_complete, has_returned
        )
        statement = merger.merge(records)
        line = chunk.lines[key]
        reconciler.problems += [replace(problem, line=line, external_id=key) for problem in merger.problems]
        return statement


def create_reconciler(
    tx: Tx, feed: FeedComparison, run: Run, products: dict[str, Product], is_complete: bool
) -> CatalogueReconciler:
    """Return a reconciler that applies the run's feed to the products.

    Args:
        tx: The transaction.
        feed: The run's feed.
        run: The run.
        products: The loaded products by key.
        is_complete: Whether variants and offers without a statement are withdrawn.
    """
    locations = feed.spooled.locations if run.stream == Stream.STOCK else None
    has_product_keys = feed.spooled.has_product_keys
    return CatalogueReconciler(
        feed.source,
        run.id,
        run.stream,
        tx.now,
        is_complete,
        products,
        feed.contains_product,
        locations,
        has_product_keys=has_product_keys,
        replaces_data=feed.source.has_records and run.stream == Stream.CATALOGUE,
        erases_absent_items=feed.source.follows_catalogue,
    )
