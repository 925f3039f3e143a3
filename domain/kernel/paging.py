"""Keyset paging: page requests, pages and filters."""

from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Request for a page of a list: at most `limit` items (1 to 100) after, or before, the item with key `key`.

    `key` is the list's sort key of one item (for most lists its id), or None for the first page. `backwards` requests
    the items before `key`, still in the list's own order.
    """

    limit: int = 20
    key: str | None = None
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items in the list's order. `has_more`: there are more in the requested direction; `next_key` continues there."""

    items: tuple[T, ...]
    has_more: bool
    next_key: str | None


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter of a list: rows whose fields equal every field set here under the same name; None means any."""

    def given(self) -> dict[str, Any]:
        """Return the fields that are not None."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}
