"""Client that calls the ASGI application directly: one connection per request."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Response:
    """Response with status, headers (lower case, the last of each name) and body."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> str:
        """Code of the problem response."""
        return str(self.json()["code"])

    @property
    def faults(self) -> set[tuple[str, str]]:
        """Field errors of the problem response as (field, code)."""
        return {(fault["field"], fault["code"]) for fault in self.json()["errors"]}


class Client:
    """Sends requests with one credential."""

    def __init__(self, app: Any, secret: str | None, address: str = "203.0.113.7") -> None:
        self._app = app
        self._secret = secret
        self._address = address

    async def send(
        self,
        method: str,
        target: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        pairs: list[tuple[str, str]] | None = None,
    ) -> Response:
        """Send a request; `target` is path and query as sent; `pairs` are headers that may repeat."""
        scope = self._scope(method, target, body, headers, pairs)
        return await exchange_messages(self._app, scope, body or b"")

    async def post_for_stream(self, target: str, value: Any, **headers: str) -> Response:
        """Send POST with a JSON value; return the response with the whole stream."""
        body = json.dumps(value).encode()
        named = {"content-type": "application/json", "idempotency-key": next(_keys)} | _build_headers(headers)
        return await exchange_messages(self._app, self._scope("POST", target, body, named, None), body, whole=True)

    async def connect(self, target: str, headers: Mapping[str, str], receive: Any, send: Any) -> None:
        """Send GET with the caller's `receive` and `send`."""
        await self._app(self._scope("GET", target, None, _build_headers(headers), None), receive, send)

    def _scope(
        self,
        method: str,
        target: str,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        pairs: list[tuple[str, str]] | None,
    ) -> dict[str, Any]:
        named = {"authorization": f"Bearer {self._secret}"} if self._secret else {}
        named |= {name.lower(): value for name, value in (headers or {}).items()}
        if body is not None:
            named.setdefault("content-length", str(len(body)))
        raw = [(name.encode(), value.encode("latin-1")) for name, value in [*named.items(), *(pairs or [])]]
        path, _, query = target.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode("latin-1"),
            "root_path": "",
            "query_string": query.encode("latin-1"),
            "headers": raw,
            "client": (self._address, 40000),
            "server": ("testserver", 80),
        }

    async def get(self, target: str, **headers: str) -> Response:
        """Send GET; keyword arguments are headers with underscores for hyphens."""
        return await self.send("GET", target, headers=_build_headers(headers))

    async def post(self, target: str, value: Any = None, **headers: str) -> Response:
        """Send POST with a JSON value and a new Idempotency-Key, unless one is given."""
        return await self.send_json("POST", target, value, **({"idempotency_key": next(_keys)} | headers))

    async def send_json(self, method: str, target: str, value: Any = None, **headers: str) -> Response:
        """Send a JSON value."""
        body = None if value is None else json.dumps(value).encode()
        typed = {"content-type": "application/json"} if body is not None else {}
        return await self.send(method, target, body=body, headers=typed | _build_headers(headers))


def _generate_keys() -> Any:
    number = 0
    while True:
        number += 1
        yield f"key-{number}"


_keys = _generate_keys()


def _build_headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


async def exchange_messages(app: Any, scope: dict[str, Any], body: bytes, *, whole: bool = False) -> Response:
    """Return the response; of a stream only the first chunk, after which the client disconnects, unless `whole` is set."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]
    sent: list[Any] = []
    enough = asyncio.Event()

    async def receive() -> Any:
        if waiting:
            return waiting.pop()
        await enough.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)
        if message.get("more_body") and not whole:
            enough.set()

    await app(scope, receive, send)
    start = sent[0]
    headers = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
    content = b"".join(message.get("body", b"") for message in sent[1:])
    return Response(start["status"], headers, content)
