"""Entry point of requests: reads go directly to the pipeline, all others through Quart to the same pipeline."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import aclosing
from time import perf_counter
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from domain.kernel.errors import DomainError, InvalidRequest, SchemaMismatch
from domain.kernel.ids import new_id
from domain.platform.ports import SchemaCheck
from entrypoints.http.body import IncomingBody, Receive, Send
from entrypoints.http.connections import SEND_SECONDS
from entrypoints.http.exchange import Response, from_scope, no_body
from entrypoints.http.pipeline import Pipeline

Scope = MutableMapping[str, Any]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]

UNGATED = frozenset({"/healthz", "/readyz", "/metrics", "/status"})
"""Paths served even if the database schema does not match, because they report it."""
_HOST = re.compile(
    rb"(?:(?:[A-Za-z0-9_-]{1,63}\.){0,126}[A-Za-z0-9_-]{1,63}\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?"
)
"""A DNS name or an IP address (RFC 3986 §3.2.2); routing encodes the host by IDNA, which raises for anything else."""
READS = frozenset({"GET", "HEAD"})
LOG = logging.getLogger("joinery.http")


async def send_response(response: Response, receive: Receive, send: Send) -> None:
    """Send a response as one start and one body message, or chunk by chunk until the client disconnects."""
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    if response.stream is not None:
        await _send_stream(response.stream, receive, send)
    await send({"type": "http.response.body", "body": response.body, "more_body": False})


async def _send_stream(pieces: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> None:
    sending, disconnected = (
        asyncio.create_task(_send_pieces(pieces, send)),
        asyncio.create_task(_wait_for_disconnect(receive)),
    )
    try:
        await asyncio.wait((sending, disconnected), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, disconnected):
            task.cancel()
        ended, _ = await asyncio.gather(sending, disconnected, return_exceptions=True)
    if isinstance(ended, Exception):
        LOG.warning("stream failed: %r", ended)


async def _send_pieces(pieces: AsyncGenerator[bytes, None], send: Send) -> None:
    """Send the chunks. Raises TimeoutError if the client reads nothing for too long."""
    async with aclosing(pieces):
        async for piece in pieces:
            async with asyncio.timeout(SEND_SECONDS):
                await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _is_target(path: str) -> bool:
    """Return whether a request target is a path, `*` or a valid URL (RFC 9112 §3.2)."""
    try:
        return path == "*" or bool(urlsplit(path).netloc)
    except ValueError:
        return False


def is_api(path: str) -> bool:
    """Return whether the path belongs to the API."""
    return path.startswith("/v1/") or path == "/v1"


_BODY = "joinery.body"


def body_of(scope: Any) -> IncomingBody:
    """Return the unread body of a request that came through Quart."""
    body: IncomingBody = scope[_BODY]
    return body


class FastPathMiddleware:
    """ASGI middleware (`app.asgi_app = FastPathMiddleware(app.asgi_app, …)`, a documented hook of Quart).

    GET and HEAD under /v1 have no body, so they need nothing that Quart adds. Bodies are withheld from Quart, which would
    read them too early. `objects`, if given, serves /objects/, because uploads must be read no faster than they are
    stored. `places` maps exact paths to ASGI applications.
    """

    def __init__(
        self,
        quart: Asgi,
        pipeline: Pipeline,
        objects: Asgi | None = None,
        places: Mapping[str, Asgi] = MappingProxyType({}),
        schema: SchemaCheck | None = None,
    ) -> None:
        self._quart = quart
        self._pipeline = pipeline
        self._objects = objects
        self._places = places
        self._schema = schema

    async def _answer_object(self, objects: Asgi, scope: Scope, receive: Receive, send: Send) -> None:
        began, status, request_id = perf_counter(), 0, ""

        async def send_observed(message: Any) -> None:
            nonlocal status, request_id
            if message["type"] == "http.response.start":
                status = message["status"]
                request_id = dict(message["headers"]).get(b"request-id", b"").decode()
            await send(message)

        try:
            await objects(scope, receive, send_observed)
        finally:
            self._pipeline.access_log(scope["method"], "/objects/{key}", status, perf_counter() - began, request_id)

    def _refusal(self, scope: Scope, path: str) -> DomainError | None:
        """Return the error of a request that must not be routed, or None."""
        for name, value in scope["headers"]:
            if name == b"host" and not _HOST.fullmatch(value):
                return InvalidRequest("The Host header is not a valid host and port.")
        if not path.startswith("/") and not _is_target(path):
            return InvalidRequest("The request target is not a path or a valid URL.")
        if self._schema is not None and self._schema.fault and path not in UNGATED:
            return SchemaMismatch()
        return None

    def _refuse(self, error: DomainError, scope: Scope) -> Response:
        """Reject a request before routing; count and log it under the route `unknown`."""
        began, request_id = perf_counter(), new_id("req")
        response = self._pipeline.problems.answer(error, request_id)
        response.headers.append((b"request-id", request_id.encode()))
        seconds = perf_counter() - began
        self._pipeline.metrics.seen(scope["method"], "unknown", response.status, seconds)
        self._pipeline.access_log(scope["method"], "unknown", response.status, seconds, request_id)
        return response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one ASGI connection."""
        if scope["type"] == "http":
            path: str = scope["path"]
            if (refusal := self._refusal(scope, path)) is not None:
                await send_response(self._refuse(refusal, scope), receive, send)
                return
            if scope["method"] in READS and is_api(path):
                request = from_scope(scope, no_body)
                if "content-length" in request.headers or "transfer-encoding" in request.headers:
                    send = IncomingBody(receive).answering(send)
                await send_response(await self._pipeline.answer(request), receive, send)
                return
            if self._objects is not None and path.startswith("/objects/"):
                await self._answer_object(self._objects, scope, receive, send)
                return
            if (place := self._places.get(path)) is not None:
                await place(scope, receive, send)
                return
            scope[_BODY] = body = IncomingBody(receive)
            receive, send = body.receive, body.answering(send)
        await self._quart(scope, receive, send)
