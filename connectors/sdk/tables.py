"""Output of a connector: tables of cells, and reports about data that could not be used."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

Cell: TypeAlias = "str | int | Decimal | bool | list[Any] | dict[str, Any] | None"
Row: TypeAlias = "tuple[int, list[Cell]]"
"""Pair of the line number from 1 (in JSON and XML, the number of the record) and the cells, one per header."""

PRODUCT_FIELDS = frozenset(
    "product_key title brand collection description category category_path google_category gpc_brick tags features media "
    "status compliance option_name".split()
)
VARIANT_FIELDS = frozenset(
    "variant_key sku gtin mpn variant_title axes option_value colour finish materials dimensions weight components cartons "
    "carton_count assembly_required white_glove freight_class discontinued replacement_sku rug variant_media media_alt "
    "media_position dimension_unit weight_unit".split()
)
OFFER_FIELDS = frozenset(
    "cost msrp map price sale_price compare_at currency quantity availability location lead_time_days incoming".split()
)
DECLARED_FIELDS = PRODUCT_FIELDS | VARIANT_FIELDS | OFFER_FIELDS
"""Names of fields for `Table.fields`. A part of a field follows a dot, as in `dimensions.width`, `cartons.0.weight` or
`axes.Size` (DECLARED_FIELD_PARTS), and a setting follows an @, as in `weight@unit=g`.
"""

MAX_NOTES_CHARS = 2_000
"""Maximum number of characters of `Table.notes` that are read."""
_INDEX = r"\d{1,2}"
DECLARED_FIELD_PARTS: Mapping[str, str] = {
    "axes": r"(?s:.+)",
    "category_path": _INDEX,
    "option_name": _INDEX,
    "option_value": _INDEX,
    "media": "hero",
    "dimensions": "width|depth|height|diameter|seat_height|seat_depth|arm_height|clearance|length",
    "rug": "shape|size_text|nominal|construction|pile_height|indoor_outdoor",
    "cartons": rf"{_INDEX}\.(?:width|depth|height|weight|count|dimensions)",
    "incoming": rf"{_INDEX}\.(?:quantity|eta)",
    "compliance": "tsca_title_vi|sturdy_act|stability_rating|ca_tb117_2013|prop65_warning|prop65_chemicals|country_of_origin",
}
"""Regular expression of the parts that may follow a field after a dot, by field."""
_PARTS_ONLY = frozenset({"option_name", "option_value", "rug", "incoming", "compliance"})


@dataclass(frozen=True, slots=True)
class Table:
    """Table of a snapshot: a worksheet, a file, or all pages of an API.

    Cells are text as in the feed, exact numbers (never float), or None if the feed states no value. An empty text
    removes the value of an earlier run. None also removes that value, but only if `fields` is set. `tags` is a list of
    texts, `category_path` a list from the top category down, `media` a list of {url, alt, position}, `axes` a dict of
    option names to values.

    Attributes:
        sheet: Name of the worksheet; None for formats without worksheets.
        headers: Names of the columns.
        rows: Rows in the order of the feed, which can be iterated once and before the next table is requested.
        fields: Field of each column, as described at DECLARED_FIELDS; None for a column without a field. If the
            connector does not know the fields, `fields` itself is None, and people map the columns.
        notes: Text above the table that applies to it, such as `Dealer price list` or `All prices in EUR`.
    """

    sheet: str | None
    headers: tuple[str, ...]
    rows: Iterator[Row]
    fields: tuple[str | None, ...] | None = None
    notes: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Report of data in the snapshot that could not be used unchanged.

    `line` is a line number as in Row, or None if the report concerns the whole file. `column` is a header, or None.
    """

    detail: str
    line: int | None = None
    column: str | None = None
    sheet: str | None = None


def base_field(entry: str) -> str:
    """Return the field in an entry of `Table.fields`: `weight` for `weight@unit=g`, `axes` for `axes.Colour`."""
    return entry.split("@", 1)[0].split(".", 1)[0]


def is_declarable_field(entry: str) -> bool:
    """Return whether an entry of `Table.fields` is valid: a field of DECLARED_FIELDS or a part of one.

    Settings after an @ are not checked.
    """
    head, dot, part = entry.split("@", 1)[0].partition(".")
    if head not in DECLARED_FIELDS:
        return False
    if not dot:
        return head not in _PARTS_ONLY
    return re.fullmatch(DECLARED_FIELD_PARTS.get(head, r"(?!)"), part) is not None
