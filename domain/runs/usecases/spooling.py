"""From a snapshot's tables to rows put aside by bucket, each under its key (pipeline stages parse and map)."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final

from domain.catalogue.batch import SLOTS
from domain.catalogue.model import Stream
from domain.ingestion.columns.plan import ReadPlan, is_sum
from domain.ingestion.mapping.learned import Knowledge
from domain.ingestion.mapping.proposal import from_given, propose
from domain.ingestion.model import FeedSettings, FeedTable, HeaderMapping, Row
from domain.ingestion.ports import ParseFailed
from domain.ingestion.reading import NeedsMapping, SpooledRows, StockSheet
from domain.ingestion.values.text import quoted, whole, whole_text
from domain.kernel.bounds import ROWS
from domain.kernel.problems import Problem, ProblemKind
from domain.mappings.proposing import TableLog
from domain.runs.chunks import slot_of
from domain.runs.crowding import Crowding, weight_of
from domain.runs.model import KEPT_PROBLEMS
from domain.runs.ports import Spool
from domain.runs.sheets import Sheet, is_stock_sheet, places_of, salt_of, unkeyed
from domain.runs.usecases.kinship import Kinship
from domain.runs.usecases.kitting import Kits
from ports.codec import Codec

SAMPLES: Final = 50
PUSHED: Final = -1
"""The table number of pushed records, which are no rows."""


@dataclass(slots=True)
class ProblemLog:
    """Problems of a run: the first thousand word by word, all of them counted."""

    kept: list[Problem] = field(default_factory=list)
    total: int = 0

    @property
    def room(self) -> int:
        """How many more are kept word by word."""
        return max(0, KEPT_PROBLEMS - len(self.kept))

    def add(self, problem: Problem) -> None:
        """Note one."""
        self.total += 1
        if len(self.kept) < KEPT_PROBLEMS:
            self.kept.append(problem)


@dataclass(slots=True)
class Spooling:
    """What of a feed is put aside so far; another thread may look at the counts.

    Rows are put aside in `buckets`, while there is `room` (bytes) by a hash of their key; `held` counts the rows of each, long ones several times.
    """

    buckets: int
    stream: Stream = Stream.CATALOGUE
    sheets: list[Sheet] = field(default_factory=list)
    rows: int = 0
    problems: ProblemLog = field(default_factory=ProblemLog)
    slots: "list[array[int]]" = field(default_factory=list)
    held: list[int] = field(default_factory=list)
    room: int = 1 << 30
    crowding: Crowding = field(default_factory=Crowding)
    tables: TableLog = field(default_factory=TableLog)
    kits: Kits = field(default_factory=Kits)
    kin: Kinship = field(default_factory=Kinship)

    def __post_init__(self) -> None:
        """No bucket holds anything yet."""
        self.held = [0] * self.buckets
        self.slots = [array("I") for _ in range(self.buckets)]

    def places(self) -> frozenset[str] | None:
        """The locations that all sheets together can state offers at; None where that is not known beforehand."""
        places: set[str] = set()
        for sheet in self.sheets:
            if sheet.places is None:
                return None
            places |= sheet.places
        return frozenset(places)

    def is_absent(self, key: str) -> bool:
        """Whether rows were put aside under a key that is no product's: a part's, or that of an item of a family."""
        return key in self.kits.hidden or key in self.kin.keys

    def spooled(self) -> SpooledRows:
        """What was put aside, once reading is over."""
        slots, problems = array("I"), self.problems
        gone = {slot_of(key, self.stream) for key in (*self.kits.hidden, *self.kin.keys)}
        gone -= {slot_of(key, self.stream) for key in self.kin.families}
        for bucket in self.slots:  # they follow each other as their slots do; sorting one at a time takes little memory
            slots.extend(sorted(set(bucket) - gone))
        tables = self.tables.tables()
        grouped = all(sheet.plan is None or sheet.plan.grouped for sheet in self.sheets)
        return SpooledRows(self.rows, self.held, slots, self.places(), problems.kept, problems.total, tables, grouped)


def samples_of(head: Sequence[Row]) -> list[list[str]]:
    """The cells of a table's first rows as texts, as a mapping is proposed by them."""
    return [["" if cell is None else str(cell) for cell in cells] for _, cells in head]


def mapping_of(table: FeedTable, head: Sequence[Row], settings: FeedSettings) -> HeaderMapping:
    """What the table's columns mean, by the first rows, or as its connector says."""
    if table.given is not None:
        return from_given(table.headers, table.given)
    return propose(table.headers, samples_of(head), settings)


