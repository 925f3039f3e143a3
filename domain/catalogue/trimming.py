"""Leaving out what is too much of a product (domain/kernel/bounds.py): always the same entries for the same statement."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.catalogue.category_rules import MOST_LEVELS
from domain.kernel.bounds import AXES, ITEM_CHARS, ITEMS, PRODUCT_LIST_BYTES, VARIANT_LIST_BYTES

_FEW = 4
"""So many parts, boxes or pictures, whose texts their parsers bound, are looked at no further."""
_MANY = 16
"""So many boxes, or a product's pictures; and so many parts, when their names and codes are short."""


@dataclass(frozen=True, slots=True)
class Excess:
    """What of a field is left out: how many entries, and the first of them."""

    field: str
    count: int
    first: Any


def size(value: Any) -> int:
    """Bytes of a value as JSON."""
    return len(json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":")).encode())


def trim_product(data: dict[str, Any]) -> Sequence[Excess]:
    """Leave out of a product's data what is too much, in place; answers what that was."""
    found: list[Excess] = []
    for name, entries in (("tags", ITEMS), ("features", ITEMS), ("category_path", MOST_LEVELS)):
        if (texts := data.get(name)) and (len(texts) > entries or len("".join(texts)) > ITEM_CHARS):
            _trim(data, name, PRODUCT_LIST_BYTES, found, entries)
    if (media := data.get("media")) and len(media) > _MANY:
        _trim(data, "media", PRODUCT_LIST_BYTES, found)
    if (compliance := data.get("compliance")) and compliance.get("prop65_chemicals"):
        data["compliance"] = parts = dict(compliance)
        _trim(parts, "prop65_chemicals", VARIANT_LIST_BYTES, found)
    return found


def trim_variant(data: dict[str, Any]) -> Sequence[Excess]:
    """Leave out of a variant's data what is too much, in place; answers what that was."""
    found: list[Excess] = []
    if (axes := data.get("axes")) and (
        len(axes) > _FEW or len("".join(axes)) + len("".join(filter(None, axes.values()))) > ITEM_CHARS
    ):
        _trim(data, "axes", VARIANT_LIST_BYTES, found, AXES)
    if (texts := data.get("materials")) and (len(texts) > ITEMS or len("".join(texts)) > ITEM_CHARS):
        _trim(data, "materials", VARIANT_LIST_BYTES, found)
    if (parts := data.get("components")) and len(parts) > _FEW and not _small(parts):
        _trim(data, "components", VARIANT_LIST_BYTES, found)
    if (boxes := data.get("cartons")) and len(boxes) > _MANY:
        _trim(data, "cartons", VARIANT_LIST_BYTES, found)
    if (media := data.get("media")) and len(media) > _FEW:
        _trim(data, "media", VARIANT_LIST_BYTES, found)
    if (rug := data.get("rug")) and len(text := rug.get("size_text") or "") > ITEM_CHARS:
        data["rug"] = {name: value for name, value in rug.items() if name != "size_text"}
        found.append(Excess("rug.size_text", 1, text))
    return found


def _small(parts: Sequence[Any]) -> bool:
    """Whether parts come to less than a list's bytes, as a quick look tells."""
    return len(parts) <= _MANY and sum([len(p.get("sku", "")) + len(p.get("name", "")) for p in parts]) <= ITEM_CHARS


def _trim(data: dict[str, Any], name: str, most: int, found: list[Excess], items: int = ITEMS) -> None:
    """Keep the first entries that fit, in their order; one that is too long by itself is left out alone."""
    entries = data[name]
    kept: list[Any] = []
    left, first, used = 0, None, 0
    for entry in entries.items() if isinstance(entries, Mapping) else entries:
        weight = size(entry) if len(kept) < items and used < most and _fits(entry) else most
        if used + weight < most:
            kept.append(entry)
            used += weight
        else:
            left, first = left + 1, entry if first is None else first
    if not left:
        return
    if kept:
        data[name] = dict(kept) if isinstance(entries, Mapping) else kept
    else:
        del data[name]
    found.append(Excess(name, left, first))


def _fits(entry: Any) -> bool:
    """Whether none of an entry's texts is too long."""
    if isinstance(entry, str):
        return len(entry) <= ITEM_CHARS
    texts = entry.values() if isinstance(entry, Mapping) else entry
    return all(not isinstance(text, str) or len(text) <= ITEM_CHARS for text in texts)
