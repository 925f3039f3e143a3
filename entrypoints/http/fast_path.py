"""Entry point of all requests: reads of the API go directly to the pipeline, other requests to Quart."""

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
from entrypoints.http.connections import MAX_SEND_SECONDS
from entrypoints.http.exchange import Response, build_request, read_no_body
from entrypoints.http.pipeline import Pipeline

Scope = MutableMapping[str, Any]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]

SCHEMA_INDEPENDENT_PATHS = frozenset({"/healthz", "/readyz", "/metrics", "/status"})
"""Paths that are served even if the database schema does not fit this release, because they report the problem."""
_HOST = re.compile(
    rb"(?:(?:[A-Za-z0-9_-]{1,63}\.){0,126}[A-Za-z0-9_-]{1,63}\.?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?"
)
"""Pattern of a DNS name or IP address with an optional port (RFC 3986 §3.2.2); routing fails for any other host."""
READS = frozenset({"GET", "HEAD"})
LOG = logging.getLogger("joinery.http")


async def send_response(response: Response, receive: Receive, send: Send) -> None:
    """Send a response: a body as one message, a stream chunk by chunk until the client disconnects."""
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    if response.stream is not None:
        await _send_stream(response.stream, receive, send)
    await send({"type": "http.response.body", "body": response.body, "more_body": False})


async def _send_stream(chunks: AsyncGenerator[bytes, None], receive: Receive, send: Send) -> None:
    sending, disconnected = (
        asyncio.create_task(_send_chunks(chunks, send)),
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


async def _send_chunks(chunks: AsyncGenerator[bytes, None], send: Send) -> None:
    """Send the chunks. Raises TimeoutError if sending one chunk takes longer than MAX_SEND_SECONDS."""
    async with aclosing(chunks):
        async for chunk in chunks:
            async with asyncio.timeout(MAX_SEND_SECONDS):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _is_valid_target(target: str) -> bool:
    """Return whether a request target that is not a path is `*` or a valid URL (RFC 9112 §3.2)."""
    try:
        return target == "*" or bool(urlsplit(target).netloc)
    except ValueError:
        return False


def is_api_path(path: str) -> bool:
    """Return whether the path belongs to the API."""
    return path.startswith("/v1/") or path == "/v1"


_BODY = "joinery.body"


def get_body(scope: Any) -> IncomingBody:
    """Return the unread body of a request that Quart handles."""
    body: IncomingBody = scope[_BODY]
    return body


class FastPathMiddleware:
    """ASGI middleware that handles reads of the API without Quart.

    Usage: `app.asgi_app = FastPathMiddleware(app.asgi_app, …)`.
    Quart does not read the bodies of other requests; handlers read them by `get_body`.

    Args:
        quart: The ASGI application of Quart, for all other requests.
        pipeline: The pipeline of the API.
        objects: The application that serves /objects/, or None if the object store serves objects itself.
        app_by_path: Further applications, by exact path.
        schema: The check that the database schema fits this release.
    """

    def __init__(
        self,
        quart: Asgi,
        pipeline: Pipeline,
        objects: Asgi | None = None,
        app_by_path: Mapping[str, Asgi] = MappingProxyType({}),
        schema: SchemaCheck | None = None,
    ) -> None:
        self._quart = quart
        self._pipeline = pipeline
        self._objects = objects
        self._app_by_path = app_by_path
        self._schema = schema

    async def _serve_object(self, objects: Asgi, scope: Scope, receive: Receive, send: Send) -> None:
        started_at, status, request_id = perf_counter(), 0, ""

        async def send_and_record_status(message: Any) -> None:
            nonlocal status, request_id
            if message["type"] == "http.response.start":
                status = message["status"]
                request_id = dict(message["headers"]).get(b"request-id", b"").decode()
            await send(message)

        try:
            await objects(scope, receive, send_and_record_status)
        finally:
            self._pipeline.access_log(
                scope["method"], "/objects/{key}", status, perf_counter() - started_at, request_id
            )

    def _find_rejection(self, scope: Scope, path: str) -> DomainError | None:
        """Return the error for a request that must be rejected before routing, else None."""
        for name, value in scope["headers"]:
            if name == b"host" and not _HOST.fullmatch(value):
                return InvalidRequest("The Host header is not a valid host and port.")
        if not path.startswith("/") and not _is_valid_target(path):
            return InvalidRequest("The request target is not a path or a valid URL.")
        if self._schema is not None and self._schema.incompatibility and path not in SCHEMA_INDEPENDENT_PATHS:
            return SchemaMismatch()
        return None

    def _reject(self, error: DomainError, scope: Scope) -> Response:
        """Return the response to a rejected request, which is counted and logged under the route `unknown`."""
        started_at, request_id = perf_counter(), new_id("req")
        response = self._pipeline.problems.respond(error, request_id)
        response.headers.append((b"request-id", request_id.encode()))
        seconds = perf_counter() - started_at
        self._pipeline.metrics.record_request(scope["method"], "unknown", response.status, seconds)
        self._pipeline.access_log(scope["method"], "unknown", response.status, seconds, request_id)
        return response

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or another ASGI connection."""
        if scope["type"] == "http":
            path: str = scope["path"]
            if (refusal := self._find_rejection(scope, path)) is not None:
                await send_response(self._reject(refusal, scope), receive, send)
                return
            if scope["method"] in READS and is_api_path(path):
                request = build_request(scope, read_no_body)
                if "content-length" in request.headers or "transfer-encoding" in request.headers:
                    body = IncomingBody(receive)
                    receive, send = body.receive, body.wrap_send(send)
                await send_response(await self._pipeline.process_request(request), receive, send)
                return
            if self._objects is not None and path.startswith("/objects/"):
                await self._serve_object(self._objects, scope, receive, send)
                return
            if (app := self._app_by_path.get(path)) is not None:
                await app(scope, receive, send)
                return
            scope[_BODY] = body = IncomingBody(receive)
            receive, send = body.receive_after_body, body.wrap_send(send)
        await self._quart(scope, receive, send)
