"""Followers that retry after a 503."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp

from tests.http.streams import EventStreamParser

SeenVersions = list[tuple[str, int]]


@dataclass
class Follower:
    """Follower of the change feed with its events and the number of 503 responses."""

    http: aiohttp.ClientSession
    done: asyncio.Event
    count_expected: Callable[[], int]
    seen: SeenVersions = field(default_factory=list)
    refused: int = 0

    def _is_missing_events(self) -> bool:
        return not self.done.is_set() or len(self.seen) < self.count_expected()

    async def _handle_refusal(self, answer: aiohttp.ClientResponse) -> bool:
        if answer.status == 503:
            self.refused += 1
            assert answer.headers["Retry-After"]
            await asyncio.sleep(0.1)
            return True
        assert answer.status == 200, await answer.text()
        return False

    async def follow_pages(self) -> "Follower":
        """Follow the feed page by page."""
        query = {"wait": "2", "limit": "200"}
        while self._is_missing_events():
            async with self.http.get("/v1/changes", params=query) as answer:
                if await self._handle_refusal(answer):
                    continue
                page = await answer.json()
            self.seen += [(event["subject"], event["version"]) for event in page["data"]]
            query["cursor"] = page["next_cursor"]
        return self

    async def follow_stream(self) -> "Follower":
        """Follow the event stream; a stream that ends is resumed."""
        last = ""
        while self._is_missing_events() and not last:
            async with self.http.get("/v1/changes", params={"limit": "1", "wait": "2"}) as answer:
                if not await self._handle_refusal(answer):
                    page = await answer.json()
                    self.seen += [(event["subject"], event["version"]) for event in page["data"]]
                    last = page["next_cursor"] if page["data"] else ""
        while self._is_missing_events():
            async with self.http.get("/v1/stream", headers={"Last-Event-ID": last}) as answer:
                if not await self._handle_refusal(answer):
                    last = await self._read_stream(answer, last)
        return self

    async def _read_stream(self, answer: aiohttp.ClientResponse, last: str) -> str:
        reader = EventStreamParser(last_id=last, _id=last)
        while self._is_missing_events():
            try:
                async with asyncio.timeout(1):
                    piece = await answer.content.readany()
            except TimeoutError:
                continue
            if not piece:
                break
            for sent in reader.feed(piece):
                if sent.type != "stream.end":
                    event = sent.json()
                    self.seen.append((event["subject"], event["version"]))
        return reader.last_id
