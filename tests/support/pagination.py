"""Pagination through a list in both directions, and checks of the result."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from domain.kernel.paging import Page, PageRequest

T = TypeVar("T")
Fetch = Callable[[PageRequest], Awaitable[Page[T]]]
LIMITS = (1, 2, 3, 7, 100)


async def nothing() -> None:
    """Do nothing between two pages."""


async def collect_items(
    fetch: Fetch[T],
    limit: int,
    *,
    start: str | None = None,
    backwards: bool = False,
    between: Callable[[], Awaitable[None]] = nothing,
    full: bool = True,
) -> list[T]:
    """Return every item from `start` on, in list order; `between` runs after each page except the last.

    `full`: every page except the last must contain `limit` items.
    """
    pages: list[tuple[T, ...]] = []
    key = start
    while True:
        page = await fetch(PageRequest(limit, key, backwards))
        assert len(page.items) <= limit
        assert page.has_more == (page.next_key is not None)
        assert not full or not page.has_more or len(page.items) == limit
        pages.append(page.items)
        if not page.has_more:
            break
        key = page.next_key
        await between()
    return [item for part in (reversed(pages) if backwards else pages) for item in part]


async def check_pagination(
    fetch: Fetch[T], expected: list[T], key: Callable[[T], str], limits: tuple[int, ...] = LIMITS
) -> None:
    """Check that the list returns the expected items in order, forwards and backwards, from any item."""
    for limit in limits:
        assert await collect_items(fetch, limit) == expected
        for index in {0, len(expected) // 2, len(expected) - 1} if expected else set():
            start = key(expected[index])
            assert await collect_items(fetch, limit, start=start) == expected[index + 1 :]
            assert await collect_items(fetch, limit, start=start, backwards=True) == expected[:index]


async def check_insertions(
    fetch: Fetch[T], insert: Callable[[], Awaitable[None]], expected: list[T], key: Callable[[T], str]
) -> None:
    """Check that an insertion during a walk, at either end, neither repeats nor omits another item."""

    async def later() -> None:
        await asyncio.sleep(0.002)
        await insert()

    known = {key(item) for item in expected}
    for backwards in (False, True):
        start = key(expected[-1]) if backwards else None
        seen = await collect_items(fetch, 2, start=start, backwards=backwards, between=later)
        kept = [item for item in seen if key(item) in known]
        assert kept == (expected[:-1] if backwards else expected)
        assert len({key(item) for item in seen}) == len(seen)
