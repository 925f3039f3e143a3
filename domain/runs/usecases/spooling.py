"""Spooling of a snapshot's rows by bucket, each under its key (pipeline stages parse and map)."""

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any

from domain.catalogue.batch import SLOTS
from domain.catalogue.model import Stream
from domain.ingestion.columns.plan import ReadPlan, is_sum
from domain.ingestion.mapping.learned import Knowledge
from domain.ingestion.mapping.proposal import from_given, propose
from domain.ingestion.model import FeedSettings, FeedTable, HeaderMapping, Row
from domain.ingestion.ports import ParseFailed, ReadingOrder
from domain.ingestion.reading import NeedsMapping, SpooledRows, StockSheet
from domain.ingestion.values.text import quoted, whole, whole_text
from domain.kernel.bounds import ROWS, SHEET_ROW_BYTES
from domain.kernel.problems import Problem, ProblemKind
from domain.mappings.proposing import TableLog
from domain.runs.chunks import slot_of
from domain.runs.model import KEPT_PROBLEMS
from domain.runs.ports import Spool
from domain.runs.sheets import Sheet, is_stock_sheet, places_of, salt_of, unkeyed
from domain.runs.usecases.relations import Kinship, Kits
from ports.codec import Codec

SAMPLES = 50
"""Number of rows of a table from which its columns are mapped."""
PUSHED = -1
"""The table number of pushed records."""
_MOST_KEYS = 50_000
"""Maximum number of keys that are counted in one pass."""

RowsLeftOut = tuple[int, int, str | None]
"""The number of rows that were left out, with line and sheet of the first."""


def weight_of(line: bytes) -> int:
    """Return the weight of a row: one for each SHEET_ROW_BYTES begun."""
    return 1 + len(line) // SHEET_ROW_BYTES


def mapping_of(table: FeedTable, head: Sequence[Row], settings: FeedSettings) -> HeaderMapping:
    """Return the mapping of the table's columns, from its connector or from the first rows."""
    if table.given is not None:
        return from_given(table.headers, table.given)
    return propose(table.headers, _texts(head), settings)


def _texts(head: Sequence[Row]) -> list[list[str]]:
    return [["" if cell is None else str(cell) for cell in cells] for _, cells in head]


@dataclass(slots=True)
class ProblemLog:
    """The problems of a run: the first thousand in full, all of them counted."""

    kept: list[Problem] = field(default_factory=list)
    total: int = 0

    @property
    def room(self) -> int:
        """Return the number of problems that can still be stored."""
        return max(0, KEPT_PROBLEMS - len(self.kept))

    def add(self, problem: Problem) -> None:
        """Add a problem."""
        self.total += 1
        if len(self.kept) < KEPT_PROBLEMS:
            self.kept.append(problem)


class Crowding:
    """Row limit per key, for buckets with more rows than one product may have; other buckets are not counted."""

    def __init__(self) -> None:
        self._weights: dict[str, int] = {}
        self._left_out: dict[str, RowsLeftOut] = {}
        self._thinned: dict[str, RowsLeftOut] = {}

    def refuses(self, key: str, weight: int) -> bool:
        """Return whether one more row exceeds the limit of its key."""
        before = self._weights.get(key)
        if before is None and len(self._weights) >= _MOST_KEYS:
            return False
        self._weights[key] = (before or 0) + weight
        return self._weights[key] > ROWS

    def leave_out(self, key: str, line: int, sheet: str | None) -> None:
        """Record that a row was left out."""
        count, first, named = self._left_out.get(key, (0, line, sheet))
        self._left_out[key] = (count + 1, first, named)

    def thin(self, key: str, rows: RowsLeftOut) -> None:
        """Record spooled rows that were removed on reading; replaces the record of an earlier reading."""
        self._thinned[key] = rows

    def problems(self, key: str) -> list[Problem]:
        """Return the problem of rows that were left out of the key, if any."""
        found = [rows[key] for rows in (self._thinned, self._left_out) if key in rows]
        if not found:
            return []
        count, (_, line, sheet) = sum(rows[0] for rows in found), found[0]
        detail = (
            f"Too much for one product: {count:,} rows of {key} were left out; at most {ROWS:,} are read, "
            f"or {ROWS * SHEET_ROW_BYTES >> 20} MiB."
        )
        return [Problem("rows", ProblemKind.TOO_LONG, detail, line, None, sheet)]


