"""Keyset paging: where a page starts, which way it runs, what it lets through, and what it answers."""

from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Which page of a list: at most `limit` items (1 to 100) after, or before, the item with key `key`.

    `key` is the list's sort key of one item (for most lists its id), or None for the first page.
    `backwards` asks for the items before `key`; they still come in the list's own order.
    """

    limit: int = 20
    key: str | None = None
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items in the list's order; `has_more` tells of more in the direction asked; `next_key` continues there."""

    items: tuple[T, ...]
    has_more: bool
    next_key: str | None


@dataclass(frozen=True, slots=True)
class Filter:
    """What a list lets through: rows whose fields equal every field given here under the same name; None means any."""

    def given(self) -> dict[str, Any]:
        """Return the fields that are not None."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}
