"""Methods of the asynchronous client that are not generated. The module `groups` is generated from this one, without asyncio."""

import asyncio
import mimetypes
import os
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from .async_core import AsyncCore
from .calls import CursorStore, FeedPage, ListPage, Query, as_list
from .cursor_file import CursorFile
from .tables import FEED_PAGE_FIELDS, LIST_PAGE_FIELDS, MEDIA_TYPES, OPEN_RUN_STATUSES, PAGE_SIZE

T = TypeVar("T")
_CHANGES = "/v1/changes"


class AsyncMethodGroup:
    """Base class of a group of methods of the asynchronous client, such as `client.sources`."""

    def __init__(self, core: AsyncCore) -> None:
        self._core = core


class AsyncListing(Generic[T]):
    """Iterable items of a paged list of the API.

    Iterate over the object with `async for` to get all items, or over `pages()` to get pages. Each iteration starts from the beginning.
    """

    def __init__(self, core: AsyncCore, path: str, ids: Sequence[str], query: Query) -> None:
        self._core, self._path, self._ids, self._query = core, path, ids, query

    async def pages(self) -> AsyncIterator[ListPage[T]]:
        """Yield all pages of the list. Raises JoineryError."""
        query = {"limit": PAGE_SIZE} | {name: value for name, value in self._query.items() if value is not None}
        cursor_parameter = "ending_before" if "ending_before" in query else "starting_after"
        while True:
            page = await self._core.call("GET", self._path, self._ids, query=query, required_fields=LIST_PAGE_FIELDS)
            yield page
            if not page["has_more"]:
                return
            query[cursor_parameter] = page["next_cursor"]

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for item in page["data"]:
                yield item


class AsyncFollower(Generic[T]):
    """Iterable events of the change feed, without end.

    Iterate over the object with `async for` to get all events, or over `pages()` to get pages and store `next_cursor` yourself.
    """

    def __init__(self, core: AsyncCore, cursor: str | None, store: CursorStore | None, wait: int, query: Query) -> None:
        self._core, self._cursor, self._store, self._wait, self._query = core, cursor, store, wait, query

    async def pages(self) -> AsyncIterator[FeedPage[T]]:
        """Yield all pages of the change feed, including empty ones.

        The cursor of a page is saved when the next page is requested, after the caller has processed the page.

        Raises CursorExpired, JoineryError.
        """
        saved = await asyncio.to_thread(self._store.load) if self._store is not None else None
        cursor, wait = saved or self._cursor, 0
        while True:
            page = await self._core.read_feed_page(_CHANGES, {"cursor": cursor, "wait": wait or None, **self._query})
            yield page
            cursor, wait = page["next_cursor"], self._wait if page["caught_up"] else 0
            if self._store is not None and cursor != saved:
                saved = cursor
                await asyncio.to_thread(self._store.save, cursor)

    async def __aiter__(self) -> AsyncIterator[T]:
        async for page in self.pages():
            for event in page["data"]:
                yield event


class AsyncFollowChanges(AsyncMethodGroup, Generic[T]):
    """Methods of `client.changes` that follow the change feed."""

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
        """Return all events after the cursor as an endless iterable, which waits for new events and retries after outages.

        After a crash, the events of the last page are repeated. Ignore events whose `id` you have processed, and events
        whose `version` is not higher than the version that you store for the same object.

        Iterating raises CursorExpired if the events after the cursor are no longer available.

        Args:
            cursor: The start position; `"now"` starts after the newest event, None at the oldest event that is kept.
            cursor_file: A path, or an object with `load` and `save`, that stores the position after each processed page.
                A saved position takes precedence over `cursor`.
            types: The event types to return; None for all.
            catalogues: The IDs of the catalogues whose events to return; None for all.
            wait: Maximum seconds for which the server waits for an event, 0 to 30.
            limit: Maximum number of events per page.
        """
        store = CursorFile(cursor_file) if isinstance(cursor_file, (str, os.PathLike)) else cursor_file
        query = {"types": as_list(types), "catalogues": as_list(catalogues), "limit": limit}
        return AsyncFollower(self._core, cursor, store, wait, query)

    async def now(self) -> str:
        """Return the cursor after the newest event.

        To miss no event, call this method before you read the lists, then follow the changes from the cursor.
        """
        page = await self._core.call("GET", _CHANGES, query={"cursor": "now"}, required_fields=FEED_PAGE_FIELDS)
        return str(page["next_cursor"])


class AsyncUploadFiles(AsyncMethodGroup, Generic[T]):
    """Method of `client.sources` that uploads a file."""

    async def upload_file(
        self,
        source: str,
        path: "str | os.PathLike[str]",
        *,
        filename: str | None = None,
        content_type: str | None = None,
        accept_shrink: bool | None = None,
    ) -> T:
        """Upload a file to a source, and start the import. The field `run` of the result is the ID of the run.

        Args:
            source: The ID of the source.
            path: The path of the file.
            filename: The file name that the service stores; by default, that of `path`.
            content_type: The media type; by default, it follows from the extension of `path`.
            accept_shrink: Whether the run may withdraw more items than the removal limit permits.

        Raises:
            JoineryError: A request failed.
            OSError: The file cannot be read, or its size changed during the upload.
        """
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
        upload = await self._core.call("POST", uploads, (source,), body=upload_body, keyed=True, required_fields=needs)
        await self._core.put(upload["target"]["url"], upload["target"]["headers"], file, size)
        body = None if accept_shrink is None else {"accept_shrink": accept_shrink}
        completed: T = await self._core.call("POST", "/v1/uploads/{}/complete", (upload["id"],), body=body, keyed=True)
        return completed


class AsyncWaitForRuns(AsyncMethodGroup, Generic[T]):
    """Method of `client.runs` that waits for the end of a run."""

    async def wait(self, run: str, timeout: float = 300.0) -> T:
        """Wait at most `timeout` seconds until the run has ended, and return it. Raises TimeoutError, JoineryError."""
        until, pause = time.monotonic() + timeout, 0.25
        while True:
            run_state: Any = await self._core.call("GET", "/v1/runs/{}", (run,), required_fields=("status",))
            if run_state["status"] not in OPEN_RUN_STATUSES:
                ended_run: T = run_state
                return ended_run
            remaining = until - time.monotonic()
            if remaining <= 0:
                raise TimeoutError(f"{run} is still {run_state['status']} after {timeout:g} s.")
            await asyncio.sleep(min(pause, remaining))
            pause = min(pause * 1.5, 5.0)