class RowSpooler:
    """Spooling of a feed's rows in the calling thread; another thread may read `rows`.

    `held` has the weight of each bucket's rows, `slots` the slots of its keys.
    """

    def __init__(self, order: ReadingOrder, codec: Codec) -> None:
        self.stream, self.rows, self._room = Stream(order.stream), 0, order.room
        self.sheets: list[Sheet] = []
        self.problems, self.crowding, self.kits, self.kin = ProblemLog(), Crowding(), Kits(), Kinship()
        self.held = [0] * order.buckets
        self._slots = [array("I") for _ in range(order.buckets)]
        self._order, self._codec, self._last_slot, self._tables = order, codec, -1, TableLog()
        self._spool: Spool | None = None

    def spool_tables(self, spool: Spool, tables: Iterator[FeedTable]) -> SpooledRows:
        """Spool the rows of all tables, and determine the relations of rows with different keys.

        Raises NeedsMapping if no table has a key column; StockSheet if the first is one and the order allows for it.
        """
        self._spool, missing, settings = spool, False, self._order.settings
        knowledge = Knowledge(self._order.known)
        for table in tables:
            head = list(islice(table.rows, SAMPLES))
            samples, given = _texts(head), table.given is not None
            mapping = mapping_of(table, head, settings)
            if not given:
                mapping = knowledge.laid_over(mapping, samples, settings)
            self._tables.add(table.sheet, mapping, samples, given=given)
            if mapping.missing:
                missing = True
                detail = "No column could be read as the item's key; the sheet was left out."
                self.problems.add(Problem("sku", ProblemKind.MISSING, detail, sheet=table.sheet))
                continue
            if self._order.may_be_stock and is_stock_sheet(mapping):
                raise StockSheet
            plan = ReadPlan(mapping, settings, sparse=not given)
            self.sheets.append(Sheet(table.sheet, plan, salt_of(mapping, settings), places_of(mapping, plan)))
            self._put_rows(len(self.sheets) - 1, chain(head, table.rows))
            if self._remaining_rows() == 0:
                break
        if missing and not self.sheets:
            read = self._tables.tables()
            raise NeedsMapping(unkeyed(read.first, self.stream), read)
        self._resolve_relations()
        return self._spooled()

    def spool_records(self, spool: Spool, parts: Iterator[Sequence[Mapping[str, Any]]]) -> SpooledRows:
        """Spool pushed records; equal records have different fingerprints if the push states complete data."""
        self._spool = spool
        salt = salt_of(None, self._order.settings) + (b" whole" if self._order.whole else b"")
        self.sheets.append(Sheet(None, None, salt))
        for record in chain.from_iterable(parts):
            self.rows += 1
            self._put(PUSHED, str(record["product"]["external_id"]), self.rows, record)
        return self._spooled()

    def entries(self, buckets: Iterable[int]) -> Iterator[tuple[int, str, int, int, bytes]]:
        """Yield spooled rows: table number, key, line, stem number of the row (0 for none) and encoded cells."""
        assert self._spool is not None
        decode = self._codec.decode
        for bucket in buckets:
            for entry in self._spool.lines(bucket):
                head, _, cells = entry.partition(b"\t")
                table, key, line, *number = decode(head)
                yield table, key, line, number[0] if number else 0, cells

    def is_absent(self, key: str) -> bool:
        """Return whether the key has rows but no product of its own: that of a part, or of an item in a group."""
        return key in self.kits.hidden or key in self.kin.keys

    def _remaining_rows(self) -> int | None:
        """Return the number of rows that may still be read; None without a limit."""
        return None if self._order.limit is None else max(0, self._order.limit - self.rows)

    def _put_rows(self, index: int, rows: Iterator[Row]) -> None:
        sheet, catalogue = self.sheets[index], self.stream == Stream.CATALOGUE
        plan, name = sheet.plan, sheet.name
        assert plan is not None
        key_of = plan.product_key if catalogue else plan.variant_key
        note = self.kits.noting(plan) if catalogue else None
        number = self.kin.noting(plan) if catalogue else None
        for line, cells in islice(rows, self._remaining_rows()):
            self.rows += 1
            key = key_of(cells)
            if key is None:
                detail = "The row names no item: no SKU, key, GTIN or MPN."
                self.problems.add(Problem("sku", ProblemKind.MISSING, detail, line=line, sheet=name))
                continue
            if is_sum(key):
                detail = f"The row of {quoted(key)} adds up others and is no item."
                self.problems.add(Problem("sku", ProblemKind.UNREADABLE, detail, line=line, sheet=name))
                continue
            try:
                if note is not None:
                    note(key, cells)
                self._put(index, key, line, cells, number(cells) if number is not None else 0)
            except UnicodeEncodeError:
                detail = "The row has halves of characters, which no text can have; each is kept as U+FFFD."
                self.problems.add(Problem("cell", ProblemKind.UNREADABLE, detail, line=line, sheet=name))
                self._put(index, whole_text(key), line, whole(cells))

    def _put(self, table: int, key: str, line: int, cells: Any, number: int = 0) -> None:
        entry, slot = self._codec.encode(cells), slot_of(key, self.stream)
        bucket, weight = slot * len(self.held) // SLOTS, weight_of(entry)
        if slot != self._last_slot:
            self._slots[bucket].append(slot)
            self._last_slot = slot
        self.held[bucket] += weight
        if self.held[bucket] > ROWS and table != PUSHED and self.crowding.refuses(key, weight):
            self.crowding.leave_out(key, line, self.sheets[table].name)
            return
        self._room -= len(entry)
        if self._room < 0:
            raise ParseFailed(
                "Read out, the feed takes very much more room than it does as a file; leave empty columns out."
            )
        self._put_entry(bucket, (table, key, line, number) if number else (table, key, line), entry)

    def _put_entry(self, bucket: int, head: tuple[Any, ...], cells: bytes) -> None:
        assert self._spool is not None
        self._spool.put(bucket, self._codec.encode(head) + b"\t" + cells)

    def _resolve_relations(self) -> None:
        """Look up the parts of sets, and spool grouped rows under one key; feeds without either cost nothing."""
        if self.kits.waiting:
            self._look_up_parts()
        if shared := self.kin.shared():
            self._group_rows(shared)
            self._respool_groups()
            for problem in self.kin.told():
                self.problems.add(problem)

    def _look_up_parts(self) -> None:
        """Store the data of parts' rows for the sets that name them."""
        found: list[Problem] = []
        for bucket in range(len(self.held)):
            by_key: dict[str, list[tuple[int, int, Any]]] = {}
            for table, key, line, _, cells in self.entries([bucket]):
                plan = self.sheets[table].plan
                if plan is not None and self.kits.seeks(plan, key):
                    by_key.setdefault(key, []).append((table, line, self._codec.decode(cells)))
            found += filter(None, (self.kits.look(self.sheets, key, lines) for key, lines in by_key.items()))
        for problem in self.kits.told(found):
            self.problems.add(problem)

    def _group_rows(self, shared: frozenset[int]) -> None:
        """Group rows that share a stem; they stay apart if spooling them again exceeds the limit."""
        size = 0
        for table, key, _, number, cells in self.entries(range(len(self.held))):
            if number in shared:
                plan = self.sheets[table].plan
                member = plan.family(self._codec.decode(cells)) if plan is not None and plan.family else None
                if member is not None:
                    self.kin.look(key, member)
                    size += len(cells)
        self.kin.settle(apart=size > self._room)

    def _respool_groups(self) -> None:
        """Spool the rows of grouped items again under the group's key."""
        family_of = self.kin.keys
        for bucket in range(len(self.held)):
            mine = [entry for entry in self.entries([bucket]) if entry[1] in family_of]
            for table, key, line, _, cells in mine:
                family = family_of[key]
                slot = slot_of(family, self.stream)
                place = slot * len(self.held) // SLOTS
                self._slots[place].append(slot)
                self.held[place] += weight_of(cells)
                self._room -= len(cells)
                self._put_entry(place, (table, family, line), cells)
        self.kits.rename(family_of)

    def _spooled(self) -> SpooledRows:
        slots, stream, sheets = array("I"), self.stream, self.sheets
        gone = {slot_of(key, stream) for key in (*self.kits.hidden, *self.kin.keys)}
        gone -= {slot_of(key, stream) for key in self.kin.families}
        for (
            bucket
        ) in self._slots:  # they follow each other as their slots do; sorting one at a time takes little memory
            slots.extend(sorted(set(bucket) - gone))
        known = [sheet.places for sheet in sheets if sheet.places is not None]
        places = frozenset[str]().union(*known) if len(known) == len(sheets) else None
        grouped = all(sheet.plan is None or sheet.plan.grouped for sheet in sheets)
        return SpooledRows(
            self.rows, self.held, slots, places, self.problems.kept, self.problems.total, self._tables.tables(), grouped
        )
