"""Serves the operators' page: to this machine alone, and to nobody who comes by another name or through a proxy."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

from entrypoints.console.rendering import STATIC, environment, static_files
from entrypoints.console.security import GUARDED, content_policy
from entrypoints.dependencies import Dependencies
from entrypoints.http.addresses import Proxies
from entrypoints.http.connections import serve
from entrypoints.http.exchange import Response
from entrypoints.http.listening import hypercorn_config
from entrypoints.operators.overview import Looking

HOST: Final = "127.0.0.1"
NAMES: Final = ("127.0.0.1", "localhost", "[::1]")
MOST: Final = 50
"""Connections at a time."""
LOG: Final = logging.getLogger("joinery.operators")


class OperatorsPage:
    """An ASGI application of one page.

    It asks for no sign-in: who works on this machine may look. So it answers only to its own names, or a page elsewhere could
    have a browser here ask in its name (DNS rebinding), and only to requests that come from here directly.
    """

    def __init__(self, dependencies: Dependencies, port: int) -> None:
        self._looking = Looking(dependencies)
        self._hosts = frozenset(f"{name}:{port}" for name in NAMES) | (frozenset(NAMES) if port == 80 else frozenset())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request; the server's beginning and end need nothing."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await _send(scope, send, await self._answer(scope))

    async def _answer(self, scope: Any) -> Response:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope.get("client")
        if not self._is_own(client[0] if client else "", headers):
            return _plain(421, "This page answers on this machine's own address only, asked directly.")
        if scope["method"] not in ("GET", "HEAD"):
            return _plain(405, "This page is only looked at.")
        path: str = scope["path"]
        if path.startswith(STATIC):
            found = static_files().find(path)
            return found or _plain(404, "There is no such file.")
        if path != "/":
            return _plain(404, "There is one page, at /.")
        return await self._page()

    def _is_own(self, peer: str, headers: Mapping[str, str]) -> bool:
        site = headers.get("sec-fetch-site", "none")
        return (
            Proxies.is_local(peer, headers)
            and headers.get("host", "").lower() in self._hosts
            and site in ("none", "same-origin")
        )

    async def _page(self) -> Response:
        overview = await self._looking.look()
        text = environment().get_template("operators/overview.html").render(seen=overview, theme="")
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"content-security-policy", content_policy()),
            *GUARDED,
        ]
        return Response(200, headers, text.encode("utf-8", "replace"))


@contextlib.asynccontextmanager
async def operators_page(dependencies: Dependencies, port: int) -> AsyncIterator[None]:
    """Serve it on a port (none for 0) for as long as the context lasts.

    A port that is taken is told and passed over: no API ends because nobody can look at it.
    """
    if not port:
        yield
        return
    try:
        config = hypercorn_config(HOST, port)
    except OSError as error:
        LOG.error("no operators' page on %s port %d: %s", HOST, port, error)  # noqa: TRY400  where it stands says nothing
        yield
        return
    stop = asyncio.Event()

    async def stopped() -> None:
        await stop.wait()

    task = asyncio.create_task(
        serve(OperatorsPage(dependencies, port), config, stopped, most=MOST), name="operators' page"
    )
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(task, return_exceptions=True)


def _plain(status: int, text: str) -> Response:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *GUARDED]
    return Response(status, headers, text.encode())


async def _send(scope: Any, send: Any, answer: Response) -> None:
    headers = [(name, value) for name, value in answer.headers if name != b"content-length"]
    headers.append((b"content-length", str(len(answer.body)).encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else answer.body})


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
