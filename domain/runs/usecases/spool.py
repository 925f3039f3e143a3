"""Spooling of a snapshot's rows to a temporary file, grouped into buckets by a hash of their key.

This is the work of the stages parse and map.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from domain.catalogue.batch import SLOT_COUNT
from domain.catalogue.model import Stream
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.columns.row_keys import RowKeys
from domain.ingestion.mapping.columns import complete_settings, find_stated_settings
from domain.ingestion.mapping.learned import LearnedMappings
from domain.ingestion.mapping.proposal import map_declared_fields, propose_column_mapping
from domain.ingestion.model import FeedSettings, FeedTable, HeaderMapping, Row
from domain.ingestion.ports import ParseFailed, ReadRequest
from domain.ingestion.snapshot_results import MappingRequired, SpoolResult, StockOnlySnapshot
from domain.ingestion.values.text import ParseFault, replace_surrogates, replace_text_surrogates
from domain.kernel.bounds import BYTES_PER_COUNTED_ROW, MAX_ROWS_PER_PRODUCT
from domain.kernel.problems import Problem, ProblemKind
from domain.mappings.proposal_log import TableLog
from domain.runs.chunks import compute_slot
from domain.runs.model import MAX_STORED_PROBLEMS
from domain.runs.ports import SpoolFile
from domain.runs.sheets import (
    MISSING_DATA_DETAILS,
    Sheet,
    compute_salt,
    describe_unkeyed_tables,
    find_column_locations,
    is_stock_sheet,
)
from domain.runs.usecases.row_relations import BundleResolver, SharedIdentifiers, VariantGrouping
from ports.codec import Codec

SAMPLE_ROWS = 50
"""Number of rows of a table that are examined to map its columns."""
PUSHED_TABLE = -1
"""Number that pushed records have in place of a table number."""
_MAX_COUNTED_KEYS = 50_000
"""Maximum number of keys whose rows are counted; further keys have no row limit while spooling."""

OmittedRows = tuple[int, int, str | None]
"""Number of omitted rows, and the line and the sheet of the first of them."""


def compute_row_weight(line: bytes) -> int:
    """Return the weight of an encoded row in the row limit: 1, plus 1 for every BYTES_PER_COUNTED_ROW bytes."""
    return 1 + len(line) // BYTES_PER_COUNTED_ROW


def propose_mapping(table: FeedTable, first_rows: Sequence[Row], settings: FeedSettings) -> HeaderMapping:
    """Return a mapping of the table's columns to fields.

    It follows from the connector's field names or else from the headers and the first rows (`first_rows`).
    """
    if table.declared_fields is not None:
        return map_declared_fields(table.headers, table.declared_fields)
    return propose_column_mapping(table.headers, _to_texts(first_rows), settings, table.sheet, table.notes)


def _to_texts(rows: Sequence[Row]) -> list[list[str]]:
    return [["" if cell is None else str(cell) for cell in cells] for _, cells in rows]


@dataclass(slots=True)
class ProblemLog:
    """Problems of a run: the first MAX_STORED_PROBLEMS are stored, further ones are only counted."""

    stored: list[Problem] = field(default_factory=list)
    total: int = 0

    @property
    def remaining(self) -> int:
        """The number of problems that can still be stored."""
        return max(0, MAX_STORED_PROBLEMS - len(self.stored))

    def add(self, problem: Problem) -> None:
        """Count a problem, and store it unless MAX_STORED_PROBLEMS are stored."""
        self.total += 1
        if len(self.stored) < MAX_STORED_PROBLEMS:
            self.stored.append(problem)


class RowLimit:
    """Limit on the number of rows that one product (or stock item) may have.

    While spooling, callers count a row only if its bucket already has more rows than the limit. Excess rows that are
    not noticed then are omitted when the bucket is read.
    """

    def __init__(self) -> None:
        self._row_counts: dict[str, int] = {}
        self._omitted: dict[str, OmittedRows] = {}
        self._omitted_on_reading: dict[str, OmittedRows] = {}

    def count_row(self, key: str, weight: int) -> bool:
        """Count a row of the key; return whether the key's rows now exceed the limit.

        Args:
            key: Key of the product or stock item.
            weight: Weight of the row (`compute_row_weight`); long rows count several times.
        """
        count = self._row_counts.get(key)
        if count is None and len(self._row_counts) >= _MAX_COUNTED_KEYS:
            return False
        self._row_counts[key] = (count or 0) + weight
        return self._row_counts[key] > MAX_ROWS_PER_PRODUCT

    def record_omitted(self, key: str, line: int, sheet: str | None) -> None:
        """Record that a row of the key was omitted while spooling."""
        count, first_line, first_sheet = self._omitted.get(key, (0, line, sheet))
        self._omitted[key] = (count + 1, first_line, first_sheet)

    def record_omitted_on_reading(self, key: str, rows: OmittedRows) -> None:
        """Record the rows of the key that were omitted when its bucket was read, in place of an earlier such record."""
        self._omitted_on_reading[key] = rows

    def find_problems(self, key: str) -> list[Problem]:
        """Return a list with one problem if rows of the key were omitted, else an empty list."""
        omitted = [rows[key] for rows in (self._omitted_on_reading, self._omitted) if key in rows]
        if not omitted:
            return []
        count, (_, line, sheet) = sum(rows[0] for rows in omitted), omitted[0]
        detail = (
            f"Too many rows for one product: {count:,} rows of {key} were ignored. The maximum is {MAX_ROWS_PER_PRODUCT:,} rows or "
            f"{MAX_ROWS_PER_PRODUCT * BYTES_PER_COUNTED_ROW >> 20} MiB."
        )
        return [Problem("rows", ProblemKind.TOO_LONG, detail, line, None, sheet)]


class RowSpooler:
    """Spools a feed's rows in the calling thread.

    Attributes:
        row_count: Number of rows read so far; other threads may read it.
        sheets: The feed's tables that are read.
        row_limit: Limit on the number of rows of one product.
        bundles: Sets and their parts.
        grouping: Grouping of items into products.
        identifiers: Identifiers that several items state.
        bucket_weights: Total weight of the rows in each bucket.
    """

    def __init__(self, request: ReadRequest, codec: Codec) -> None:
        self.stream, self.row_count, self._remaining_bytes = Stream(request.stream), 0, request.max_bytes
        self.sheets: list[Sheet] = []
        self.problems, self.row_limit, self.bundles, self.grouping, self.identifiers = (
            ProblemLog(),
            RowLimit(),
            BundleResolver(),
            VariantGrouping(),
            SharedIdentifiers(),
        )
        self.bucket_weights = [0] * request.buckets
        self._slots = [array("I") for _ in range(request.buckets)]
        self._request, self._codec, self._last_slot, self._tables = request, codec, -1, TableLog()
        self._spool: SpoolFile | None = None

    def spool_tables(self, spool: SpoolFile, tables: Iterator[FeedTable]) -> SpoolResult:
        """Spool the rows of all tables, then group variants and look up the parts of sets.

        Raises:
            MappingRequired: No table has a key column.
            StockOnlySnapshot: A table contains only stock, and `may_be_stock` of the request is set. The caller must
                then process the file as stock.
        """
        self._spool, lacks_key = spool, False
        learned = LearnedMappings(self._request.confirmed_mappings)
        for table in tables:
            head = list(islice(table.rows, SAMPLE_ROWS))
            samples, has_given_fields = _to_texts(head), table.declared_fields is not None
            settings = complete_settings(self._request.settings, table.notes)
            mapping = propose_mapping(table, head, settings)
            if not has_given_fields:
                mapping = learned.apply_to(mapping, samples, settings)
            self._report_contradicted_settings(table)
            self._tables.add_table(table.sheet, mapping, samples, is_predefined=has_given_fields)
            if mapping.missing:
                lacks_key = True
                reasons = " ".join(MISSING_DATA_DETAILS[name] for name in mapping.missing)
                detail = f"{reasons} The sheet was ignored."
                self.problems.add(Problem("sku", ProblemKind.MISSING, detail, sheet=table.sheet))
                continue
            if self._request.may_be_stock and is_stock_sheet(mapping):
                raise StockOnlySnapshot
            plan = ReadPlan(mapping, settings, none_means_absent=not has_given_fields)
            self.sheets.append(
                Sheet(table.sheet, plan, compute_salt(mapping, settings), find_column_locations(mapping, plan))
            )
            for problem in plan.find_differing_alternatives(head, table.sheet):
                self.problems.add(problem)
            keys = RowKeys(plan, self.stream, head)
            self._spool_rows(len(self.sheets) - 1, keys, chain(head, table.rows))
            if self._count_remaining_rows() == 0:
                break
        if lacks_key and not self.sheets:
            summary = self._tables.build_summary()
            raise MappingRequired(describe_unkeyed_tables(summary.listed_tables, self.stream), summary)
        self._resolve_relations()
        return self._build_result()

    def spool_records(self, spool: SpoolFile, parts: Iterator[Sequence[Mapping[str, Any]]]) -> SpoolResult:
        """Spool pushed records.

        The fingerprints of the records also depend on whether the push is complete.
        """
        self._spool = spool
        salt = compute_salt(None, self._request.settings) + (b" whole" if self._request.is_complete else b"")
        self.sheets.append(Sheet(None, None, salt))
        for record in chain.from_iterable(parts):
            self.row_count += 1
            self._spool_row(PUSHED_TABLE, str(record["product"]["external_id"]), self.row_count, record)
        return self._build_result()

    def read_rows(self, buckets: Iterable[int]) -> Iterator[tuple[int, str, int, int, bytes]]:
        """Yield the rows of the buckets: table number, key, line, stem hash (0 for none) and encoded cells."""
        assert self._spool is not None
        decode = self._codec.decode
        for bucket in buckets:
            for entry in self._spool.read_lines(bucket):
                head, _, cells = entry.partition(b"\t")
                table, key, line, *stem_hash = decode(head)
                yield table, key, line, stem_hash[0] if stem_hash else 0, cells

    def lacks_own_product(self, key: str) -> bool:
        """Return whether the key has no product of its own: it is only a part of sets, or grouped under another key."""
        return key in self.bundles.part_only_keys or key in self.grouping.product_key_by_item_key

    def _report_contradicted_settings(self, table: FeedTable) -> None:
        """Report settings of the source that differ from what the text above a table states."""
        for name, stated in find_stated_settings(table.notes).items():
            used = getattr(self._request.settings, name)
            if used not in (None, stated):
                detail = f"The text above the table states {stated}, but the source's setting {used} is used for values without their own."
                self.problems.add(Problem(name, ProblemKind.CONFLICT, detail, sheet=table.sheet))

    def _count_remaining_rows(self) -> int | None:
        """Return the number of rows that may still be read, or None without a limit."""
        return None if self._request.max_rows is None else max(0, self._request.max_rows - self.row_count)

    def _spool_rows(self, index: int, keys: RowKeys, rows: Iterator[Row]) -> None:
        sheet, catalogue = self.sheets[index], self.stream == Stream.CATALOGUE
        plan, sheet_name = sheet.plan, sheet.name
        assert plan is not None
        record_parts = self.bundles.create_part_recorder(plan) if catalogue else None
        record_stem = self.grouping.create_stem_recorder(plan) if catalogue else None
        record_identifiers = self.identifiers.create_recorder(plan) if catalogue else None
        for line, cells in islice(rows, self._count_remaining_rows()):
            self.row_count += 1
            cells = plan.replace_values(cells)
            key = keys.read_key(cells)
            if isinstance(key, ParseFault):
                self.problems.add(Problem("sku", key.problem, key.detail, line=line, sheet=sheet_name))
                continue
            try:
                if record_parts is not None:
                    record_parts(key, cells)
                if record_identifiers is not None:
                    record_identifiers(key, cells)
                self._spool_row(index, key, line, cells, record_stem(cells) if record_stem is not None else 0)
            except UnicodeEncodeError:
                detail = "The row contains lone surrogates, which are invalid text. Each was replaced by U+FFFD."
                self.problems.add(Problem("cell", ProblemKind.UNREADABLE, detail, line=line, sheet=sheet_name))
                self._spool_row(index, replace_text_surrogates(key), line, replace_surrogates(cells))

    def _spool_row(self, table: int, key: str, line: int, cells: Any, stem_hash: int = 0) -> None:
        entry, slot = self._codec.encode(cells), compute_slot(key, self.stream)
        bucket, weight = slot * len(self.bucket_weights) // SLOT_COUNT, compute_row_weight(entry)
        if slot != self._last_slot:
            self._slots[bucket].append(slot)
            self._last_slot = slot
        self.bucket_weights[bucket] += weight
        if (
            self.bucket_weights[bucket] > MAX_ROWS_PER_PRODUCT
            and table != PUSHED_TABLE
            and self.row_limit.count_row(key, weight)
        ):
            self.row_limit.record_omitted(key, line, self.sheets[table].name)
            return
        self._remaining_bytes -= len(entry)
        if self._remaining_bytes < 0:
            raise ParseFailed("The feed is too large when decoded. Remove empty columns.")
        self._write_entry(bucket, (table, key, line, stem_hash) if stem_hash else (table, key, line), entry)

    def _write_entry(self, bucket: int, head: tuple[Any, ...], cells: bytes) -> None:
        assert self._spool is not None
        self._spool.add_line(bucket, self._codec.encode(head) + b"\t" + cells)

    def _resolve_relations(self) -> None:
        """Look up the parts of sets, then group items and spool their rows under the keys of their products; compare identifiers."""
        is_suspect = self.identifiers.take_suspect_test()
        if self.bundles.has_possible_parts:
            self._look_up_parts()
        if repeated_stem_hashes := self.grouping.take_repeated_stem_hashes():
            self._group_rows(repeated_stem_hashes)
            self._respool_groups()
            for problem in self.grouping.find_problems():
                self.problems.add(problem)
        if is_suspect is not None:
            self._compare_identifiers(is_suspect)

    def _compare_identifiers(self, is_suspect: Callable[[str], bool]) -> None:
        """Read the rows of suspect keys again, and report the identifiers that several items state."""
        product_keys = self.grouping.product_key_by_item_key
        for table, key, line, _, cells in self.read_rows(range(len(self.bucket_weights))):
            if key not in self.grouping.product_keys and is_suspect(key):
                sheet, product_key = self.sheets[table], product_keys.get(key, key)
                self.identifiers.add_row(sheet, key, product_key, line, self._codec.decode(cells))
        for problem in self.identifiers.find_problems():
            self.problems.add(problem)

    def _look_up_parts(self) -> None:
        """Read the rows of possible parts again, and store the data that their sets need."""
        found: list[Problem] = []
        for bucket in range(len(self.bucket_weights)):
            by_key: dict[str, list[tuple[int, int, Any]]] = {}
            for table, key, line, _, cells in self.read_rows([bucket]):
                plan = self.sheets[table].plan
                if plan is not None and self.bundles.may_be_part(plan, key):
                    by_key.setdefault(key, []).append((table, line, self._codec.decode(cells)))
            found += filter(None, (self.bundles.store_parts(self.sheets, key, lines) for key, lines in by_key.items()))
        for problem in self.bundles.summarise_problems(found):
            self.problems.add(problem)

    def _group_rows(self, repeated_stem_hashes: frozenset[int]) -> None:
        """Group items by the rows with these stem hashes, if the size limit permits spooling the rows again."""
        size = 0
        for table, key, _, stem_hash, cells in self.read_rows(range(len(self.bucket_weights))):
            if stem_hash in repeated_stem_hashes:
                plan = self.sheets[table].plan
                member = plan.read_family(self._codec.decode(cells)) if plan is not None and plan.read_family else None
                if member is not None:
                    self.grouping.add_row(key, member)
                    size += len(cells)
        self.grouping.group_items(keeps_separate=size > self._remaining_bytes)

    def _respool_groups(self) -> None:
        """Spool the rows of grouped items again, under the keys of their products."""
        product_keys = self.grouping.product_key_by_item_key
        for bucket in range(len(self.bucket_weights)):
            grouped = [entry for entry in self.read_rows([bucket]) if entry[1] in product_keys]
            for table, key, line, _, cells in grouped:
                product_key = product_keys[key]
                slot = compute_slot(product_key, self.stream)
                new_bucket = slot * len(self.bucket_weights) // SLOT_COUNT
                self._slots[new_bucket].append(slot)
                self.bucket_weights[new_bucket] += compute_row_weight(cells)
                self._remaining_bytes -= len(cells)
                self._write_entry(new_bucket, (table, product_key, line), cells)
        self.bundles.reassign_parts(product_keys)

    def _build_result(self) -> SpoolResult:
        slots, stream, sheets = array("I"), self.stream, self.sheets
        absent = {
            compute_slot(key, stream) for key in (*self.bundles.part_only_keys, *self.grouping.product_key_by_item_key)
        }
        absent -= {compute_slot(key, stream) for key in self.grouping.product_keys}
        # buckets follow each other as their slots do; sorting one at a time takes little memory
        for bucket in self._slots:
            slots.extend(sorted(set(bucket) - absent))
        sheet_locations = [sheet.locations for sheet in sheets if sheet.locations is not None]
        locations = frozenset[str]().union(*sheet_locations) if len(sheet_locations) == len(sheets) else None
        has_product_keys = all(sheet.plan is None or sheet.plan.has_product_column for sheet in sheets)
        return SpoolResult(
            self.row_count,
            self.bucket_weights,
            slots,
            locations,
            self.problems.stored,
            self.problems.total,
            self._tables.build_summary(),
            has_product_keys,
        )
