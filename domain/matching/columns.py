"""Which field of an item a column of a table states."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from domain.matching.words import folded

_HEADERS: Final = {
    "title": "title name product_name product_title",
    "brand": "brand manufacturer vendor",
    "mpn": "mpn part_number manufacturer_part_number",
    "model": "model modelno model_number model_no",
    "sku": "sku",
    "gtin": "gtin ean upc barcode gtin13 gtin14",
    "price": "price",
    "currency": "currency",
    "description": "description",
    "collection": "collection series",
    "colour": "colour color",
    "finish": "finish",
    "width": "width",
    "depth": "depth length",
    "height": "height",
    "dim_unit": "dim_unit dimension_unit size_unit",
    "weight": "weight",
    "weight_unit": "weight_unit",
    "pack": "pack pack_size pack_quantity set_of",
    "pieces": "pieces number_of_pieces",
}
FIELDS: Final = {header: field for field, headers in _HEADERS.items() for header in headers.split()}
"""Field by header."""


def fields(headers: Iterable[str]) -> dict[str, str]:
    """The field of each header that has one, whatever its case; of several headers of a field all are kept."""
    named = {header: "_".join(folded(header).replace("-", " ").replace("_", " ").split()) for header in headers}
    return {header: FIELDS[name] for header, name in named.items() if name in FIELDS}


def stated(row: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """A row's texts by field; where several columns state one, the first that is not blank."""
    found: dict[str, str] = {}
    for header, field in known.items():
        text = row.get(header) or ""
        if text.strip() and field not in found:
            found[field] = text
    return found


def ignored(headers: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """The headers that say nothing here; the id's column apart."""
    return [header for header in headers if header not in known and folded(header).strip() != "id"]
