"""From a snapshot's tables to rows put aside by chunk, each under its key (pipeline stages parse and map)."""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice
from typing import Any, Final
from zlib import crc32

from domain.catalogue.batch import SLOTS
from domain.ingestion.columns.plan import ReadPlan, compile_plan
from domain.ingestion.mapping.proposal import from_given, propose
from domain.ingestion.model import FeedSettings, FeedTable, HeaderMapping, Row
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.model import KEPT_PROBLEMS
from ports.codec import Codec
from ports.spool import Spool

SAMPLES: Final = 50
CHUNK_ROWS: Final = {"catalogue": 3_000, "stock": 6_000}
"""About how many rows one transaction stores: enough for sets to pay, few enough for memory and for the event horizon."""
READING_VERSION: Final = b"1"
"""Part of every fingerprint: raising it makes each source's next run normalise everything anew."""
_FINE: Final = 0xFFF
PUSHED: Final = -1
"""The table number of pushed records, which are no rows."""


class NeedsMapping(Exception):
    """No table of the feed says which column names the item; a person must map the columns."""


class StockSheet(Exception):
    """The file states stock of items that the catalogue knows, and nothing about the items themselves."""


class Interrupted(Exception):
    """The worker was told to stop while it read."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """One table of the feed: its name, what its columns mean, and the salt of its rows' fingerprints.

    `places` are the locations that its columns can state offers at; None where the rows themselves name them.
    """

    name: str | None
    plan: ReadPlan | None
    salt: bytes
    places: frozenset[str] | None = None


@dataclass(slots=True)
class Findings:
    """Problems of a run: the first thousand word by word, all of them counted."""

    kept: list[Problem] = field(default_factory=list)
    total: int = 0

    def add(self, problem: Problem) -> None:
        """Note one."""
        self.total += 1
        if len(self.kept) < KEPT_PROBLEMS:
            self.kept.append(problem)


@dataclass(slots=True)
class Reading:
    """What was read so far; another thread may look at the counts.

    Rows are put aside in `buckets` by a hash of their key; buckets that follow each other make up a chunk.
    """

    buckets: int
    stream: str = "catalogue"
    sheets: list[Sheet] = field(default_factory=list)
    rows: int = 0
    findings: Findings = field(default_factory=Findings)
    slots: "array[int]" = field(default_factory=lambda: array("I"))
    held: list[int] = field(default_factory=list)
    stop: bool = False

    def __post_init__(self) -> None:
        """No bucket holds anything yet."""
        self.held = [0] * self.buckets

    def close(self) -> None:
        """Reading is over: from now on `has` can tell what was read."""
        self.slots = array("I", sorted(self.slots))

    def places(self) -> frozenset[str] | None:
        """The locations that all sheets together can state offers at; None where that is not known beforehand."""
        places: set[str] = set()
        for sheet in self.sheets:
            if sheet.places is None:
                return None
            places |= sheet.places
        return frozenset(places)

    def chunks(self) -> list[range]:
        """Buckets taken together until they hold CHUNK_ROWS rows; at least one chunk, if only to find what is absent."""
        chunks, first, rows = [], 0, 0
        for bucket, held in enumerate(self.held):
            rows += held
            if rows >= CHUNK_ROWS[self.stream]:
                chunks.append(range(first, bucket + 1))
                first, rows = bucket + 1, 0
        if first < self.buckets:
            chunks.append(range(first, self.buckets))
        return chunks

    def has(self, key: str) -> bool:
        """Whether the feed names the key (told by its slot, so one key in two thousand million is mistaken)."""
        slot = slot_of(key)
        place = bisect_left(self.slots, slot)
        return place < len(self.slots) and self.slots[place] == slot


def slot_of(key: str, stream: str = "catalogue") -> int:
    """The slot of a key: a hash below SLOTS.

    Stock is keyed by item, and items of one product mostly differ in the last two characters of their SKU: a hash that
    puts these together has one chunk touch a product once (measured: a third of the time a stock sheet takes).
    """
    if stream == "catalogue":
        return crc32(key.encode()) >> 1
    return crc32(key[:-2].encode()) >> 1 & ~_FINE | crc32(key.encode()) & _FINE


def key_range_of(chunk: range, buckets: int) -> tuple[int, int]:
    """The slots of a chunk of so many buckets in all: from the first to below the second."""
    return -(-chunk.start * SLOTS // buckets), -(-chunk.stop * SLOTS // buckets)


def salt_of(mapping: HeaderMapping | None, context: FeedSettings) -> bytes:
    """Tells one way of reading rows from another, so that a changed mapping or setting counts as a change."""
    columns = [(c.position, c.column, c.field, sorted(c.settings.items())) for c in mapping.columns] if mapping else []
    return blake2b(repr((READING_VERSION, columns, context)).encode(), digest_size=16).digest()


def places_of(mapping: HeaderMapping, plan: ReadPlan) -> frozenset[str] | None:
    """The locations that the columns speak of; None where a column of its own names each row's."""
    if any(column.field == "location" for column in mapping.columns):
        return None
    named = {str(column.settings["location"]) for column in mapping.columns if "location" in column.settings}
    return frozenset({*named, plan.location})


