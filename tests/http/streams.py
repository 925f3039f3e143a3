"""Client of server-sent events over ASGI, with a parser that follows the WHATWG standard."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.http.client import Client


@dataclass
class ServerSentEvent:
    """Event as a client receives it."""

    id: str
    type: str
    data: str

    def json(self) -> Any:
        return json.loads(self.data)


@dataclass
class EventStreamParser:
    """Parser of an event stream (WHATWG HTML §9.2.6); a client resumes with `last_id`."""

    last_id: str = ""
    retry: int | None = None
    comments: int = 0
    _buffer: str = ""
    _id: str = ""
    _type: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, piece: bytes) -> list[ServerSentEvent]:
        self._buffer += piece.decode("utf-8")
        *lines, self._buffer = self._buffer.split("\n")
        return [event for line in lines if (event := self._parse_line(line)) is not None]

    def _parse_line(self, line: str) -> ServerSentEvent | None:
        if not line:
            return self._dispatch()
        if line.startswith(":"):
            self.comments += 1
            return None
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._type = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif name == "retry" and value.isdigit():
            self.retry = int(value)
        return None

    def _dispatch(self) -> ServerSentEvent | None:
        self.last_id = self._id
        data, kind = self._data, self._type
        self._data, self._type = [], ""
        return ServerSentEvent(self.last_id, kind or "message", "\n".join(data)) if data else None


@dataclass
class EventStreamConnection:
    """Open stream; clearing `writable` blocks the server's writes, as a full socket does."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    parser: EventStreamParser = field(default_factory=EventStreamParser)
    writable: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False
    _waiting: list[ServerSentEvent] = field(default_factory=list)
    _received: asyncio.Event = field(default_factory=asyncio.Event)
    body: bytes = b""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            await self.writable.wait()
            self.body += message.get("body", b"")
            self._waiting += self.parser.feed(message.get("body", b"")) if self.status == 200 else []
            self.ended = not message.get("more_body", False)
        self._received.set()

    async def wait_until(self, look: Any, within: float = 20.0) -> None:
        """Wait until `look` returns a true value."""
        async with asyncio.timeout(within):
            while not look():
                self._received.clear()
                await self._received.wait()

    async def read_events(self, count: int = 1, within: float = 20.0) -> list[ServerSentEvent]:
        """Return the next events."""
        await self.wait_until(lambda: len(self._waiting) >= count, within)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    async def read_to_end(self, within: float = 20.0) -> list[ServerSentEvent]:
        """Wait for the end of the stream; return the remaining events."""
        await self.wait_until(lambda: self.ended, within)
        return await self.read_events(len(self._waiting))


@asynccontextmanager
async def open_stream(
    client: Client, target: str = "/v1/stream", **headers: str
) -> AsyncIterator[EventStreamConnection]:
    """Open a stream; leaving the context disconnects the client."""
    stream, gone = EventStreamConnection(), asyncio.Event()
    stream.writable.set()

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    task = asyncio.create_task(client.connect(target, headers, receive, stream.send))
    try:
        opening = asyncio.create_task(stream.wait_until(lambda: stream.status and (stream.body or stream.ended)))
        await asyncio.wait((opening, task), return_when=asyncio.FIRST_COMPLETED)
        await opening
        yield stream
    finally:
        gone.set()
        await asyncio.wait_for(task, 20)
