"""How receivers answer: well, late, never, in drips, with every status and header that a sender has to mind."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl
from zlib import crc32

PLAIN = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a receiver does with an attempt. `do` is one of `answer`, `drip_headers`, `drip_body`, `close`, `hang`.

    `times`: only the first attempts of each message meet with it, later ones are answered well. `share`: of the messages,
    chosen by their ids; the others are answered well. `after`: seconds before
    the answer. `retry_after`: seconds, told as a date if `date`. `big`: bytes of the answer's body.
    """

    do: str = "answer"
    status: int = 204
    times: int = 1 << 30
    share: float = 1.0
    after: float = 0.0
    retry_after: int | None = None
    date: bool = False
    abort: bool = False
    location: str = ""
    big: int = 0
    text: str = ""

    def meets(self, id: str, attempt: int) -> bool:
        """Whether this attempt of the message meets with it."""
        return attempt <= self.times and (self.share >= 1 or crc32(id.encode()) % 1000 < self.share * 1000)

    def answer(self) -> bytes:
        """The whole answer."""
        body = self.text.encode() or b"x" * self.big
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"]
        if self.status != HTTPStatus.NO_CONTENT:
            lines.append(f"Content-Length: {len(body)}")
        if self.retry_after is not None:
            lines.append(f"Retry-After: {self._pause()}")
        if self.abort:
            lines.append("webhook-delivery: abort-message")
        if self.location:
            lines.append(f"Location: {self.location}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def _pause(self) -> str:
        assert self.retry_after is not None
        if not self.date:
            return str(self.retry_after)
        return format_datetime(datetime.now(UTC) + timedelta(seconds=self.retry_after), usegmt=True)

    async def act(self, transport: asyncio.Transport) -> None:
        """Do it on a connection whose request has been read."""
        await asyncio.sleep(self.after)
        if self.do == "answer":
            transport.write(self.answer())
        elif self.do == "close":
            transport.close()
        elif self.do == "drip_headers":
            await _drip(transport, b"HTTP/1.1 200 OK\r\n" + b"X-Drip: drip\r\n" * 100)
        elif self.do == "drip_body":
            transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            await _drip(transport, b"." * 1000)


WELL = Behaviour()


def told(query: str, before: Behaviour = WELL) -> Behaviour:
    """The behaviour that a query string names: its fields by name."""
    named: Mapping[str, str] = dict(parse_qsl(query))
    kinds = {"status": int, "times": int, "after": float, "share": float, "retry_after": int, "big": int}
    values: dict[str, Any] = {name: kinds.get(name, _plain)(value) for name, value in named.items()}
    return replace(before, **values)


def _plain(value: str) -> str | bool:
    return value == "yes" if value in ("yes", "no") else value


async def _drip(transport: asyncio.Transport, content: bytes) -> None:
    """Two bytes a second, until nobody listens."""
    for number in range(len(content)):
        if transport.is_closing():
            return
        transport.write(content[number : number + 1])
        await asyncio.sleep(0.5)
