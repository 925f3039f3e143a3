"""Readers of the change feed and the event stream that reconnect after every failure and continue at their cursor."""

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import aiohttp

_CONNECTION_ERRORS = (aiohttp.ClientError, OSError, TimeoutError)
_RETRY_DELAY = 0.2
"""Seconds before a reader reconnects."""


class SeenEvent(NamedTuple):
    """Event that a reader received."""

    id: str
    subject: str
    version: int


def _build_seen_event(event: dict[str, Any]) -> SeenEvent:
    return SeenEvent(event["id"], event["subject"], event["version"])


@dataclass
class Reader:
    """Base class of readers.

    Attributes:
        base: URL of the API.
        secret: API key.
        cursor: Position after the last event; None before the first response.
        events: Received events in their order.
        breaks: Number of lost connections.
        calls: Number of successful responses.
    """

    base: str
    secret: str
    cursor: str | None = None
    events: list[SeenEvent] = field(default_factory=list)
    breaks: int = 0
    calls: int = 0

    def _open_session(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=None, sock_read=60)
        return aiohttp.ClientSession(headers={"Authorization": f"Bearer {self.secret}"}, timeout=timeout)

    async def _wait_after_error(self) -> None:
        self.breaks += 1
        await asyncio.sleep(_RETRY_DELAY)


class LongPollReader(Reader):
    """Reader that polls GET /v1/changes with a waiting time."""

    async def run(self, wait_seconds: int = 5) -> None:
        """Read until cancelled."""
        async with self._open_session() as session:
            while True:
                try:
                    await self._read_page(session, wait_seconds)
                except _CONNECTION_ERRORS:
                    await self._wait_after_error()

    async def _read_page(self, session: aiohttp.ClientSession, wait_seconds: int) -> None:
        query = {"limit": "1000", "wait": str(wait_seconds), **({"cursor": self.cursor} if self.cursor else {})}
        async with session.get(self.base + "/v1/changes", params=query) as response:
            response.raise_for_status()
            page = json.loads(await response.read())
        self.calls += 1
        self.events += map(_build_seen_event, page["data"])
        self.cursor = page["next_cursor"]


class StreamReader(Reader):
    """Reader of GET /v1/stream, from the current end of the log or from a cursor."""

    async def run(self) -> None:
        """Read until cancelled."""
        async with self._open_session() as session:
            while True:
                with contextlib.suppress(*_CONNECTION_ERRORS):
                    await self._read_stream(session)
                await self._wait_after_error()

    async def _read_stream(self, session: aiohttp.ClientSession) -> None:
        headers = {"Last-Event-ID": self.cursor} if self.cursor else {}
        async with session.get(self.base + "/v1/stream", headers=headers) as response:
            response.raise_for_status()
            self.calls += 1
            self.cursor = self.cursor or response.headers["Service-Stream-From"]
            fields: dict[str, str] = {}
            buffer = b""
            async for chunk in response.content.iter_any():
                *lines, buffer = (buffer + chunk).split(b"\n")
                for line in lines:
                    if line:
                        name, _, value = line.decode().partition(":")
                        fields[name] = value.removeprefix(" ")
                    else:
                        self._record_event(fields)
                        fields = {}

    def _record_event(self, fields: dict[str, str]) -> None:
        if "id" in fields:
            self.cursor = fields["id"]
        if "data" in fields and fields.get("event") != "stream.end":
            self.events.append(_build_seen_event(json.loads(fields["data"])))


def compare_with_table(received_events: list[SeenEvent], table: list[SeenEvent]) -> str:
    """Compare the received events with the table; describe missed, disordered, repeated and unknown events."""
    ids = {event.id for event in received_events}
    missed_count = sum(event.id not in ids for event in table)
    unknown = len(ids - {event.id for event in table})
    highest: dict[str, int] = {}
    disorder_count = 0
    for event in received_events:
        disorder_count += event.version <= highest.get(event.subject, 0)
        highest[event.subject] = max(event.version, highest.get(event.subject, 0))
    return f"missed {missed_count}, out of order or repeated {disorder_count}, unknown {unknown}, of {len(table):,}"


NO_ERRORS = "missed 0, out of order or repeated 0, unknown 0"
"""Beginning of the text of `compare_with_table` without errors."""