def is_stock_sheet(mapping: HeaderMapping) -> bool:
    """Whether the columns state stock and give the items no name."""
    fields = {column.field for column in mapping.columns}
    return bool(fields & {"quantity", "availability"}) and not fields & {"title", "description", "variant_title"}


class Reader:
    """Reads tables into a spool, in the calling thread."""

    def __init__(
        self, codec: Codec, spool: Spool, context: FeedSettings, reading: Reading, *, may_be_stock: bool = False
    ) -> None:
        self._may_be_stock = may_be_stock
        self._last_slot = -1
        self._codec = codec
        self._spool = spool
        self._context = context
        self._reading = reading

    def tables(self, tables: Iterator[FeedTable]) -> None:
        """Read every table.

        Raises NeedsMapping when none can be keyed, StockSheet when the first is one (and the reader was told that it may
        be), Interrupted when told to stop.
        """
        missing: list[str] = []
        for table in tables:
            head = list(islice(table.rows, SAMPLES))
            mapping = self._mapping(table, head)
            if mapping.missing:
                missing.append(table.sheet or "the file")
                self._without_key(table, mapping)
                continue
            if self._may_be_stock and is_stock_sheet(mapping):
                raise StockSheet
            plan = compile_plan(mapping, self._context)
            sheet = Sheet(table.sheet, plan, salt_of(mapping, self._context), places_of(mapping, plan))
            self._reading.sheets.append(sheet)
            self._rows(len(self._reading.sheets) - 1, plan, chain(head, table.rows))
        if missing and not self._reading.sheets:
            raise NeedsMapping(
                f"No column of {', '.join(missing)} could be read as the item's SKU, key, GTIN or MPN"
                + (" with a price or quantity." if self._context.stream == "stock" else ".")
            )

    def records(self, parts: Iterator[Sequence[Mapping[str, Any]]]) -> None:
        """Read pushed records."""
        self._reading.sheets.append(Sheet(None, None, salt_of(None, self._context)))
        for part in parts:
            for record in part:
                self._reading.rows += 1
                self._keep(PUSHED, str(record["product"]["external_id"]), self._reading.rows, record)

    def _mapping(self, table: FeedTable, head: Sequence[Row]) -> HeaderMapping:
        if table.given is not None:
            return from_given(table.headers, table.given)
        samples = [["" if cell is None else str(cell) for cell in cells] for _, cells in head]
        return propose(table.headers, samples, self._context)

    def _without_key(self, table: FeedTable, mapping: HeaderMapping) -> None:
        detail = "No column could be read as the item's key; the sheet was left out."
        self._reading.findings.add(Problem("sku", ProblemKind.MISSING, detail, sheet=table.sheet))

    def _rows(self, index: int, plan: ReadPlan, rows: Iterator[Row]) -> None:
        """The hot loop: key, chunk, put aside."""
        reading, name = self._reading, self._reading.sheets[index].name
        key_of: Callable[[Sequence[Any]], str | None]
        key_of = plan.product_key if self._context.stream == "catalogue" else plan.variant_key
        for line, cells in rows:
            reading.rows += 1
            key = key_of(cells)
            if key is None:
                detail = "The row names no item: no SKU, key, GTIN or MPN."
                reading.findings.add(Problem("sku", ProblemKind.MISSING, detail, line=line, sheet=name))
            else:
                self._keep(index, key, line, cells)
            if reading.stop:
                raise Interrupted

    def _keep(self, table: int, key: str, line: int, cells: Any) -> None:
        encode, slot = self._codec.encode, slot_of(key, self._context.stream)
        if slot != self._last_slot:
            self._reading.slots.append(slot)
            self._last_slot = slot
        bucket = slot * self._reading.buckets // SLOTS
        self._reading.held[bucket] += 1
        self._spool.put(bucket, encode((table, key, line)) + b"\t" + encode(cells))
