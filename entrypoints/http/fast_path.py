"""The way in: reads go straight to the pipeline, everything else through Quart to the very same pipeline."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import aclosing
from types import MappingProxyType
from typing import Any, Final

from entrypoints.http.connections import SEND_SECONDS
from entrypoints.http.exchange import Response, from_scope, no_body
from entrypoints.http.incoming_body import IncomingBody, Receive, Send
from entrypoints.http.pipeline import Pipeline

Scope = MutableMapping[str, Any]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]

READS: Final = frozenset({"GET", "HEAD"})
LOG: Final = logging.getLogger("joinery.http")


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


def is_api(path: str) -> bool:
    """Whether the path belongs to the API."""
    return path.startswith("/v1/") or path == "/v1"


_BODY: Final = "joinery.body"


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
    ) -> None:
        self._quart = quart
        self._pipeline = pipeline
        self._objects = objects
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the server."""
        if scope["type"] == "http":
            path = scope["path"]
            if scope["method"] in READS and is_api(path):
                request = from_scope(scope, no_body)
                if "content-length" in request.headers or "transfer-encoding" in request.headers:
                    send = IncomingBody(receive).answering(send)
                await send_response(await self._pipeline.answer(request), receive, send)
                return
            if self._objects is not None and path.startswith("/objects/"):
                await self._objects(scope, receive, send)
                return
            if (place := self._places.get(path)) is not None:
                await place(scope, receive, send)
                return
            scope[_BODY] = body = IncomingBody(receive)
            receive, send = body.receive, body.answering(send)
        await self._quart(scope, receive, send)
