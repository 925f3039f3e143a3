"""Operators' page: an overview of the service on its own port, for this machine only."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, cast

from domain.jobs.ports import Dispatch
from domain.outbox.model import OutgoingMessage
from domain.outbox.usecases import OutgoingMail
from domain.platform.ports import Workload
from domain.platform.usecases import PlatformService
from domain.platform.workload import JOBS
from entrypoints.console.rendering import STATIC, environment, static_files
from entrypoints.console.security import GUARDED, content_policy
from entrypoints.dependencies import Dependencies, Readiness
from entrypoints.http.addresses import Proxies
from entrypoints.http.connections import hypercorn_config, serve
from entrypoints.http.exchange import Response
from entrypoints.http.health import Ready
from ports.clock import Clock

T = TypeVar("T")
SECONDS = 4.0
"""Maximum seconds to read one part."""
MESSAGES = 30
FRESH = timedelta(seconds=2)
"""Time for which an overview is shown again."""


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """Result of reading a part, or the reason of a failure."""

    found: T | None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """Message to a person with its text, which is empty after sending."""

    message: OutgoingMessage
    text: str


@dataclass(frozen=True, slots=True)
class Overview:
    """All parts as of `now`. `sends`: whether mail is sent automatically."""

    now: datetime
    readiness: Part[Any]
    status: Part[Any]
    backlog: Part[Any]
    tenants: Part[Any]
    slowest: Part[Any]
    troubled: Part[Any]
    mail: Part[Sequence[Message]]
    sends: bool

    @property
    def cut(self) -> bool:
        """Whether more work may wait than was read."""
        return bool(sum(row.waiting + row.held for row in self.backlog.found or ()) >= JOBS)


class Looking:
    """Reader of the overview."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._parts = dependencies
        self._ready = Ready(dependencies[Readiness])
        self._lock, self._latest = asyncio.Lock(), cast("Overview | None", None)
        self._platform = dependencies[PlatformService]

    async def look(self) -> Overview:
        """Return the overview; concurrent and immediately following calls share one."""
        async with self._lock:
            now = self._parts[Clock].now()
            if self._latest is None or not self._latest.now <= now < self._latest.now + FRESH:
                self._latest = await self._read(now)
            return self._latest

    async def _read(self, now: datetime) -> Overview:
        """Read all parts concurrently."""
        parts = self._parts
        reads: list[Awaitable[Part[Any]]] = [
            _read_part(self._ready.look()),
            _read_part(self._platform.status()),
            _read_part(parts[Dispatch].backlog(JOBS)),
            _read_part(parts[Workload].tenants(now)),
            _read_part(parts[Workload].slowest()),
            _read_part(parts[Workload].troubled()),
            _read_part(self._messages()),
        ]
        names = ("readiness", "status", "backlog", "tenants", "slowest", "troubled", "mail")
        found: dict[str, Part[Any]] = dict(zip(names, await asyncio.gather(*reads), strict=True))
        return Overview(now=now, sends=parts[OutgoingMail].sends, **found)

    async def _messages(self) -> Sequence[Message]:
        box = self._parts[OutgoingMail]
        return [Message(row, _message_text(box, row)) for row in await box.latest(MESSAGES)]


def _message_text(box: Any, message: OutgoingMessage) -> str:
    try:
        return str(box.text(message))
    except ValueError:
        return "(Not readable: it was encrypted with a secret that is not available.)"


async def _read_part(result: Awaitable[T]) -> Part[T]:
    try:
        async with asyncio.timeout(SECONDS):
            return Part(await result)
    except TimeoutError:
        return Part(None, "The check timed out.")
    except Exception as error:
        return Part(None, f"The check failed: {error or type(error).__name__}")


HOST = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost", "[::1]")
MOST = 50
"""Maximum connections."""
LOG = logging.getLogger("joinery.operators")


class OperatorsPage:
    """ASGI application of one page.

    The page requires no sign-in, because everyone with access to this machine may see it. So it responds only under its own
    host names, against requests by foreign pages in a local browser (DNS rebinding), and only to direct local requests.
    """

    def __init__(self, dependencies: Dependencies, port: int) -> None:
        self._looking = Looking(dependencies)
        self._hosts = frozenset(f"{name}:{port}" for name in NAMES) | (frozenset(NAMES) if port == 80 else frozenset())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request; lifespan events need no action."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await _send(scope, send, await self._answer(scope))

    async def _answer(self, scope: Any) -> Response:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope.get("client")
        if not self._is_own(client[0] if client else "", headers):
            return _plain(421, "This page responds to direct requests to this machine's own address only.")
        if scope["method"] not in ("GET", "HEAD"):
            return _plain(405, "This page supports GET and HEAD only.")
        path: str = scope["path"]
        if path.startswith(STATIC):
            found = static_files().find(path)
            return found or _plain(404, "This file does not exist.")
        if path != "/":
            return _plain(404, "This page does not exist. The only page is /.")
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
    """Serve the page on a port (0 for none) during the context.

    A port in use is logged and ignored, so that the API still starts.
    """
    if not port:
        yield
        return
    try:
        config = hypercorn_config(HOST, port)
    except OSError as error:
        LOG.error("no operators' page on %s port %d: %s", HOST, port, error)  # noqa: TRY400  a traceback would not help
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
