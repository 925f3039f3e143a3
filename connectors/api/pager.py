"""Requests for the pages of a JSON service, with authentication, up to the last page."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import blake2b
from typing import Any

from connectors.api.paging import PagePosition, PagingStyle
from connectors.sdk.context import Context
from connectors.sdk.credentials import add_credentials, remove_query_parameters
from connectors.sdk.errors import BadData, Refused
from connectors.sdk.fetching import FetchedPage, fetch_page
from connectors.sdk.notes import encode_note
from connectors.sdk.readers import json_records
from connectors.sdk.readers.json_stream import decode_page

_END_STATUSES = frozenset({404, 416})


class ApiPager:
    """Pager that fetches all pages of a JSON service, up to the last page or one that equals the previous page."""

    def __init__(self, ctx: Context) -> None:
        url = ctx.config.get("stock_url") if ctx.stream == "stock" else None
        self._ctx = ctx
        self._url = str(url or ctx.config.get("url", ""))
        self._paging = PagingStyle(ctx.config.get("paging") or {})
        self._records_path: str | None = ctx.config.get("records_path")
        self._is_lines = ctx.config.get("format") == "jsonl"

    async def fetch_first_page(self) -> FetchedPage:
        """Fetch the first page in one attempt. Raises ConnectorError.

        If the service requests a wait, RetryLater is raised without waiting.
        """
        if not self._url:
            raise BadData("the source has no URL; set config.url")
        return await self._fetch_page(self._paging.build_first_url(self._url), can_wait=False, ends=frozenset())

    async def iterate_lines(self, first: FetchedPage) -> AsyncIterator[bytes]:
        """Yield `first` and all further pages as lines of the snapshot. Raises ConnectorError."""
        if self._is_lines:
            yield first.body
            return
        current: FetchedPage | None = first
        position, previous = PagePosition(self._paging.build_first_url(self._url), 1, 0), b""
        while current is not None:
            document = await decode_page(current.body)
            count = await asyncio.to_thread(
                self._count_records, document
            )  # a hostile page can have half a million keys
            digest = blake2b(current.body, digest_size=16).digest()
            if position.number > 1 and (digest == previous or self._is_finished(count)):
                return
            yield current.to_line()
            position, previous = PagePosition(position.url, position.number, position.records + count), digest
            following = (
                None if self._is_finished(count) else self._paging.find_next_url(self._url, position, current, document)
            )
            if following is not None and following != position.url and position.number >= self._paging.max_pages:
                maximum = self._paging.max_pages
                yield encode_note(
                    f"the service has more than {maximum} pages (config.paging.max_pages); only the first {maximum} are read"
                )
                return
            current = await self._fetch_next(following, position)
            position = PagePosition(following or "", position.number + 1, position.records)

    def _is_finished(self, count: int) -> bool:
        return self._paging.is_numbered and not count

    async def _fetch_next(self, url: str | None, position: PagePosition) -> FetchedPage | None:
        """Fetch the page at the URL; return None if the URL is None or the current one, or its status marks the end."""
        if url is None or url == position.url:
            return None
        ends = _END_STATUSES if self._paging.is_numbered else frozenset()
        answer = await self._fetch_page(url, can_wait=True, ends=ends)
        return None if answer.status in ends else answer

    def redact_url(self, url: str) -> str:
        """Return the URL without the query parameter that contains the credentials."""
        query = (self._ctx.credentials or {}).get("query")
        return remove_query_parameters(url, frozenset({str(query)})) if query else url

    async def _fetch_page(self, url: str, *, can_wait: bool, ends: frozenset[int]) -> FetchedPage:
        signed, signature = add_credentials(url, self._ctx.credentials)
        headers = {"Accept": "application/json", **(self._ctx.config.get("headers") or {}), **signature}
        answer = await fetch_page(self._ctx, signed, headers, can_wait=can_wait, end_statuses=ends)
        if answer.status not in ends and ("html" in answer.media_type or answer.body.lstrip()[:1] == b"<"):
            raise Refused("The service returned a web page instead of JSON.", is_credentials_error=False)
        return answer

    def _count_records(self, document: Any) -> int:
        if self._records_path is None:
            self._records_path = json_records.find_records_path(document)
        return len(json_records.select_records(document, self._records_path))
