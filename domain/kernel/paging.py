"""Keyset paging: requests for pages, pages, and filters."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """Request for a page of a list: at most `limit` items (1 to 100) after the item with the key `key`.

    `key` is the value by which the list is sorted (usually the ID), or None for the first page. With `backwards`, the page has
    the items before `key`, in the same order as otherwise.
    """

    limit: int = 20
    key: str | None = None
    backwards: bool = False


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Items of a list, in order.

    Attributes:
        has_more: Whether more items may follow in the requested direction.
        next_key: The key with which the next page is requested (`PageRequest`), or None if `has_more` is False.
    """

    items: tuple[T, ...]
    has_more: bool
    next_key: str | None


async def list_all(read_page: Callable[[PageRequest], Awaitable[Page[T]]]) -> list[T]:
    """Return all items of a list, which `read_page` reads page by page; only for lists that a limit keeps short."""
    items, request = list[T](), PageRequest(100)
    while True:
        page = await read_page(request)
        items += page.items
        if not page.has_more:
            return items
        request = PageRequest(100, page.next_key)


@dataclass(frozen=True, slots=True)
class Filter:
    """Filter of a list: a row matches if it has the same value in every field that is not None."""

    def get_conditions(self) -> dict[str, Any]:
        """Return the names and values of the fields that are not None."""
        values = ((field.name, getattr(self, field.name)) for field in fields(self))
        return {name: value for name, value in values if value is not None}
