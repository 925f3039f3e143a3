"""Paths of categories, built from a list of categories in which each one states the ID of its parent."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_MAX_DEPTH = 20


@dataclass(frozen=True, slots=True)
class CategoryNode:
    """Category with its name and the ID of its parent category, which is 0 or None for a top category."""

    name: str
    parent: Any


def build_category_paths(categories_by_id: Mapping[int, CategoryNode], ids: Iterable[Any]) -> list[list[str]]:
    """Return the paths of the categories with these IDs: names from the top category down. Unknown IDs are skipped.

    `categories_by_id` are all categories by ID.
    """
    found = []
    for number in ids:
        path: list[str] = []
        # The limit ends cycles of parents.
        while isinstance(number, int) and number in categories_by_id and len(path) < _MAX_DEPTH:
            path.append(categories_by_id[number].name)
            number = categories_by_id[number].parent
        if path:
            found.append(path[::-1])
    return found
