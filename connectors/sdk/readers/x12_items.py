"""Conversion of X12 stock (846) and price catalogues (832) to tables, one row an item and place, with known fields."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..context import Context
from ..errors import BadData
from ..tables import Cell, Row, Table
from .x12 import Segment, transactions
from .x12_facts import Facts, Header, Once

STOCK, PRICES = "846", "832"
_KEYS: tuple[tuple[str, str | None], ...] = (("SKU", "sku"), ("GTIN", "gtin"), ("Manufacturer number", "mpn"))
COLUMNS: dict[str, tuple[tuple[str, str | None], ...]] = {
    STOCK: (
        *_KEYS,
        ("Quantity", "quantity"),
        ("Location", "location"),
        ("Incoming quantity", "incoming.0.quantity"),
        ("Incoming date", "incoming.0.eta"),
        ("Further incoming quantity", "incoming.1.quantity"),
        ("Further incoming date", "incoming.1.eta"),
    ),
    PRICES: (
        *_KEYS,
        ("Name", "title"),
        ("Description", "description"),
        ("Colour", "colour"),
        ("Size", "axes.Size"),
        ("Currency", "currency"),
        ("Cost", "cost"),
        ("Minimum advertised price", "map"),
        ("List price", "msrp"),
        ("Weight", "weight"),
        ("Length", "dimensions.length"),
        ("Width", "dimensions.width"),
        ("Depth", "dimensions.depth"),
        ("Height", "dimensions.height"),
        ("Package weight", "cartons.0.weight"),
        ("Package length", "cartons.0.depth"),
        ("Package width", "cartons.0.width"),
        ("Package height", "cartons.0.height"),
    ),
}
_MOST_SEGMENTS = 20_000
"""Segments of one item."""


def tables(ctx: Context, path: Path) -> Iterator[Table]:
    """Yield a table for each supported kind of transaction in the file; report the others. Raises BadData."""
    kinds: dict[str, None] = {}
    for kind, segment in transactions(path, lambda _: None):
        if segment.name == "ST":
            kinds[kind] = None
    found = [kind for kind in (PRICES, STOCK) if kind in kinds]
    if not found:
        raise BadData(f"the interchange holds no price catalogue (832) and no stock (846), only {_listed(list(kinds))}")
    once = Once(ctx.report)
    if others := [kind for kind in kinds if kind not in COLUMNS]:
        once.tell(f"transactions {_listed(others)} are not read; 832 and 846 are")
    for place, kind in enumerate(found):
        columns = COLUMNS[kind]
        yield Table(
            sheet=kind if len(found) > 1 else None,
            headers=tuple(header for header, _ in columns),
            rows=_rows(ctx, path, kind, once, first=place == 0),
            given=tuple(field for _, field in columns),
        )


def _listed(kinds: Sequence[str]) -> str:
    return ", ".join(repr(kind[:10]) for kind in kinds[:10]) or "nothing"


def _rows(ctx: Context, path: Path, kind: str, once: Once, *, first: bool) -> Iterator[Row]:
    """Yield the rows of one kind's transactions; the first pass through the file reports envelope errors."""
    header, item, counted = Header(), list[Segment](), 0
    for transaction_kind, segment in transactions(path, ctx.report if first else lambda _: None):
        if transaction_kind != kind:
            continue
        if segment.name in {"LIN", "CTT", "SE"}:
            yield from _item(kind, item, header, once)
            item = []
        if segment.name == "ST":
            header, counted = Header(), 0
        elif segment.name == "LIN":
            counted += 1
            item = [segment]
        elif segment.name == "CTT" and segment.at(1).isdecimal() and int(segment.at(1)[:9]) != counted:
            once.tell(f"CTT counts {segment.at(1)[:9]} items, {counted} were received", segment.number)
        elif item:
            item.append(segment)
            if len(item) > _MOST_SEGMENTS:
                raise BadData(f"the item at segment {item[0].number} has more than {_MOST_SEGMENTS:,} segments")
        elif segment.name not in {"CTT", "SE"}:
            header.take(segment)


def _item(kind: str, segments: list[Segment], header: Header, once: Once) -> Iterator[Row]:
    """Yield the rows of one item: one for a catalogue, one for each place for stock."""
    if not segments:
        return
    facts = Facts(header, once)
    for segment in segments:
        facts.take(segment)
    line = segments[0].number
    if kind == PRICES:
        yield line, [facts.cells.get(column) for column, _ in COLUMNS[PRICES]]
        return
    keys: list[Cell] = [facts.cells.get(column) for column, _ in _KEYS]
    for place in facts.places():
        arrivals = list(chain.from_iterable(place.arrivals[:2]))
        if len(place.arrivals) > 2:
            once.tell("of more than two arrivals of an item the first two are read", line)
        yield line, [*keys, place.available(), place.name, *arrivals, *[None] * (4 - len(arrivals))]
