"""A client of server-sent events over ASGI, and what it reads as the WHATWG standard says."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.http.client import Client


@dataclass
class Sent:
    """One event as a client sees it."""

    id: str
    type: str
    data: str

    def json(self) -> Any:
        return json.loads(self.data)


@dataclass
class Reader:
    """Reads a stream's text as the standard says (WHATWG HTML §9.2.6); `last_id` is what a client resumes with."""

    last_id: str = ""
    retry: int | None = None
    comments: int = 0
    _buffer: str = ""
    _id: str = ""
    _type: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, piece: bytes) -> list[Sent]:
        self._buffer += piece.decode("utf-8")
        *lines, self._buffer = self._buffer.split("\n")
        return [event for line in lines if (event := self._line(line)) is not None]

    def _line(self, line: str) -> Sent | None:
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

    def _dispatch(self) -> Sent | None:
        self.last_id = self._id
        data, kind = self._data, self._type
        self._data, self._type = [], ""
        return Sent(self.last_id, kind or "message", "\n".join(data)) if data else None


@dataclass
class Stream:
    """An open stream. `blocked` holds the client's side back, as a full socket does."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    reader: Reader = field(default_factory=Reader)
    blocked: asyncio.Event = field(default_factory=asyncio.Event)
    ended: bool = False
    _waiting: list[Sent] = field(default_factory=list)
    _news: asyncio.Event = field(default_factory=asyncio.Event)
    body: bytes = b""

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode("latin-1") for name, value in message["headers"]}
        else:
            await self.blocked.wait()
            self.body += message.get("body", b"")
            self._waiting += self.reader.feed(message.get("body", b"")) if self.status == 200 else []
            self.ended = not message.get("more_body", False)
        self._news.set()

    async def until(self, look: Any, within: float = 20.0) -> None:
        """Until `look` says so."""
        async with asyncio.timeout(within):
            while not look():
                self._news.clear()
                await self._news.wait()

    async def next(self, count: int = 1, within: float = 20.0) -> list[Sent]:
        """The next events."""
        await self.until(lambda: len(self._waiting) >= count, within)
        taken, self._waiting = self._waiting[:count], self._waiting[count:]
        return taken

    async def end(self, within: float = 20.0) -> list[Sent]:
        """What was still to come, once the stream has ended."""
        await self.until(lambda: self.ended, within)
        return await self.next(len(self._waiting))


@asynccontextmanager
async def opened(client: Client, target: str = "/v1/stream", **headers: str) -> AsyncIterator[Stream]:
    """An open stream; leaving goes away as a client does."""
    stream, gone = Stream(), asyncio.Event()
    stream.blocked.set()

    async def receive() -> Any:
        await gone.wait()
        return {"type": "http.disconnect"}

    task = asyncio.create_task(client.connect(target, headers, receive, stream.send))
    try:
        opening = asyncio.create_task(stream.until(lambda: stream.status and (stream.body or stream.ended)))
        await asyncio.wait((opening, task), return_when=asyncio.FIRST_COMPLETED)
        await opening
        yield stream
    finally:
        gone.set()
        await asyncio.wait_for(task, 20)
