"""Authenticated paging through a service, up to the last page or a repeated one."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import blake2b
from typing import Any

from connectors.api.paging import Paging, Place
from connectors.sdk.context import Context
from connectors.sdk.credentials import sign, without_query
from connectors.sdk.errors import BadData, Refused
from connectors.sdk.notes import note
from connectors.sdk.pulling import Page, page
from connectors.sdk.readers import json_records
from connectors.sdk.readers.json_stream import decoded_page

_PAST_THE_END = frozenset({404, 416})


class Walk:
    """One pass over a service's pages."""

    def __init__(self, ctx: Context) -> None:
        url = ctx.config.get("stock_url") if ctx.stream == "stock" else None
        self._ctx = ctx
        self._url = str(url or ctx.config.get("url", ""))
        self._paging = Paging(ctx.config.get("paging") or {})
        self._records_path: str | None = ctx.config.get("records_path")
        self._is_lines = ctx.config.get("format") == "jsonl"

    async def first(self) -> Page:
        """Fetch the first page; a wait that the service requests is left to the runner. Raises ConnectorError."""
        if not self._url:
            raise BadData("the source's settings name no URL (config.url)")
        return await self._page(self._paging.first(self._url), patient=False, ends=frozenset())

    async def lines(self, first: Page) -> AsyncIterator[bytes]:
        """Yield the pages, one JSON document a line. Raises ConnectorError."""
        if self._is_lines:
            yield first.body
            return
        current: Page | None = first
        place, previous = Place(self._paging.first(self._url), 1, 0), b""
        while current is not None:
            document = await decoded_page(current.body)
            count = await asyncio.to_thread(self._count, document)  # a hostile page has half a million keys
            digest = blake2b(current.body, digest_size=16).digest()
            if place.number > 1 and (digest == previous or self._is_over(count)):
                return
            yield current.line()
            place, previous = Place(place.url, place.number, place.records + count), digest
            following = None if self._is_over(count) else self._paging.following(self._url, place, current, document)
            if following is not None and following != place.url and place.number >= self._paging.most:
                yield note(f"the service has more than {self._paging.most} pages; the rest is missing")
                return
            current = await self._next(following, place)
            place = Place(following or "", place.number + 1, place.records)

    def _is_over(self, count: int) -> bool:
        return self._paging.counts and not count

    async def _next(self, url: str | None, place: Place) -> Page | None:
        """Fetch the next page; return None if there is none, or it is the current one."""
        if url is None or url == place.url:
            return None
        ends = _PAST_THE_END if self._paging.counts else frozenset()
        answer = await self._page(url, patient=True, ends=ends)
        return None if answer.status in ends else answer

    def shown(self, url: str) -> str:
        """Return a URL without its credentials."""
        query = (self._ctx.credentials or {}).get("query")
        return without_query(url, frozenset({str(query)})) if query else url

    async def _page(self, url: str, *, patient: bool, ends: frozenset[int]) -> Page:
        signed, signature = sign(url, self._ctx.credentials)
        headers = {"Accept": "application/json", **(self._ctx.config.get("headers") or {}), **signature}
        answer = await page(self._ctx, signed, headers, patient=patient, ends=ends)
        if answer.status not in ends and ("html" in answer.media_type or answer.body.lstrip()[:1] == b"<"):
            raise Refused("The service answers with a web page instead of JSON.", credentials=False)
        return answer

    def _count(self, document: Any) -> int:
        if self._records_path is None:
            self._records_path = json_records.where(document)
        return len(json_records.picked(document, self._records_path))
