"""Reader of Google Merchant feeds (RSS, Atom, tables), whose columns are known and therefore need no column mapping."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..context import Context
from ..tables import Cell, Report, Row, Table
from .records import Record, build_records_table

FIELD_BY_ATTRIBUTE: Mapping[str, str | None] = {
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
"""Field of each attribute of Google's product data specification; None for an attribute without a field.

The shipping attributes describe the package.
"""
_OTHER_NAMES = {"summary": "description", "colour": "color", "sell_on_google_quantity": "quantity"}
_CHARACTERISTIC = frozenset({"id", "title", "price", "availability"})
_CHARACTERISTIC_IN_TABLES = _CHARACTERISTIC | {"link", "image_link"}
_NAMESPACE = b"http://base.google.com/ns/1.0"
_HEAD_BYTES = 64 * 1024
_FORMATS = frozenset({None, "google_merchant"})
_SKU_COLUMN = "SKU (id and mpn agree)"


def is_merchant_feed(path: Path, config: Mapping[str, Any]) -> bool:
    """Return whether an XML file is a Merchant feed, by the setting `format` or else by Google's XML namespace."""
    chosen = config.get("format")
    if chosen not in _FORMATS:
        return False
    with path.open("rb") as file:
        return chosen is not None or _NAMESPACE in file.read(_HEAD_BYTES)


def build_merchant_table(records: Iterator[Record], ctx: Context) -> Table:
    """Return the table of the items of a Merchant feed in XML. Raises BadData if there are no items."""
    named = ((number, _rename_keys(record)) for number, record in records)
    return apply_merchant_fields(
        build_records_table(named, ctx, variants_path="", fixed_headers=FIELD_BY_ATTRIBUTE), ctx, _CHARACTERISTIC
    )


def _rename_keys(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item with the specification's attribute names as keys, and with `product_detail` always as a list."""
    # A single detail that is not in a list would become one column per member.
    named = {_normalise_attribute(name): value for name, value in record.items()}
    if isinstance(named.get("product_detail"), dict):
        named["product_detail"] = [named["product_detail"]]
    return named


def apply_merchant_fields(
    table: Table, ctx: Context, required_attributes: frozenset[str] = _CHARACTERISTIC_IN_TABLES
) -> Table:
    """Return a table of a Merchant feed with fields for the columns; return any other table unchanged.

    A table is a Merchant feed if its headers contain all attributes in `required_attributes`, or if the setting `format` states so.
    """
    names = [_normalise_attribute(header) for header in table.headers]
    is_chosen = ctx.config.get("format") == "google_merchant"
    if not (required_attributes <= set(names) or (is_chosen and "id" in names)) or (
        not is_chosen and ctx.config.get("format") == "xml"
    ):
        return table
    rules = _CellConverter(names, table, ctx)
    return Table(
        sheet=table.sheet,
        headers=(*table.headers, _SKU_COLUMN),
        rows=(rules.convert_row(row) for row in table.rows),
        fields=(*(FIELD_BY_ATTRIBUTE.get(name) for name in names), "sku"),
    )


def _normalise_attribute(header: str) -> str:
    """Return the specification's name of an attribute: `image_link` for the headers `g:image_link` and `Image Link`."""
    name = header.strip().lower().removeprefix("g:").replace(" ", "_").replace("-", "_")
    return _OTHER_NAMES.get(name, name)


class _CellConverter:
    """Converter of rows of a Merchant feed to cells as Joinery's fields expect them."""

    def __init__(self, names: Sequence[str], table: Table, ctx: Context) -> None:
        self._index_by_name = {name: index for index, name in reversed(list(enumerate(names)))}
        self._headers = table.headers
        self._ctx = ctx
        self._now = ctx.now()
        self._reported: set[str] = set()
        converters: dict[str, Callable[[Cell], Cell]] = {
            "product_type": lambda cell: self._take_first("product_type", cell),
            "google_product_category": lambda cell: self._take_first("google_product_category", cell),
            "product_detail": _convert_details,
            "material": _join_values,
        }
        self._converters = [
            (self._index_by_name[name], convert) for name, convert in converters.items() if name in self._index_by_name
        ]

    def convert_row(self, row: Row) -> Row:
        """Return the converted row with an additional SKU cell: the item's ID if the MPN equals the ID, else None."""
        line, cells = row
        for index, convert in self._converters:
            cells[index] = convert(cells[index])
        self._remove_inactive_sale(line, cells)
        item_id, mpn = self._get_text("id", cells), self._get_text("mpn", cells)
        return line, [*cells, item_id if item_id and item_id == mpn else None]

    def _get_text(self, name: str, cells: list[Cell]) -> str:
        index = self._index_by_name.get(name)
        return "" if index is None else str(cells[index] or "").strip()

    def _remove_inactive_sale(self, line: int, cells: list[Cell]) -> None:
        """Remove the sale price if the period of the sale is invalid or does not include the current time."""
        span, index = self._get_text("sale_price_effective_date", cells), self._index_by_name.get("sale_price")
        if not span or index is None or not cells[index]:
            return
        within = _is_within_span(span, self._now)
        if within:
            return
        cells[index] = None
        if within is None:
            detail = "the sale period is invalid; the sale price is ignored"
            self._ctx.report(Report(detail, line, "sale_price_effective_date"))

    def _take_first(self, name: str, cell: Cell) -> Cell:
        """Return the first text of an attribute that permits one value; report several values once per attribute."""
        if not isinstance(cell, list):
            return cell
        if name not in self._reported:
            self._reported.add(name)
            self._ctx.report(Report(f"items have more than one {name}; the first is used", None, name))
        return next((value for value in cell if isinstance(value, str)), None)


def _join_values(cell: Cell) -> Cell:
    """Return the values of an attribute, such as several materials, as one text."""
    return "/".join(str(value) for value in cell) if isinstance(cell, list) else cell


def _convert_details(cell: Cell) -> Cell:
    """Return product details, which are texts or have section, name and value, as texts: `Seat: Height: 18 in`."""
    values = cell if isinstance(cell, list) else [cell]
    texts = [text for value in values if (text := _format_detail(value))]
    return texts or None


def _format_detail(value: object) -> str | None:
    if isinstance(value, str):
        return value.strip() or None
    if not isinstance(value, dict):
        return None
    parts = [value.get(name) for name in ("section_name", "attribute_name", "attribute_value")]
    return ": ".join(str(part).strip() for part in parts if isinstance(part, (str, int)) and str(part).strip()) or None


def _is_within_span(span: str, now: datetime) -> bool | None:
    """Return whether a time is in a period such as `2026-11-01T00:00-0800/2026-12-01`; None for an invalid period."""
    first, slash, last = span.partition("/")
    if not slash:
        return None
    try:
        begin, end = (datetime.fromisoformat(text.strip()) for text in (first, last))
    except ValueError:
        return None
    begin, end = (moment if moment.tzinfo else moment.replace(tzinfo=UTC) for moment in (begin, end))
    return begin <= now <= end
