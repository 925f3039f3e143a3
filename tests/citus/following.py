"""Followers that take a 503 for what it is: ask again a little later."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

import aiohttp

from tests.http.streams import Reader

Seen = list[tuple[str, int]]


@dataclass
class Follower:
    """What one client saw, and how often it was told to come again."""

    http: aiohttp.ClientSession
    done: asyncio.Event
    total: Callable[[], int]
    seen: Seen = field(default_factory=list)
    refused: int = 0

    def _missing(self) -> bool:
        return not self.done.is_set() or len(self.seen) < self.total()

    async def _refused(self, answer: aiohttp.ClientResponse) -> bool:
        if answer.status == 503:
            self.refused += 1
            assert answer.headers["Retry-After"]
            await asyncio.sleep(0.1)
            return True
        assert answer.status == 200, await answer.text()
        return False

    async def poll(self) -> "Follower":
        """Page after page."""
        query = {"wait": "2", "limit": "200"}
        while self._missing():
            async with self.http.get("/v1/changes", params=query) as answer:
                if await self._refused(answer):
                    continue
                page = await answer.json()
            self.seen += [(event["subject"], event["version"]) for event in page["data"]]
            query["cursor"] = page["next_cursor"]
        return self

    async def stream(self) -> "Follower":
        """Event after event; a stream that ends is begun again where it was."""
        last = ""
        while self._missing() and not last:
            async with self.http.get("/v1/changes", params={"limit": "1", "wait": "2"}) as answer:
                if not await self._refused(answer):
                    page = await answer.json()
                    self.seen += [(event["subject"], event["version"]) for event in page["data"]]
                    last = page["next_cursor"] if page["data"] else ""
        while self._missing():
            async with self.http.get("/v1/stream", headers={"Last-Event-ID": last}) as answer:
                if not await self._refused(answer):
                    last = await self._to_its_end(answer, last)
        return self

    async def _to_its_end(self, answer: aiohttp.ClientResponse, last: str) -> str:
        reader = Reader(last_id=last, _id=last)
        while self._missing():
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
