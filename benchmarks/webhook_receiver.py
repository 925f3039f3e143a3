"""Webhook receiver for benchmarks and tests, which verifies each delivery with the public library and records it.

`python -m benchmarks.webhook_receiver HOST PORT TLS_PORT`. An endpoint is a path. Its behaviour
(receiver_behaviours.py) is in the query string (`/shop?status=500&times=2`) or set later. Paths below `/!` control
the receiver: `PUT /!/secrets` and `PUT /!/behaviours` with {path: secrets, current one first} and {path: query
string}; `PUT /!/record-bodies`; `GET /!/deliveries?path=…`; `GET /!/count`; `DELETE /!/deliveries`.
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

from benchmarks.certificate import create_self_signed_certificate
from benchmarks.receiver_behaviours import DEFAULT_BEHAVIOUR, EMPTY_RESPONSE, Behaviour, parse_behaviour

FIELDS = (
    "endpoint", "id", "type", "subject", "version", "previous_version", "cursor", "received", "answered", "attempt",
    "verified", "body", "headers",
)  # fmt: skip


@dataclass(slots=True)
class Receiver:
    """Received deliveries and the settings of the endpoints.

    Attributes:
        records_bodies: Whether bodies and headers are recorded.
        rows: Deliveries as lists of FIELDS. Times are Unix times; `verified` lists the indexes of the secrets that
            verify the delivery.
        verifiers: Verifiers of the secrets, by path.
        behaviours: Behaviours that were set, by path.
        attempts: Number of attempts, by path and message ID.
    """

    records_bodies: bool = False
    rows: list[list[Any]] = field(default_factory=list)
    verifiers: dict[str, list[Webhook]] = field(default_factory=dict)
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    attempts: dict[tuple[str, str], int] = field(default_factory=dict)

    def record_delivery(self, target: str, headers: dict[str, str], body: bytes) -> tuple[list[Any], Behaviour]:
        """Record a delivery; return the row, and the behaviour for this attempt."""
        now = time.time()
        path, _, query = target.partition("?")
        id = headers.get("webhook-id", "")
        attempt = self.attempts[path, id] = self.attempts.get((path, id), 0) + 1
        event = _parse_event(body)
        data = event.get("data", {})
        row = [
            path, id, event.get("type"), event.get("subject"), event.get("version"), data.get("previous_version"),
            headers.get("service-feed-cursor"), now, None, attempt, self._find_verifying_secrets(path, headers, body),
            body.decode() if self.records_bodies else None, dict(headers) if self.records_bodies else None,
        ]  # fmt: skip
        self.rows.append(row)
        behaviour = self.behaviours.get(path) or (parse_behaviour(query) if query else DEFAULT_BEHAVIOUR)
        return row, behaviour if behaviour.applies_to(id, attempt) else DEFAULT_BEHAVIOUR

    def _find_verifying_secrets(self, path: str, headers: dict[str, str], body: bytes) -> list[int]:
        indexes = []
        for index, verifier in enumerate(self.verifiers.get(path, ())):
            with contextlib.suppress(WebhookVerificationError):
                verifier.verify(body, headers, json_parse=False)
                indexes.append(index)
        return indexes

    def handle_command(self, method: str, target: str, body: bytes) -> Any:
        """Execute a control request and return its result. Raises ValueError for an unknown request."""
        path, _, query = target.partition("?")
        match method, path:
            case "PUT", "/!/secrets":
                self.verifiers |= {
                    endpoint: [Webhook(secret) for secret in secrets] for endpoint, secrets in json.loads(body).items()
                }
            case "PUT", "/!/behaviours":
                self.behaviours |= {
                    endpoint: parse_behaviour(query_text) for endpoint, query_text in json.loads(body).items()
                }
            case "PUT", "/!/record-bodies":
                self.records_bodies = bool(json.loads(body))
            case "GET", "/!/deliveries":
                paths = parse_qs(query).get("path")
                return [row for row in self.rows if paths is None or row[0] in paths]
            case "GET", "/!/count":
                return len(self.rows)
            case "DELETE", "/!/deliveries":
                self.rows.clear()
                self.attempts.clear()
            case _:
                raise ValueError(f"{method} {target}")
        return None


def _parse_event(body: bytes) -> dict[str, Any]:
    try:
        event = json.loads(body)
    except ValueError:
        return {}
    return event if isinstance(event, dict) else {}


class Connection(asyncio.Protocol):
    """HTTP/1.1 connection for webhook senders: bodies have a length, and requests are not pipelined."""

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._buffer = bytearray()
        self._response_task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the pending response."""
        if self._response_task is not None:
            self._response_task.cancel()

    def data_received(self, data: bytes) -> None:
        """Handle every request that has been received completely."""
        self._buffer += data
        while (head_end := self._buffer.find(b"\r\n\r\n")) >= 0:
            request_line, *header_lines = self._buffer[:head_end].decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in header_lines)}
            length = int(headers.get("content-length", 0))
            if len(self._buffer) < head_end + 4 + length:
                return
            body = bytes(self._buffer[head_end + 4 : head_end + 4 + length])
            del self._buffer[: head_end + 4 + length]
            method, target, _ = request_line.split(" ")
            self._handle_request(method, target, headers, body)

    def _handle_request(self, method: str, target: str, headers: dict[str, str], body: bytes) -> None:
        if target.startswith("/!"):
            content = json.dumps(self._receiver.handle_command(method, target, body)).encode()
            self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content)
            return
        row, behaviour = self._receiver.record_delivery(target, headers, body)
        if behaviour == DEFAULT_BEHAVIOUR:
            self._transport.write(EMPTY_RESPONSE)
            row[8] = time.time()
        else:
            self._response_task = asyncio.ensure_future(self._perform_behaviour(row, behaviour))

    async def _perform_behaviour(self, row: list[Any], behaviour: Behaviour) -> None:
        await behaviour.perform(self._transport)
        row[8] = time.time()


async def main(host: str, port: int, tls_port: int) -> None:
    """Serve HTTP and HTTPS until the process ends."""
    receiver, loop = Receiver(), asyncio.get_running_loop()
    gc.freeze()
    gc.set_threshold(100_000, 50, 1000)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pair.pem"
        path.write_bytes(create_self_signed_certificate(host))
        context.load_cert_chain(path)
    await loop.create_server(lambda: Connection(receiver), host, tls_port, ssl=context)
    await loop.create_server(lambda: Connection(receiver), host, port, backlog=4096)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], *map(int, sys.argv[2:])))
