"""Methods in addition to the generated ones: lists, change feed, files, runs. The module `groups` is this one without asyncio."""

import asyncio
import mimetypes
import os
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from .async_core import AsyncCore
from .calls import CursorStore, FeedPage, Page, Query, listed
from .cursor_file import CursorFile
from .tables import FEED_PAGE_FIELDS, LIST_PAGE_FIELDS, MEDIA_TYPES, OPEN_RUN_STATUSES, PAGE_SIZE

T = TypeVar("T")
_CHANGES = "/v1/changes"


class AsyncGroup:
    """Methods of one area."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core


class AsyncListing(Generic[T]):
    """Iterate with `async for` over all items; `pages()` yields pages. Each iteration starts from the beginning."""

    def __init__(self, core: AsyncCore, path: str, ids: Sequence[str], query: Query) -> None:
        self._core, self._path, self._ids, self._query = core, path, ids, query

    async def pages(self) -> AsyncIterator[Page[T]]:
        """Yield all pages from the query's start in its direction. Raises JoineryError."""
        query = {"limit": PAGE_SIZE} | {name: value for name, value in self._query.items() if value is not None}
        cursor_parameter = "ending_before" if "ending_before" in query else "starting_after"
        while True:
            page = await self._core.call("GET", self._path, self._ids, query=query, needs=LIST_PAGE_FIELDS)
            yield page
            if not page["has_more"]:
                return
            query[cursor_parameter] = page["next_cursor"]

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page["data"]:
                yield item


class AsyncFollower(Generic[T]):
    """Iterate with `async for` over all events, without end; `pages()` yields pages, for callers who store `next_cursor` themselves."""

    def __init__(self, core: AsyncCore, cursor: str | None, store: CursorStore | None, wait: int, query: Query) -> None:
        self._core, self._cursor, self._store, self._wait, self._query = core, cursor, store, wait, query

    async def pages(self) -> AsyncIterator[FeedPage[T]]:
        """Yield all pages, including empty ones. A page's cursor is saved when the next one is read. Raises CursorExpired, JoineryError."""
        saved = await asyncio.to_thread(self._store.load) if self._store is not None else None
        cursor, wait = saved or self._cursor, 0
        while True:
            page = await self._core.follow(_CHANGES, {"cursor": cursor, "wait": wait or None, **self._query})
            yield page
            cursor, wait = page["next_cursor"], self._wait if page["caught_up"] else 0
            if self._store is not None and cursor != saved:
                saved = cursor
                await asyncio.to_thread(self._store.save, cursor)

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for event in page["data"]:
                yield event


class AsyncFollowChanges(AsyncGroup, Generic[T]):
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
    ) -> AsyncFollower[T]:
        """Follow all events from the cursor on, without end, by long polling; retries during outages of the server.

        With `cursor_file` (a path, or an object with `load` and `save`), the position is saved after each page is processed,
        and a saved position takes precedence over `cursor`. After a crash, the events of the last page are repeated:
        deduplicate by `id`, apply by `version`. Without both, the feed starts at the oldest event kept; with `"now"`, after
        the newest. `wait` (0 to 30) is how many seconds the server waits for an event. Raises CursorExpired.
        """
        store = CursorFile(cursor_file) if isinstance(cursor_file, (str, os.PathLike)) else cursor_file
        query = {"types": listed(types), "catalogues": listed(catalogues), "limit": limit}
        return AsyncFollower(self._core, cursor, store, wait, query)

    async def now(self) -> str:
        """Return a cursor after the newest event. Get it before you list, then follow from it, and no event is missed."""
        page = await self._core.call("GET", _CHANGES, query={"cursor": "now"}, needs=FEED_PAGE_FIELDS)
        return str(page["next_cursor"])


class AsyncUploadFiles(AsyncGroup, Generic[T]):
    """`upload_file` of `client.sources`."""

    async def upload_file(
        self,
        source: str,
        path: "str | os.PathLike[str]",
        *,
        filename: str | None = None,
        content_type: str | None = None,
        accept_shrink: bool | None = None,
    ) -> T:
        """Upload a file and start its import; wait for the result's `run`. Raises JoineryError, OSError."""
        file = Path(path)
        size = (await asyncio.to_thread(file.stat)).st_size
        kind = content_type or MEDIA_TYPES.get(file.suffix.lower()[1:]) or mimetypes.guess_type(file.name)[0]
        upload_body = {
            "filename": filename or file.name,
            "content_type": kind or "application/octet-stream",
            "bytes": size,
        }
        needs = ("id", "target")
        uploads = "/v1/sources/{}/uploads"
        upload = await self._core.call("POST", uploads, (source,), body=upload_body, keyed=True, needs=needs)
        await self._core.put(upload["target"]["url"], upload["target"]["headers"], file, size)
        body = None if accept_shrink is None else {"accept_shrink": accept_shrink}
        completed: T = await self._core.call("POST", "/v1/uploads/{}/complete", (upload["id"],), body=body, keyed=True)
        return completed


class AsyncWaitForRuns(AsyncGroup, Generic[T]):
    """`wait` of `client.runs`."""

    async def wait(self, run: str, timeout: float = 300.0) -> T:
        """Wait until the run has ended and return it; its `status` is the result. Raises TimeoutError, JoineryError."""
        until, pause = time.monotonic() + timeout, 0.25
        while True:
            run_state: Any = await self._core.call("GET", "/v1/runs/{}", (run,), needs=("status",))
            if run_state["status"] not in OPEN_RUN_STATUSES:
                ended_run: T = run_state
                return ended_run
            remaining = until - time.monotonic()
            if remaining <= 0:
                raise TimeoutError(f"{run} is still {run_state['status']} after {timeout:g} s.")
            await asyncio.sleep(min(pause, remaining))
            pause = min(pause * 1.5, 5.0)
