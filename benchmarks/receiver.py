"""A receiver of webhooks in a process of its own: verifies each delivery by the public library, and remembers it.

`python -m benchmarks.receiver HOST PORT TLS_PORT`. An endpoint is a path; what it does stands in its query
(`/shop?status=500&times=2`, see behaviours.py) or is told later. Paths below `/!` are for whoever runs it:
`PUT /!/secrets` and `PUT /!/behaviours` with {path: secrets, current first} and {path: query}; `GET /!/deliveries?path=…`;
`GET /!/pid`; `DELETE /!/deliveries`.
"""

import asyncio
import contextlib
import gc
import json
import ssl
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from standardwebhooks import Webhook, WebhookVerificationError

from benchmarks.behaviours import PLAIN, WELL, Behaviour, told
from benchmarks.certificate import self_signed

FIELDS = (
    "endpoint", "id", "type", "subject", "version", "previous_version", "cursor", "received", "answered", "attempt",
    "verified", "body", "headers",
)  # fmt: skip


@dataclass(slots=True)
class Receiver:
    """What was received. A delivery is a row of FIELDS; times are seconds since 1970.

    `verified` lists which of the endpoint's secrets verify the delivery, by number. Bodies and headers are kept if `whole`.
    """

    whole: bool = False
    rows: list[list[Any]] = field(default_factory=list)
    verifiers: dict[str, list[Webhook]] = field(default_factory=dict)
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    attempts: dict[tuple[str, str], int] = field(default_factory=dict)

    def receive(self, target: str, headers: dict[str, str], body: bytes) -> tuple[list[Any], Behaviour]:
        """Remember a delivery; answers its row and what to do with it."""
        now = time.time()
        path, _, query = target.partition("?")
        id = headers.get("webhook-id", "")
        attempt = self.attempts[path, id] = self.attempts.get((path, id), 0) + 1
        event = _event(body)
        data = event.get("data", {})
        row = [
            path, id, event.get("type"), event.get("subject"), event.get("version"), data.get("previous_version"),
            headers.get("service-feed-cursor"), now, None, attempt, self._verified(path, headers, body),
            body.decode() if self.whole else None, dict(headers) if self.whole else None,
        ]  # fmt: skip
        self.rows.append(row)
        behaviour = self.behaviours.get(path) or (told(query) if query else WELL)
        return row, behaviour if behaviour.meets(id, attempt) else WELL

    def _verified(self, path: str, headers: dict[str, str], body: bytes) -> list[int]:
        found = []
        for number, verifier in enumerate(self.verifiers.get(path, ())):
            with contextlib.suppress(WebhookVerificationError):
                verifier.verify(body, headers, json_parse=False)
                found.append(number)
        return found

    def manage(self, method: str, target: str, body: bytes) -> Any:
        """What whoever runs it asks for."""
        path, _, query = target.partition("?")
        match method, path:
            case "PUT", "/!/secrets":
                self.verifiers |= {at: [Webhook(one) for one in some] for at, some in json.loads(body).items()}
            case "PUT", "/!/behaviours":
                self.behaviours |= {at: told(text) for at, text in json.loads(body).items()}
            case "PUT", "/!/whole":
                self.whole = bool(json.loads(body))
            case "GET", "/!/deliveries":
                wanted = parse_qs(query).get("path")
                return [row for row in self.rows if wanted is None or row[0] in wanted]
            case "GET", "/!/count":
                return len(self.rows)
            case "DELETE", "/!/deliveries":
                self.rows.clear()
                self.attempts.clear()
            case _:
                raise ValueError(f"{method} {target}")
        return None


def _event(body: bytes) -> dict[str, Any]:
    try:
        event = json.loads(body)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


class Connection(asyncio.Protocol):
    """HTTP/1.1 as senders of webhooks speak it: bodies with a length, one request after the other."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._buffer = bytearray()
        self._acting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Kept until the other side closes it."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Whatever was going to be answered is not."""
        if self._acting is not None:
            self._acting.cancel()

    def data_received(self, data: bytes) -> None:
        """Take in every request that is whole."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            first, *lines = self._buffer[:end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            length = int(headers.get("content-length", 0))
            if len(self._buffer) < end + 4 + length:
                return
            body = bytes(self._buffer[end + 4 : end + 4 + length])
            del self._buffer[: end + 4 + length]
            method, target, _ = first.split(" ")
            self._handle(method, target, headers, body)

    def _handle(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        if target.startswith("/!"):
            content = json.dumps(self._receiver.manage(method, target, body)).encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content)
            return
        row, behaviour = self._receiver.receive(target, headers, body)
        if behaviour == WELL:
            self._transport.write(PLAIN)
            row[8] = time.time()
        else:
            self._acting = asyncio.ensure_future(self._act(row, behaviour))

    async def _act(self, row: list[Any], behaviour: Behaviour) -> None:
        await behaviour.act(self._transport)
        row[8] = time.time()


async def main(host: str, port: int, tls_port: int) -> None:
    """Receive until killed."""
    receiver, loop = Receiver(), asyncio.get_running_loop()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.write_bytes(self_signed(host))
        context.load_cert_chain(path)
    await loop.create_server(lambda: Connection(receiver), host, tls_port, ssl=context)
    await loop.create_server(lambda: Connection(receiver), host, port, backlog=4096)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
