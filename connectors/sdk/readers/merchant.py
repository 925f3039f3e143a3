"""Reader of Google Merchant feeds (RSS, Atom, tables); the published attributes need no column mapping."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..context import Context
from ..tables import Cell, Report, Row, Table
from .records import Record, table_of

ATTRIBUTES: Mapping[str, str | None] = {
    "id": "variant_key",
    "item_group_id": "product_key",
    "title": "title",
    "description": "description",
    "brand": "brand",
    "gtin": "gtin",
    "mpn": "mpn",
    "product_type": "category_path",
    "google_product_category": "google_category",
    "color": "colour",
    "material": "materials",
    "size": "axes.Size",
    "pattern": "axes.Pattern",
    "image_link": "media.hero",
    "additional_image_link": "media",
    "lifestyle_image_link": "media",
    "price": "price",
    "sale_price": "sale_price",
    "sale_price_effective_date": None,
    "cost_of_goods_sold": "cost",
    "maximum_retail_price": "msrp",
    "availability": "availability",
    "availability_date": "incoming.0.eta",
    "quantity": "quantity",
    "max_handling_time": "lead_time_days@unit=days",
    "product_weight": "weight",
    "product_length": "dimensions.length",
    "product_width": "dimensions.width",
    "product_height": "dimensions.height",
    "shipping_weight": "cartons.0.weight",
    "shipping_length": "cartons.0.depth",
    "shipping_width": "cartons.0.width",
    "shipping_height": "cartons.0.height",
    "product_highlight": "features",
    "product_detail": "features",
}
"""Attributes of the product data specification with a field of their own. What ships is a package, not the product."""
_OTHER_NAMES = {"summary": "description", "colour": "color", "sell_on_google_quantity": "quantity"}
_SURE = frozenset({"id", "title", "price", "availability"})
_SURE_IN_TABLES = _SURE | {"link", "image_link"}
_NAMESPACE = b"http://base.google.com/ns/1.0"
_HEAD = 64 * 1024
_FORMATS = frozenset({None, "google_merchant"})
_SKU = "SKU (id and mpn agree)"


def is_announced(path: Path, config: Mapping[str, Any]) -> bool:
    """Return whether an XML file is a Merchant feed, by config.format or, without one, by Google's namespace."""
    chosen = config.get("format")
    if chosen not in _FORMATS:
        return False
    with path.open("rb") as file:
        return chosen is not None or _NAMESPACE in file.read(_HEAD)


def table(records: Iterator[Record], ctx: Context) -> Table:
    """Return the table of an XML feed's items. Raises BadData if there are none."""
    named = ((number, _named(record)) for number, record in records)
    return known(table_of(named, ctx, variants_path="", always=ATTRIBUTES), ctx, _SURE)


def _named(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item by its attributes' names; a single detail stays one object instead of a column for each part."""
    named = {_attribute(name): value for name, value in record.items()}
    if isinstance(named.get("product_detail"), dict):
        named["product_detail"] = [named["product_detail"]]
    return named


def known(table: Table, ctx: Context, sure: frozenset[str] = _SURE_IN_TABLES) -> Table:
    """Return the table with the fields of its columns if they are those of a Merchant feed, else as it is."""
    names = [_attribute(header) for header in table.headers]
    is_chosen = ctx.config.get("format") == "google_merchant"
    if not (sure <= set(names) or (is_chosen and "id" in names)) or (
        not is_chosen and ctx.config.get("format") == "xml"
    ):
        return table
    rules = _Rules(names, table, ctx)
    return Table(
        sheet=table.sheet,
        headers=(*table.headers, _SKU),
        rows=(rules.row(row) for row in table.rows),
        given=(*(ATTRIBUTES.get(name) for name in names), "sku"),
    )


def _attribute(header: str) -> str:
    """Return an attribute's name as specified: `g:image_link` and `Image Link` become `image_link`."""
    name = header.strip().lower().removeprefix("g:").replace(" ", "_").replace("-", "_")
    return _OTHER_NAMES.get(name, name)


class _Rules:
    """Conversions of the cells of some attributes, by position in a row."""

    def __init__(self, names: Sequence[str], table: Table, ctx: Context) -> None:
        self._at = {name: place for place, name in reversed(list(enumerate(names)))}
        self._headers = table.headers
        self._ctx = ctx
        self._now = ctx.now()
        self._reported: set[str] = set()
        cells: dict[str, Callable[[Cell], Cell]] = {
            "product_type": lambda cell: self._first("product_type", cell),
            "google_product_category": lambda cell: self._first("google_product_category", cell),
            "product_detail": _details,
            "material": _joined,
        }
        self._cells = [(self._at[name], mend) for name, mend in cells.items() if name in self._at]

    def row(self, row: Row) -> Row:
        """Return the row with one more cell: the ID, if the MPN equals it."""
        line, cells = row
        for place, mend in self._cells:
            cells[place] = mend(cells[place])
        self._judge_sale(line, cells)
        own, maker = self._text("id", cells), self._text("mpn", cells)
        return line, [*cells, own if own and own == maker else None]

    def _text(self, name: str, cells: list[Cell]) -> str:
        place = self._at.get(name)
        return "" if place is None else str(cells[place] or "").strip()

    def _judge_sale(self, line: int, cells: list[Cell]) -> None:
        """Remove a sale price outside its period, or with an unreadable period."""
        span, place = self._text("sale_price_effective_date", cells), self._at.get("sale_price")
        if not span or place is None or not cells[place]:
            return
        within = _within(span, self._now)
        if within:
            return
        cells[place] = None
        if within is None:
            detail = "the time of the sale cannot be read, so that the sale price is left out"
            self._ctx.report(Report(detail, line, "sale_price_effective_date"))

    def _first(self, name: str, cell: Cell) -> Cell:
        """Return the first of several values, as Google does, and report the attribute once."""
        if not isinstance(cell, list):
            return cell
        if name not in self._reported:
            self._reported.add(name)
            self._ctx.report(Report(f"items have more than one {name}; the first of each is read", None, name))
        return next((value for value in cell if isinstance(value, str)), None)


def _joined(cell: Cell) -> Cell:
    """Join materials that came as several elements into one text."""
    return "/".join(str(value) for value in cell) if isinstance(cell, list) else cell


def _details(cell: Cell) -> Cell:
    """Return further details as texts (`Seat: Height: 18 in`), from elements of section, name and value or from text."""
    values = cell if isinstance(cell, list) else [cell]
    texts = [text for value in values if (text := _detail(value))]
    return texts or None


def _detail(value: object) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if not isinstance(value, dict):
        return None
    parts = [value.get(name) for name in ("section_name", "attribute_name", "attribute_value")]
    return ": ".join(str(part).strip() for part in parts if isinstance(part, (str, int)) and str(part).strip()) or None


def _within(span: str, now: datetime) -> bool | None:
    """Return whether the time is in an ISO 8601 span (`2026-11-01T00:00-0800/2026-12-01`), or None for an invalid one."""
    first, slash, last = span.partition("/")
    if not slash:
        return None
    try:
        begin, end = (datetime.fromisoformat(text.strip()) for text in (first, last))
    except ValueError:
        return None
    begin, end = (moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in (begin, end))
    return begin <= now <= end