class RowSpooler:
    """Puts the rows of tables aside in a spool, in the calling thread."""

    def __init__(
        self,
        codec: Codec,
        spool: Spool,
        context: FeedSettings,
        feed: Spooling,
        knowledge: Knowledge | None = None,
        limit: int | None = None,
    ) -> None:
        self._limit = limit
        self._last_slot = -1
        self._knowledge = knowledge or Knowledge()
        self._codec = codec
        self._spool = spool
        self._context = context
        self._feed = feed

    def tables(self, tables: Iterator[FeedTable], *, may_be_stock: bool = False) -> None:
        """Every table's rows.

        Raises NeedsMapping when none can be keyed, StockSheet when the first is one (and `may_be_stock`).
        """
        missing = False
        for table in tables:
            head = list(islice(table.rows, SAMPLES))
            mapping = self._mapping(table, head)
            if mapping.missing:
                missing = True
                self._without_key(table, mapping)
                continue
            if may_be_stock and is_stock_sheet(mapping):
                raise StockSheet
            plan = ReadPlan(mapping, self._context, sparse=table.given is None)
            sheet = Sheet(table.sheet, plan, salt_of(mapping, self._context), places_of(mapping, plan))
            self._feed.sheets.append(sheet)
            self._rows(len(self._feed.sheets) - 1, plan, chain(head, table.rows))
            if self._left() == 0:
                break
        if missing and not self._feed.sheets:
            read = self._feed.tables.tables()
            raise NeedsMapping(unkeyed(read.first, self._feed.stream), read)

    def records(self, parts: Iterator[Sequence[Mapping[str, Any]]], *, whole: bool) -> None:
        """Pushed records; the same ones mean something else where they state everything."""
        salt = salt_of(None, self._context) + (b" whole" if whole else b"")
        self._feed.sheets.append(Sheet(None, None, salt))
        for part in parts:
            for record in part:
                self._feed.rows += 1
                self._keep(PUSHED, str(record["product"]["external_id"]), self._feed.rows, record)

    def _mapping(self, table: FeedTable, head: Sequence[Row]) -> HeaderMapping:
        """What the table's columns mean: as its connector says, or as is proposed but for what people have confirmed."""
        if table.given is not None:
            given = from_given(table.headers, table.given)
            self._feed.tables.add(table.sheet, given, (), given=True)
            return given
        samples = samples_of(head)
        proposed = propose(table.headers, samples, self._context)
        mapping = self._knowledge.laid_over(proposed, samples, self._context)
        self._feed.tables.add(table.sheet, mapping, samples, given=False)
        return mapping

    def _left(self) -> int | None:
        """How many rows may still be read; None when all."""
        return None if self._limit is None else max(0, self._limit - self._feed.rows)

    def _without_key(self, table: FeedTable, mapping: HeaderMapping) -> None:
        detail = "No column could be read as the item's key; the sheet was left out."
        self._feed.problems.add(Problem("sku", ProblemKind.MISSING, detail, sheet=table.sheet))

    def _rows(self, index: int, plan: ReadPlan, rows: Iterator[Row]) -> None:
        """The hot loop: key, chunk, put aside."""
        feed, name = self._feed, self._feed.sheets[index].name
        key_of: Callable[[Sequence[Any]], str | None]
        catalogue = self._feed.stream == Stream.CATALOGUE
        key_of = plan.product_key if catalogue else plan.variant_key
        note = feed.kits.noting(plan) if catalogue else None
        number = feed.kin.noting(plan) if catalogue else None
        for line, cells in islice(rows, self._left()):
            feed.rows += 1
            key = key_of(cells)
            if key is None:
                detail = "The row names no item: no SKU, key, GTIN or MPN."
                feed.problems.add(Problem("sku", ProblemKind.MISSING, detail, line=line, sheet=name))
                continue
            if is_sum(key):
                detail = f"The row of {quoted(key)} adds up others and is no item."
                feed.problems.add(Problem("sku", ProblemKind.UNREADABLE, detail, line=line, sheet=name))
                continue
            try:
                if note is not None:
                    note(key, cells)
                self._keep(index, key, line, cells, number(cells) if number is not None else 0)
            except UnicodeEncodeError:
                self._broken(index, key, line, cells)

    def _broken(self, index: int, key: str, line: int, cells: Any) -> None:
        """A row with half of a character: they become U+FFFD, and that is told."""
        detail = "The row has halves of characters, which no text can have; each is kept as U+FFFD."
        sheet = self._feed.sheets[index].name
        self._feed.problems.add(Problem("cell", ProblemKind.UNREADABLE, detail, line=line, sheet=sheet))
        self._keep(index, whole_text(key), line, whole(cells))

    def _keep(self, table: int, key: str, line: int, cells: Any, number: int = 0) -> None:
        feed, encode, slot = self._feed, self._codec.encode, slot_of(key, self._feed.stream)
        bucket = slot * feed.buckets // SLOTS
        if slot != self._last_slot:
            feed.slots[bucket].append(slot)
            self._last_slot = slot
        entry = encode(cells)
        weight = weight_of(entry)
        feed.held[bucket] += weight
        if feed.held[bucket] > ROWS and table != PUSHED and feed.crowding.refuses(key, weight):
            feed.crowding.leave_out(key, line, feed.sheets[table].name)
            return
        feed.room -= len(entry)
        if feed.room < 0:
            raise ParseFailed(
                "Read out, the feed takes very much more room than it does as a file; leave empty columns out."
            )
        head = (table, key, line, number) if number else (table, key, line)
        self._spool.put(bucket, encode(head) + b"\t" + entry)
