"""Lists that are read page by page while one iterates."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypedDict, TypeVar

from .core import Core
from .driving import AsyncDriver, Driver
from .steps import Emit, Steps
from .tables import LIST_PAGE_FIELDS, PAGE_SIZE

T = TypeVar("T")


class Page(TypedDict, Generic[T]):
    """One page: up to `limit` items; `next_cursor` goes on behind it."""

    object: str
    data: list[T]
    has_more: bool
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class ListCall:
    """A list that is asked for."""

    path: str
    ids: Sequence[str]
    query: Mapping[str, Any]


def pages(core: Core, asked: ListCall) -> Steps[None]:
    """Emit every page from where the query starts, in its direction."""
    query = {"limit": PAGE_SIZE} | {name: value for name, value in asked.query.items() if value is not None}
    onwards = "ending_before" if "ending_before" in query else "starting_after"
    while True:
        page = yield from core.call("GET", asked.path, asked.ids, query=query, needs=LIST_PAGE_FIELDS)
        yield Emit(page)
        if not page["has_more"]:
            return
        query[onwards] = page["next_cursor"]


class Listing(Generic[T]):
    """Iterate for every item; `pages()` gives page by page. Each iteration starts anew."""

    def __init__(self, driver: Driver, core: Core, asked: ListCall) -> None:
        self._driver, self._core, self._asked = driver, core, asked

    def pages(self) -> Iterator[Page[T]]:
        """Every page. Raises JoineryError."""
        return self._driver.iterate(pages(self._core, self._asked))

    def __iter__(self) -> Iterator[T]:
        """Every item."""
        for page in self.pages():
            yield from page["data"]


class AsyncListing(Generic[T]):
    """Iterate with `async for` for every item; `pages()` gives page by page. Each iteration starts anew."""

    def __init__(self, driver: AsyncDriver, core: Core, asked: ListCall) -> None:
        self._driver, self._core, self._asked = driver, core, asked

    def pages(self) -> AsyncIterator[Page[T]]:
        """Every page. Raises JoineryError."""
        return self._driver.iterate(pages(self._core, self._asked))

    async def __aiter__(self) -> AsyncIterator[T]:
        """Every item."""
        async for page in self.pages():
            for item in page["data"]:
                yield item
