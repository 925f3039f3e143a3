"""Keyset pages: which lines of a list's statement a page needs, and the page made of one row more than was asked."""

from collections.abc import Callable
from typing import Any, TypeVar

from domain.kernel.paging import Page, PageRequest

T = TypeVar("T")


def page_names(page_request: PageRequest) -> frozenset[str]:
    """The optional lines of a list's statement that this page keeps (sqlfile.rendered)."""
    names = {"backwards" if page_request.backwards else "forwards"}
    if page_request.key is not None:
        names.add("before" if page_request.backwards else "after")
    return frozenset(names)


def page_params(page_request: PageRequest) -> dict[str, Any]:
    """The parameter of those lines."""
    return {"page_key": page_request.key}


def page_of(rows: list[T], page_request: PageRequest, key: Callable[[T], str]) -> Page[T]:
    """The page in list order; its next key continues in the direction asked."""
    more = len(rows) > page_request.limit
    rows = rows[: page_request.limit]
    next_key = key(rows[-1]) if more else None
    if page_request.backwards:
        rows.reverse()
    return Page(tuple(rows), more, next_key)
