"""The way in: reads go straight to the pipeline, everything else through Quart to the very same pipeline."""

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
"""Paths that are served although the schema does not fit, because they report it."""
_HOST = re.compile(
    rb"(?:(?:[A-Za-z0-9_-]{1,63}\.){0,126}[A-Za-z0-9_-]{1,63}\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?"
)
"""A DNS name or an address (RFC 3986 §3.2.2). Routing encodes the host by IDNA, which raises for anything else."""
READS = frozenset({"GET", "HEAD"})
LOG = logging.getLogger("joinery.http")


async def send_response(response: Response, receive: Receive, send: Send) -> None:
    """Send a response in one start and one body message, or piece by piece while the client is there."""
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    if response.stream is not None:
        await _send_stream(response.stream, receive, send)
    await send({"type": "http.response.body", "body": response.body, "more_body": False})


async def _send_stream(pieces: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> None:
    sending, gone = asyncio.create_task(_send_pieces(pieces, send)), asyncio.create_task(_disconnected(receive))
    try:
        await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, gone):
            task.cancel()
        ended, _ = await asyncio.gather(sending, gone, return_exceptions=True)
    if isinstance(ended, Exception):
        LOG.warning("a stream broke off: %r", ended)


async def _send_pieces(pieces: AsyncGenerator[bytes, None], send: Send) -> None:
    """Raises TimeoutError when the client takes nothing for too long."""
    async with aclosing(pieces):
        async for piece in pieces:
            async with asyncio.timeout(SEND_SECONDS):
                await send({"type": "http.response.body", "body": piece, "more_body": True})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _is_target(path: str) -> bool:
    """Return whether a request target is a path, `*` or a valid URL (RFC 9112 §3.2)."""
    try:
        return path == "*" or bool(urlsplit(path).netloc)
    except ValueError:
        return False


def is_api(path: str) -> bool:
    """Whether the path belongs to the API."""
    return path.startswith("/v1/") or path == "/v1"


_BODY = "joinery.body"


def body_of(scope: Any) -> IncomingBody:
    """The body of a request that came through Quart: the pipeline takes it, when it has seen who sends it."""
    body: IncomingBody = scope[_BODY]
    return body


class FastPathMiddleware:
    """ASGI middleware (`app.asgi_app = FastPathMiddleware(app.asgi_app, …)`, a documented hook of Quart).

    GET and HEAD under /v1 have no body worth reading, so they need nothing that Quart adds. Bodies are kept from Quart,
    which would take them before anybody asks for them. `objects`, when given, answers /objects/ itself, because
    uploads must be read no faster than they can be stored. `places` answer their very paths themselves.
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

        async def observed(message: Any) -> None:
            nonlocal status, request_id
            if message["type"] == "http.response.start":
                status = message["status"]
                request_id = dict(message["headers"]).get(b"request-id", b"").decode()
            await send(message)

        try:
            await objects(scope, receive, observed)
        finally:
            self._pipeline.access_log(scope["method"], "/objects/{key}", status, perf_counter() - began, request_id)

    def _refusal(self, scope: Scope, path: str) -> DomainError | None:
        """Return why a request is not even routed."""
        for name, value in scope["headers"]:
            if name == b"host" and not _HOST.fullmatch(value):
                return InvalidRequest("The Host header is not a valid host and port.")
        if not path.startswith("/") and not _is_target(path):
            return InvalidRequest("The request target is not a path or a valid URL.")
        if self._schema is not None and self._schema.fault and path not in UNGATED:
            return SchemaMismatch()
        return None

    def _refuse(self, error: DomainError, scope: Scope) -> Response:
        """Reject a request before it is routed; count and log it under the route `unknown`."""
        began, request_id = perf_counter(), new_id("req")
        response = self._pipeline.problems.answer(error, request_id)
        response.headers.append((b"request-id", request_id.encode()))
        seconds = perf_counter() - began
        self._pipeline.metrics.seen(scope["method"], "unknown", response.status, seconds)
        self._pipeline.access_log(scope["method"], "unknown", response.status, seconds, request_id)
        return response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the server."""
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
