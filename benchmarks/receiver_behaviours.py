"""Behaviours of webhook receivers: correct, late, missing and slow responses, and special status codes and headers."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl
from zlib import crc32

EMPTY_RESPONSE = b"HTTP/1.1 204 No Content\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """Behaviour of a receiver for an attempt.

    Attributes:
        do: `answer`, `drip_headers` or `drip_body` (a byte every 0.5 seconds), `close` or `hang`.
        status: Status code of the response.
        times: Number of first attempts of each message to which the behaviour applies; later attempts are answered
            with 204.
        share: Share of the messages to which the behaviour applies, selected by a hash of the ID.
        after: Seconds before the response.
        retry_after: Seconds in the header Retry-After.
        date: Whether Retry-After is sent as a date.
        abort: Whether the response asks the sender to abort the message.
        location: Header Location of the response.
        big: Bytes of the response body.
        text: Response body, instead of `big` bytes.
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

    def applies_to(self, id: str, attempt: int) -> bool:
        """Return whether the behaviour applies to this attempt of the message."""
        return attempt <= self.times and (self.share >= 1 or crc32(id.encode()) % 1000 < self.share * 1000)

    def render_response(self) -> bytes:
        """Return the bytes of the response."""
        body = self.text.encode() or b"x" * self.big
        lines = [f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}"]
        if self.status != HTTPStatus.NO_CONTENT:
            lines.append(f"Content-Length: {len(body)}")
        if self.retry_after is not None:
            lines.append(f"Retry-After: {self._format_retry_after()}")
        if self.abort:
            lines.append("webhook-delivery: abort-message")
        if self.location:
            lines.append(f"Location: {self.location}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body

    def _format_retry_after(self) -> str:
        assert self.retry_after is not None
        if not self.date:
            return str(self.retry_after)
        return format_datetime(datetime.now(UTC) + timedelta(seconds=self.retry_after), usegmt=True)

    async def perform(self, transport: asyncio.Transport) -> None:
        """Perform the behaviour on a connection whose request has been read."""
        await asyncio.sleep(self.after)
        if self.do == "answer":
            transport.write(self.render_response())
        elif self.do == "close":
            transport.close()
        elif self.do == "drip_headers":
            await _drip(transport, b"HTTP/1.1 200 OK\r\n" + b"X-Drip: drip\r\n" * 100)
        elif self.do == "drip_body":
            transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            await _drip(transport, b"." * 1000)


DEFAULT_BEHAVIOUR = Behaviour()


def parse_behaviour(query: str, default: Behaviour = DEFAULT_BEHAVIOUR) -> Behaviour:
    """Parse the fields of a behaviour from a query string; `default` has the fields that are not in the query."""
    texts: Mapping[str, str] = dict(parse_qsl(query))
    types = {"status": int, "times": int, "after": float, "share": float, "retry_after": int, "big": int}
    values: dict[str, Any] = {name: types.get(name, _parse_text)(value) for name, value in texts.items()}
    return replace(default, **values)


def _parse_text(value: str) -> str | bool:
    return value == "yes" if value in ("yes", "no") else value


async def _drip(transport: asyncio.Transport, content: bytes) -> None:
    """Write a byte every 0.5 seconds until the connection closes."""
    for index in range(len(content)):
        if transport.is_closing():
            return
        transport.write(content[index : index + 1])
        await asyncio.sleep(0.5)
