"""Paths of categories out of lists in which each names its parent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_DEEPEST = 20


@dataclass(frozen=True, slots=True)
class Branch:
    """A category: its name, and the number of the one above; 0 or None at the top."""

    name: str
    parent: Any


def paths(branches: Mapping[int, Branch], ids: Iterable[Any]) -> list[list[str]]:
    """The path of each known category from the top; one that goes in circles ends after twenty levels."""
    found = []
    for number in ids:
        path: list[str] = []
        while isinstance(number, int) and number in branches and len(path) < _DEEPEST:
            path.append(branches[number].name)
            number = branches[number].parent
        if path:
            found.append(path[::-1])
    return found
