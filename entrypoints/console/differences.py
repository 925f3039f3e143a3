"""What changed, as people read it: a line for each field, long and nested values opened up."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

DEEPEST: Final = 4
MOST: Final = 200
"""Lines of one change."""
LONGEST: Final = 600


@dataclass(frozen=True, slots=True)
class Difference:
    """One field: its dotted path, and its value before and after, each None where there was none."""

    path: str
    old: str | None
    new: str | None


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """The fields that differ, in order; objects are opened up to a depth, lists are shown whole."""
    old, new = _flat(before), _flat(after)
    found = [
        Difference(path, _written(old, path), _written(new, path))
        for path in dict.fromkeys((*old, *new))
        if path not in old or path not in new or old[path] != new[path]
    ]
    return found[:MOST]


def _flat(value: Mapping[str, Any], prefix: str = "", depth: int = 1) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, item in value.items():
        path = f"{prefix}{name}"
        if isinstance(item, Mapping) and item and depth < DEEPEST:
            found |= _flat(item, f"{path}.", depth + 1)
        else:
            found[path] = item
    return found


def _written(values: Mapping[str, Any], path: str) -> str | None:
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
    return text if len(text) <= LONGEST else text[:LONGEST] + "…"
