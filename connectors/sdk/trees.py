"""Category paths from lists in which each category names its parent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Branch:
    """Category: its name, and the ID of its parent; 0 or None at the top."""

    name: str
    parent: Any


def paths(branches: Mapping[int, Branch], ids: Iterable[Any]) -> list[list[str]]:
    """Return the path of each known category from the top; a cycle ends after twenty levels."""
    found = []
    for number in ids:
        path: list[str] = []
        while isinstance(number, int) and number in branches and len(path) < _DEEPEST:
            path.append(branches[number].name)
            number = branches[number].parent
        if path:
            found.append(path[::-1])
    return found
