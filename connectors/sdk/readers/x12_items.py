"""Conversion of X12 inventory advice (846) and price catalogues (832) to tables with known fields."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

from ..context import Context
from ..errors import BadData
from ..tables import Cell, Row, Table
from .x12 import Segment, iterate_transaction_segments
from .x12_cells import OnceReporter, TransactionHeader, X12ItemCells

STOCK, PRICES = "846", "832"
_KEY_COLUMNS: tuple[tuple[str, str | None], ...] = (("SKU", "sku"), ("GTIN", "gtin"), ("Manufacturer number", "mpn"))
COLUMNS: dict[str, tuple[tuple[str, str | None], ...]] = {
    STOCK: (
        *_KEY_COLUMNS,
        ("Quantity", "quantity"),
        ("Location", "location"),
        ("Incoming quantity", "incoming.0.quantity"),
        ("Incoming date", "incoming.0.eta"),
        ("Further incoming quantity", "incoming.1.quantity"),
        ("Further incoming date", "incoming.1.eta"),
    ),
    PRICES: (
        *_KEY_COLUMNS,
        ("Name", "title"),
        ("Description", "description"),
        ("Colour", "colour"),
        ("Size", "axes.Size"),
        ("Currency", "currency"),
        ("Cost", "cost"),
        ("Minimum advertised price", "map"),
        ("List price", "msrp"),
        ("Price", "price"),
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
_MAX_SEGMENTS = 20_000
"""Maximum number of segments of one item."""


def read_x12_tables(ctx: Context, path: Path) -> Iterator[Table]:
    """Yield one table per supported transaction set (832, 846) in the file; report others. Raises BadData."""
    kinds: dict[str, None] = {}
    for kind, segment in iterate_transaction_segments(path, lambda _: None):
        if segment.name == "ST":
            kinds[kind] = None
    found = [kind for kind in (PRICES, STOCK) if kind in kinds]
    if not found:
        raise BadData(
            f"the interchange contains neither a price catalogue (832) nor stock (846), only {_join_kinds(list(kinds))}"
        )
    once = OnceReporter(ctx.report)
    if others := [kind for kind in kinds if kind not in COLUMNS]:
        once.report_once(f"transactions {_join_kinds(others)} are ignored; only 832 and 846 are read")
    for index, kind in enumerate(found):
        columns = COLUMNS[kind]
        yield Table(
            sheet=kind if len(found) > 1 else None,
            headers=tuple(header for header, _ in columns),
            rows=_iterate_rows(ctx, path, kind, once, is_first_pass=index == 0),
            fields=tuple(field for _, field in columns),
        )


def _join_kinds(kinds: Sequence[str]) -> str:
    return ", ".join(repr(kind[:10]) for kind in kinds[:10]) or "nothing"


def _iterate_rows(ctx: Context, path: Path, kind: str, reporter: OnceReporter, *, is_first_pass: bool) -> Iterator[Row]:
    """Yield the rows of all transaction sets with the code `kind`, such as `846`.

    The file is read once per code. Only the first pass (`is_first_pass`) reports faults of envelopes.
    """
    header, item, counted = TransactionHeader(), list[Segment](), 0
    for transaction_kind, segment in iterate_transaction_segments(
        path, ctx.report if is_first_pass else lambda _: None
    ):
        if transaction_kind != kind:
            continue
        if segment.name in {"LIN", "CTT", "SE"}:
            yield from _iterate_item_rows(kind, item, header, reporter)
            item = []
        if segment.name == "ST":
            header, counted = TransactionHeader(), 0
        elif segment.name == "LIN":
            counted += 1
            item = [segment]
        elif (
            segment.name == "CTT" and segment.get_element(1).isdecimal() and int(segment.get_element(1)[:9]) != counted
        ):
            reporter.report_once(
                f"CTT counts {segment.get_element(1)[:9]} items, but {counted} were received", segment.number
            )
        elif item:
            item.append(segment)
            if len(item) > _MAX_SEGMENTS:
                raise BadData(f"the item at segment {item[0].number} has more than {_MAX_SEGMENTS:,} segments")
        elif segment.name not in {"CTT", "SE"}:
            header.read_segment(segment)


def _iterate_item_rows(
    kind: str, segments: list[Segment], header: TransactionHeader, reporter: OnceReporter
) -> Iterator[Row]:
    """Yield the rows of one item: one row for a price catalogue, one row per location for stock."""
    if not segments:
        return
    item_cells = X12ItemCells(header, reporter)
    for segment in segments:
        item_cells.read_segment(segment)
    line = segments[0].number
    if kind == PRICES:
        yield line, [item_cells.cells.get(column) for column, _ in COLUMNS[PRICES]]
        return
    keys: list[Cell] = [item_cells.cells.get(column) for column, _ in _KEY_COLUMNS]
    for location in item_cells.list_locations():
        arrivals = list(chain.from_iterable(location.arrivals[:2]))
        if len(location.arrivals) > 2:
            reporter.report_once(
                "an item has more than two incoming quantities at one location; the first two are used", line
            )
        yield line, [*keys, location.find_available_quantity(), location.name, *arrivals, *[None] * (4 - len(arrivals))]
