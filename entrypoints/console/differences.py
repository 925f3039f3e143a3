"""What changed, as people read it: a line for each field, long and nested values opened up."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from entrypoints.console.portions import Portion, portion, shortened

DEEPEST: Final = 4
MOST: Final = 200
"""Lines of one change."""
LONGEST: Final = 600
_LINE: Final = 180
"""Bytes of a line of a table beside its values."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field: its dotted path, and its value before and after, each None where there was none."""

    path: str
    old: str | None
    new: str | None


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], longest: int = LONGEST, most: int = MOST
) -> list[Difference]:
    """The fields that differ, in order; objects are opened up to a depth, lists are shown whole.

    Of a value `longest` characters are told, of a change `most` lines.
    """
    old, new = _flat(before), _flat(after)
    found = [
        Difference(path, _written(old, path, longest), _written(new, path, longest))
        for path in dict.fromkeys((*old, *new))
        if path not in old or path not in new or old[path] != new[path]
    ]
    return found[:most]


def _flat(value: Mapping[str, Any], prefix: str = "", depth: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, item in value.items():
        path = f"{prefix}{name}"
        if isinstance(item, Mapping) and item and depth < DEEPEST:
            found |= _flat(item, f"{path}.", depth + 1)
        else:
            found[path] = item
    return found


def _written(values: Mapping[str, Any], path: str, longest: int) -> str | None:
    if path not in values or values[path] is None:
        return None
    value = values[path]
    if isinstance(value, str):
        text = value or "(empty)"
    elif isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, list) and all(isinstance(one, str | int) for one in value):
        text = ", ".join(map(str, value)) or "(none)"
    else:
        text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= longest else text[:longest] + "…"


def lines_of(items: Sequence[Difference], start: int | None, value: int, room: int) -> Portion[Difference]:
    """As many of the lines as there is room for, their values in so many bytes of a page each."""

    def most(text: str | None) -> int:
        return min(value, 6 * len(text)) if text else 0

    found = portion(items, start, len(items), lambda one: _LINE + most(one.old) + most(one.new), room)
    return replace(found, items=[_cut(one, value) for one in found.items])


def _cut(one: Difference, value: int) -> Difference:
    old, new = (None if text is None else shortened(text, value) for text in (one.old, one.new))
    return Difference(shortened(one.path, 200), old, new)
