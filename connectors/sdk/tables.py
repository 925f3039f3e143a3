"""Output of a connector: tables of rows, iterated once, in the order of the feed."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

Cell: TypeAlias = "str | int | Decimal | bool | list[Any] | dict[str, Any] | None"
Row: TypeAlias = "tuple[int, list[Cell]]"
"""The line (from 1, as a person counts in the file; in JSON and XML the number of the record) and one cell a header."""

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
GIVEN_FIELDS = PRODUCT_FIELDS | VARIANT_FIELDS | OFFER_FIELDS
"""What `Table.given` may name. A setting follows an @ (`weight@unit=g`); one axis alone is `axes.<Name>`. Parts of a field
are `dimensions.width`, `cartons.0.weight`, `incoming.0.eta`, `compliance.country_of_origin`: GIVEN_PARTS."""

_PLACE = r"\d{1,2}"
GIVEN_PARTS: Mapping[str, str] = {
    "axes": r"(?s:.+)",
    "category_path": _PLACE,
    "option_name": _PLACE,
    "option_value": _PLACE,
    "media": "hero",
    "dimensions": "width|depth|height|diameter|seat_height|seat_depth|arm_height|clearance|length",
    "rug": "shape|size_text|nominal|construction|pile_height|indoor_outdoor",
    "cartons": rf"{_PLACE}\.(?:width|depth|height|weight|count|dimensions)",
    "incoming": rf"{_PLACE}\.(?:quantity|eta)",
    "compliance": "tsca_title_vi|sturdy_act|stability_rating|ca_tb117_2013|prop65_warning|prop65_chemicals|country_of_origin",
}
"""The parts of a field that has any, as a pattern of what follows its first dot."""
_PARTS_ONLY = frozenset({"option_name", "option_value", "rug", "incoming", "compliance"})


@dataclass(frozen=True, slots=True)
class Table:
    """Sheet, set of pages or file. `sheet` is None if a format has no sheets.

    `given` is set if the connector itself knows the fields of the columns: for each header one of GIVEN_FIELDS, or None
    for a column without a field. Cells: text as in the feed, exact numbers (never float), None for an absent value
    (empty text removes an earlier value; if `given` is set, None does, too); `tags` a list of text, `category_path` a
    list from the top, `media` a list of {url, alt, position}, `axes` a dict of option name to value.
    """

    sheet: str | None
    headers: tuple[str, ...]
    rows: Iterator[Row]
    given: tuple[str | None, ...] | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """Data in the snapshot that could not be kept as it was; parsing continues.

    `line` is counted as in Row, None if the report concerns the whole file; `column` is the header.
    """

    detail: str
    line: int | None = None
    column: str | None = None
    sheet: str | None = None


def given_field(entry: str) -> str:
    """Return the bare field of a `given` entry: `weight` of `weight@unit=g`, `axes` of `axes.Colour`."""
    return entry.split("@", 1)[0].split(".", 1)[0]


def is_given(entry: str) -> bool:
    """Return whether a `given` entry names a field of GIVEN_FIELDS or one of its parts; settings are not checked."""
    head, dot, part = entry.split("@", 1)[0].partition(".")
    if head not in GIVEN_FIELDS:
        return False
    if not dot:
        return head not in _PARTS_ONLY
    return re.fullmatch(GIVEN_PARTS.get(head, r"(?!)"), part) is not None
