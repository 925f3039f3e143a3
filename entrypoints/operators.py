"""The operators' page: what it shows of the service, served on a port of its own to this machine alone."""

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
"""How long a part may take."""
MESSAGES = 30
FRESH = timedelta(seconds=2)
"""How long what was found is shown again."""


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """What was found, or why nothing was."""

    found: T | None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to a person with its text, which is empty once it was sent."""

    message: OutgoingMessage
    text: str


@dataclass(frozen=True, slots=True)
class Overview:
    """All parts, as of `now`. `sends`: mail leaves by itself."""

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
        """Whether more work may wait than was looked at."""
        return bool(sum(one.waiting + one.held for one in self.backlog.found or ()) >= JOBS)


class Looking:
    """Finds it out."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._parts = dependencies
        self._ready = Ready(dependencies[Readiness])
        self._turn, self._seen = asyncio.Lock(), cast("Overview | None", None)
        self._platform = dependencies[PlatformService]

    async def look(self) -> Overview:
        """Everything; whoever asks at once, or a moment later, is shown the same, so that looking costs what one look does."""
        async with self._turn:
            now = self._parts[Clock].now()
            if self._seen is None or not self._seen.now <= now < self._seen.now + FRESH:
                self._seen = await self._look(now)
            return self._seen

    async def _look(self, now: datetime) -> Overview:
        """Everything, side by side."""
        parts = self._parts
        asked: list[Awaitable[Part[Any]]] = [
            _part(self._ready.look()),
            _part(self._platform.status()),
            _part(parts[Dispatch].backlog(JOBS)),
            _part(parts[Workload].tenants(now)),
            _part(parts[Workload].slowest()),
            _part(parts[Workload].troubled()),
            _part(self._messages()),
        ]
        names = ("readiness", "status", "backlog", "tenants", "slowest", "troubled", "mail")
        found: dict[str, Part[Any]] = dict(zip(names, await asyncio.gather(*asked), strict=True))
        return Overview(now=now, sends=parts[OutgoingMail].sends, **found)

    async def _messages(self) -> Sequence[Message]:
        box = self._parts[OutgoingMail]
        return [Message(one, _opened(box, one)) for one in await box.latest(MESSAGES)]


def _opened(box: Any, message: OutgoingMessage) -> str:
    try:
        return str(box.text(message))
    except ValueError:
        return "(It cannot be opened: it was sealed under a secret that is not at hand.)"


async def _part(found: Awaitable[T]) -> Part[T]:
    try:
        async with asyncio.timeout(SECONDS):
            return Part(await found)
    except TimeoutError:
        return Part(None, "It took too long to find out.")
    except Exception as error:
        return Part(None, f"It cannot be found out: {error or type(error).__name__}")


HOST = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost", "[::1]")
MOST = 50
"""Connections at a time."""
LOG = logging.getLogger("joinery.operators")


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
