"""Trimming of product data that exceeds the limits (domain/kernel/bounds.py); equal data is trimmed equally."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from domain.catalogue.category_rules import MAX_PATH_LEVELS
from domain.kernel.bounds import MAX_AXES, MAX_ENTRY_CHARS, MAX_LIST_ENTRIES, PRODUCT_LIST_BYTES, VARIANT_LIST_BYTES

_MAX_UNCHECKED_ENTRIES = 4
"""Maximum number of entries of a list that needs no size check, because parsers limit the texts in the list."""
_MAX_UNCHECKED_SHORT_ENTRIES = 16
"""As `_MAX_UNCHECKED_ENTRIES`, for cartons, the media of a product, and components with short names and codes."""


@dataclass(frozen=True, slots=True)
class TrimmedEntries:
    """Entries that were removed from a field: their number, and the first one."""

    field: str
    count: int
    first: Any


def json_size(value: Any) -> int:
    """Return the size of a value as JSON, in bytes."""
    return len(json.dumps(value, default=str, ensure_ascii=False, separators=(",", ":")).encode())


def trim_product(data: dict[str, Any]) -> Sequence[TrimmedEntries]:
    """Remove excess entries from a product's data in place, and return the removed entries."""
    found: list[TrimmedEntries] = []
    for name, entries in (
        ("tags", MAX_LIST_ENTRIES),
        ("features", MAX_LIST_ENTRIES),
        ("category_path", MAX_PATH_LEVELS),
    ):
        if (texts := data.get(name)) and (len(texts) > entries or len("".join(texts)) > MAX_ENTRY_CHARS):
            _trim_field(data, name, PRODUCT_LIST_BYTES, found, entries)
    if (media := data.get("media")) and len(media) > _MAX_UNCHECKED_SHORT_ENTRIES:
        _trim_field(data, "media", PRODUCT_LIST_BYTES, found)
    if (compliance := data.get("compliance")) and compliance.get("prop65_chemicals"):
        data["compliance"] = parts = dict(compliance)
        _trim_field(parts, "prop65_chemicals", VARIANT_LIST_BYTES, found)
    return found


def trim_variant(data: dict[str, Any]) -> Sequence[TrimmedEntries]:
    """Remove excess entries from a variant's data in place, and return the removed entries."""
    found: list[TrimmedEntries] = []
    if (axes := data.get("axes")) and (
        len(axes) > _MAX_UNCHECKED_ENTRIES
        or len("".join(axes)) + len("".join(filter(None, axes.values()))) > MAX_ENTRY_CHARS
    ):
        _trim_field(data, "axes", VARIANT_LIST_BYTES, found, MAX_AXES)
    if (texts := data.get("materials")) and (len(texts) > MAX_LIST_ENTRIES or len("".join(texts)) > MAX_ENTRY_CHARS):
        _trim_field(data, "materials", VARIANT_LIST_BYTES, found)
    if (parts := data.get("components")) and len(parts) > _MAX_UNCHECKED_ENTRIES and not _are_surely_small(parts):
        _trim_field(data, "components", VARIANT_LIST_BYTES, found)
    if (boxes := data.get("cartons")) and len(boxes) > _MAX_UNCHECKED_SHORT_ENTRIES:
        _trim_field(data, "cartons", VARIANT_LIST_BYTES, found)
    if (media := data.get("media")) and len(media) > _MAX_UNCHECKED_ENTRIES:
        _trim_field(data, "media", VARIANT_LIST_BYTES, found)
    if (rug := data.get("rug")) and len(text := rug.get("size_text") or "") > MAX_ENTRY_CHARS:
        data["rug"] = {name: value for name, value in rug.items() if name != "size_text"}
        found.append(TrimmedEntries("rug.size_text", 1, text))
    return found


def _are_surely_small(parts: Sequence[Any]) -> bool:
    """Return whether the components are so few and short that their size need not be computed."""
    return (
        len(parts) <= _MAX_UNCHECKED_SHORT_ENTRIES
        and sum([len(p.get("sku", "")) + len(p.get("name", "")) for p in parts]) <= MAX_ENTRY_CHARS
    )


def _trim_field(
    data: dict[str, Any],
    name: str,
    max_bytes: int,
    removed_entries: list[TrimmedEntries],
    max_entries: int = MAX_LIST_ENTRIES,
) -> None:
    """Remove the entries of a field that exceed the limits, and add a record of them to `removed_entries`.

    Args:
        data: The data of a product or variant, changed in place.
        name: The field, a list or a mapping.
        max_bytes: Maximum size of the field as JSON.
        removed_entries: The records of removed entries.
        max_entries: Maximum number of entries.
    """
    entries = data[name]
    kept: list[Any] = []
    removed, first, used = 0, None, 0
    for entry in entries.items() if isinstance(entries, Mapping) else entries:
        weight = (
            json_size(entry) if len(kept) < max_entries and used < max_bytes and _has_short_texts(entry) else max_bytes
        )
        if used + weight < max_bytes:
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
    removed_entries.append(TrimmedEntries(name, removed, first))


def _has_short_texts(entry: Any) -> bool:
    """Return whether every text of the entry has at most MAX_ENTRY_CHARS characters."""
    if isinstance(entry, str):
        return len(entry) <= MAX_ENTRY_CHARS
    texts = entry.values() if isinstance(entry, Mapping) else entry
    return all(not isinstance(text, str) or len(text) <= MAX_ENTRY_CHARS for text in texts)
