"""Readers of the change feed and the stream that keep at it: whatever breaks, they go on from their cursor."""

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import aiohttp

_BREAKS = (aiohttp.ClientError, OSError, TimeoutError)
_AGAIN = 0.2
"""Seconds after which a broken reader tries again."""


class Seen(NamedTuple):
    """An event as a reader met it."""

    id: str
    subject: str
    version: int


def _seen(event: dict[str, Any]) -> Seen:
    return Seen(event["id"], event["subject"], event["version"])


@dataclass
class Reader:
    """One reader with its key. `events` are all that it saw, in its order; `breaks` how often it had to start again."""

    base: str
    secret: str
    cursor: str | None = None
    events: list[Seen] = field(default_factory=list)
    breaks: int = 0
    calls: int = 0

    def _session(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
        return aiohttp.ClientSession(headers={"Authorization": f"Bearer {self.secret}"}, timeout=timeout)

    async def _broke(self) -> None:
        self.breaks += 1
        await asyncio.sleep(_AGAIN)


class LongPolls(Reader):
    """Asks GET /v1/changes, waiting when there is nothing."""

    async def run(self, wait: int = 5) -> None:
        """Until cancelled."""
        async with self._session() as session:
            while True:
                try:
                    await self._page(session, wait)
                except _BREAKS:
                    await self._broke()

    async def _page(self, session: aiohttp.ClientSession, wait: int) -> None:
        query = {"limit": "1000", "wait": str(wait), **({"cursor": self.cursor} if self.cursor else {})}
        async with session.get(self.base + "/v1/changes", params=query) as answer:
            answer.raise_for_status()
            page = json.loads(await answer.read())
        self.calls += 1
        self.events += map(_seen, page["data"])
        self.cursor = page["next_cursor"]


class Stream(Reader):
    """Listens to GET /v1/stream, from its beginning (`cursor`) or where it was cut off."""

    async def run(self) -> None:
        """Until cancelled."""
        async with self._session() as session:
            while True:
                with contextlib.suppress(*_BREAKS):
                    await self._listen(session)
                await self._broke()

    async def _listen(self, session: aiohttp.ClientSession) -> None:
        headers = {"Last-Event-ID": self.cursor} if self.cursor else {}
        async with session.get(self.base + "/v1/stream", headers=headers) as answer:
            answer.raise_for_status()
            self.calls += 1
            self.cursor = self.cursor or answer.headers["Service-Stream-From"]
            told: dict[str, str] = {}
            buffer = b""
            async for chunk in answer.content.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    if line:
                        name, _, value = line.decode().partition(":")
                        told[name] = value.removeprefix(" ")
                    else:
                        self._take(told)
                        told = {}

    def _take(self, told: dict[str, str]) -> None:
        if "id" in told:
            self.cursor = told["id"]
        if "data" in told and told.get("event") != "stream.end":
            self.events.append(_seen(json.loads(told["data"])))


def judged(found: list[Seen], table: list[Seen]) -> str:
    """What a reader saw beside what the table holds: missed, out of order per subject, seen again."""
    ids = {one.id for one in found}
    missed = sum(one.id not in ids for one in table)
    foreign = len(ids - {one.id for one in table})
    highest: dict[str, int] = {}
    disorder = 0
    for one in found:
        disorder += one.version <= highest.get(one.subject, 0)
        highest[one.subject] = max(one.version, highest.get(one.subject, 0))
    return f"missed {missed}, out of order or again {disorder}, unknown {foreign}, of {len(table):,}"


CLEAN = "missed 0, out of order or again 0, unknown 0"
"""How `judged` begins when all is well."""
