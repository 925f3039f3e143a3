"""Trimming of product data that exceeds the limits (domain/kernel/bounds.py), deterministic for a given statement."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.catalogue.category_rules import MOST_LEVELS
from domain.kernel.bounds import AXES, ITEM_CHARS, ITEMS, PRODUCT_LIST_BYTES, VARIANT_LIST_BYTES

_FEW = 4
"""Lists of up to this many components, cartons or media need no size check, because their parsers bound the texts."""
_MANY = 16
"""The same for cartons, a product's media, and components with short names and codes."""


@dataclass(frozen=True, slots=True)
class Excess:
    """The entries that were removed from a field: their number, and the first of them."""

    field: str
    count: int
    first: Any


def size(value: Any) -> int:
    """Return the size of a value as JSON, in bytes."""
    return len(json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":")).encode())


def trim_product(data: dict[str, Any]) -> Sequence[Excess]:
    """Remove excess entries from a product's data in place, and return what was removed."""
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
    """Remove excess entries from a variant's data in place, and return what was removed."""
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
    """Return whether the components are certainly below the size limit of a list."""
    return len(parts) <= _MANY and sum([len(p.get("sku", "")) + len(p.get("name", "")) for p in parts]) <= ITEM_CHARS


def _trim(data: dict[str, Any], name: str, most: int, found: list[Excess], items: int = ITEMS) -> None:
    """Keep the first entries that fit, in order; an entry that is too long by itself is skipped."""
    entries = data[name]
    kept: list[Any] = []
    removed, first, used = 0, None, 0
    for entry in entries.items() if isinstance(entries, Mapping) else entries:
        weight = size(entry) if len(kept) < items and used < most and _fits(entry) else most
        if used + weight < most:
            kept.append(entry)
            used += weight
        else:
            removed, first = removed + 1, entry if first is None else first
    if not removed:
        return
    if kept:
        data[name] = dict(kept) if isinstance(entries, Mapping) else kept
    else:
        del data[name]
    found.append(Excess(name, removed, first))


def _fits(entry: Any) -> bool:
    """Return whether all texts of an entry are within the limit."""
    if isinstance(entry, str):
        return len(entry) <= ITEM_CHARS
    texts = entry.values() if isinstance(entry, Mapping) else entry
    return all(not isinstance(text, str) or len(text) <= ITEM_CHARS for text in texts)
