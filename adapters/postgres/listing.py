"""Keyset pages: which lines of a list's statement a page needs, and the page made of one row more than was asked."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from domain.kernel.paging import Page, PageRequest

T = TypeVar("T")
EVER: Final = (datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
"""Between which everything was made: moments beyond that are asked for, but cannot all be reckoned with."""
LOOKED: Final = 2_000
"""Rows that a page of a list with several filters looks at before it ends although it is not full."""


def page_names(page_request: PageRequest) -> frozenset[str]:
    """The optional lines of a list's statement that this page keeps (sqlfile.rendered)."""
    names = {"backwards" if page_request.backwards else "forwards"}
    if page_request.key is not None:
        names.add("before" if page_request.backwards else "after")
    return frozenset(names)


def page_params(page_request: PageRequest) -> dict[str, Any]:
    """The parameter of those lines."""
    return {"page_key": page_request.key}


def page_of(rows: list[T], page_request: PageRequest, key: Callable[[T], str], end: str | None = None) -> Page[T]:
    """The page in list order; its next key continues in the direction asked.

    `end` is the key of the last row that was looked at, when a page ends before it is full.
    """
    more = len(rows) > page_request.limit
    rows = rows[: page_request.limit]
    next_key = key(rows[-1]) if more else end
    if page_request.backwards:
        rows.reverse()
    return Page(tuple(rows), next_key is not None, next_key)
