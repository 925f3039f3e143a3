"""The way in: reads go straight to the pipeline, everything else through Quart to the very same pipeline."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

from entrypoints.http.exchange import Response, from_scope, no_body
from entrypoints.http.pipeline import Pipeline

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Any, Any, Any], Awaitable[None]]

READS: Final = frozenset({"GET", "HEAD"})


async def send_response(response: Response, send: Send) -> None:
    """Send a response in one start and one body message."""
    await send({"type": "http.response.start", "status": response.status, "headers": response.headers})
    await send({"type": "http.response.body", "body": response.body, "more_body": False})


def is_api(path: str) -> bool:
    """Whether the path belongs to the API."""
    return path.startswith("/v1/") or path == "/v1"


class Lane:
    """ASGI middleware (`app.asgi_app = Lane(app.asgi_app, …)`, a documented hook of Quart).

    GET and HEAD under /v1 have no body worth reading, so they need nothing that Quart adds. `objects`, when given,
    answers /objects/ itself, because uploads must be read no faster than they can be stored.
    """

    def __init__(self, quart: Asgi, pipeline: Pipeline, objects: Asgi | None = None) -> None:
        self._quart = quart
        self._pipeline = pipeline
        self._objects = objects

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the server."""
        if scope["type"] == "http":
            path = scope["path"]
            if scope["method"] in READS and is_api(path):
                await send_response(await self._pipeline.answer(from_scope(scope, no_body)), send)
                return
            if self._objects is not None and path.startswith("/objects/"):
                await self._objects(scope, receive, send)
                return
        await self._quart(scope, receive, send)
