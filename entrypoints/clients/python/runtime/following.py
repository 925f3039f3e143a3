"""Follows the change feed for ever, and remembers the place."""

import os
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypedDict, TypeVar

from .core import Core, listed
from .cursor_file import CursorFile
from .driving import AsyncDriver, Driver
from .groups import AsyncGroup, Group
from .steps import CursorStore, Emit, Load, Save, Steps
from .tables import FEED_PAGE_FIELDS

E = TypeVar("E")
PATH: Final = "/v1/changes"


class FeedPage(TypedDict, Generic[E]):
    """Some events, the oldest first. `next_cursor` is the place behind them."""

    object: str
    data: list[E]
    next_cursor: str
    caught_up: bool


@dataclass(frozen=True, slots=True)
class Followed:
    """What is followed, from where, and where the place is kept."""

    cursor: str | None
    store: CursorStore | None
    types: Sequence[str] | None
    catalogues: Sequence[str] | None
    wait: int
    limit: int


def followed(core: Core, asked: Followed) -> Steps[None]:
    """Emit page after page; a page's cursor is saved when the next page is asked for, so after that page was worked on."""
    saved = (yield Load(asked.store)) if asked.store is not None else None
    cursor, wait = saved or asked.cursor, 0
    chosen = {"types": listed(asked.types), "catalogues": listed(asked.catalogues), "limit": asked.limit}
    while True:
        page = yield from core.follow(PATH, {"cursor": cursor, "wait": wait or None, **chosen})
        yield Emit(page)
        if asked.store is not None and page["next_cursor"] != saved:
            saved = page["next_cursor"]
            yield Save(asked.store, saved)
        cursor, wait = page["next_cursor"], asked.wait if page["caught_up"] else 0


def now(core: Core) -> Steps[str]:
    """The place behind the newest event."""
    page = yield from core.call("GET", PATH, query={"cursor": "now"}, needs=FEED_PAGE_FIELDS)
    return str(page["next_cursor"])


def _asked(
    cursor: str | None,
    cursor_file: "str | os.PathLike[str] | CursorStore | None",
    types: Sequence[str] | None,
    catalogues: Sequence[str] | None,
    wait: int,
    limit: int,
) -> Followed:
    store = CursorFile(cursor_file) if isinstance(cursor_file, (str, os.PathLike)) else cursor_file
    return Followed(cursor, store, types, catalogues, wait, limit)


class Follower(Generic[E]):
    """Iterate for every event, for ever; `pages()` gives page by page, for those who keep `next_cursor` themselves."""

    def __init__(self, driver: Driver, core: Core, asked: Followed) -> None:
        self._driver, self._core, self._asked = driver, core, asked

    def pages(self) -> Iterator[FeedPage[E]]:
        """Every page; some are empty. Raises CursorExpired, JoineryError."""
        return self._driver.iterate(followed(self._core, self._asked))

    def __iter__(self) -> Iterator[E]:
        """Every event."""
        for page in self.pages():
            yield from page["data"]


class AsyncFollower(Generic[E]):
    """Iterate with `async for` for every event, for ever; `pages()` gives page by page."""

    def __init__(self, driver: AsyncDriver, core: Core, asked: Followed) -> None:
        self._driver, self._core, self._asked = driver, core, asked

    def pages(self) -> AsyncIterator[FeedPage[E]]:
        """Every page; some are empty. Raises CursorExpired, JoineryError."""
        return self._driver.iterate(followed(self._core, self._asked))

    async def __aiter__(self) -> AsyncIterator[E]:
        """Every event."""
        async for page in self.pages():
            for event in page["data"]:
                yield event


class FollowChanges(Group, Generic[E]):
    """`follow` and `now` of `client.changes`."""

    def follow(
        self,
        cursor: str | None = None,
        cursor_file: "str | os.PathLike[str] | CursorStore | None" = None,
        *,
        types: Sequence[str] | None = None,
        catalogues: Sequence[str] | None = None,
        wait: int = 25,
        limit: int = 1000,
    ) -> Follower[E]:
        """Every event from the cursor on, for ever, by long polling; outages of the server are waited out.

        With `cursor_file` (a path, or an object with `load` and `save`) the place is saved once a page has been worked
        on, and a saved place wins over `cursor`. After a crash the events of the last page come again: deduplicate by
        `id`, apply by `version`. Without either it starts with the oldest event kept; `"now"` starts behind the newest.
        `wait` (0 to 30) is how long the server holds a request when there is nothing new. Raises CursorExpired.
        """
        return Follower(self._driver, self._core, _asked(cursor, cursor_file, types, catalogues, wait, limit))

    def now(self) -> str:
        """A cursor behind the newest event: take it before you list, then follow from it, and nothing is missed."""
        return self._driver.run(now(self._core))


class AsyncFollowChanges(AsyncGroup, Generic[E]):
    """`follow` and `now` of `client.changes`."""

    def follow(
        self,
        cursor: str | None = None,
        cursor_file: "str | os.PathLike[str] | CursorStore | None" = None,
        *,
        types: Sequence[str] | None = None,
        catalogues: Sequence[str] | None = None,
        wait: int = 25,
        limit: int = 1000,
    ) -> AsyncFollower[E]:
        """Every event from the cursor on, for ever; see `Joinery.changes.follow`."""
        return AsyncFollower(self._driver, self._core, _asked(cursor, cursor_file, types, catalogues, wait, limit))

    async def now(self) -> str:
        """A cursor behind the newest event: take it before you list, then follow from it, and nothing is missed."""
        return await self._driver.run(now(self._core))
