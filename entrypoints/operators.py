"""The operators' page: an overview of the service, served on its own port to this machine only."""

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
"""Maximum seconds for reading a part."""
MESSAGES = 30
FRESH = timedelta(seconds=2)
"""Time for which an overview is cached."""


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """A part of the overview: its data, or the reason why it could not be read."""

    found: T | None
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """A message to a person with its text, which is empty after sending."""

    message: OutgoingMessage
    text: str


@dataclass(frozen=True, slots=True)
class Overview:
    """All parts, as of `now`. `sends` is whether email is sent automatically."""

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
        """True if more jobs may be waiting than were counted."""
        return bool(sum(one.waiting + one.held for one in self.backlog.found or ()) >= JOBS)


class OverviewReader:
    """Reader of the overview."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._parts = dependencies
        self._ready = Ready(dependencies[Readiness])
        self._lock, self._latest = asyncio.Lock(), cast("Overview | None", None)
        self._platform = dependencies[PlatformService]

    async def read(self) -> Overview:
        """Return the overview; concurrent and immediately following requests share one."""
        async with self._lock:
            now = self._parts[Clock].now()
            if self._latest is None or not self._latest.now <= now < self._latest.now + FRESH:
                self._latest = await self._read_all(now)
            return self._latest

    async def _read_all(self, now: datetime) -> Overview:
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
        return [Message(one, _decrypt(box, one)) for one in await box.latest(MESSAGES)]


def _decrypt(box: Any, message: OutgoingMessage) -> str:
    try:
        return str(box.text(message))
    except ValueError:
        return "(The text cannot be decrypted, as its key is missing.)"


async def _read_part(found: Awaitable[T]) -> Part[T]:
    try:
        async with asyncio.timeout(SECONDS):
            return Part(await found)
    except TimeoutError:
        return Part(None, f"No data: the query took more than {SECONDS:g} seconds.")
    except Exception as error:
        return Part(None, f"No data: {error or type(error).__name__}")


HOST = "127.0.0.1"
NAMES = ("127.0.0.1", "localhost", "[::1]")
MOST = 50
"""Maximum number of connections."""
LOG = logging.getLogger("joinery.operators")


class OperatorsPage:
    """An ASGI application with one page.

    The page needs no sign-in, as everyone on this machine may see it. It therefore accepts only direct requests from this
    machine under its own host names, which prevents DNS rebinding by other sites.
    """

    def __init__(self, dependencies: Dependencies, port: int) -> None:
        self._reader = OverviewReader(dependencies)
        self._hosts = frozenset(f"{name}:{port}" for name in NAMES) | (frozenset(NAMES) if port == 80 else frozenset())

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle an HTTP request or the lifespan events."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
        elif scope["type"] == "http":
            await _send(scope, send, await self._answer(scope))

    async def _answer(self, scope: Any) -> Response:
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope.get("client")
        if not self._is_own(client[0] if client else "", headers):
            return _plain(
                421, "This page is available on this machine only. Open it directly at 127.0.0.1 or localhost."
            )
        if scope["method"] not in ("GET", "HEAD"):
            return _plain(405, "This page only supports GET and HEAD.")
        path: str = scope["path"]
        if path.startswith(STATIC):
            found = static_files().find(path)
            return found or _plain(404, "File not found.")
        if path != "/":
            return _plain(404, "Page not found. The only page is at /.")
        return await self._page()

    def _is_own(self, peer: str, headers: Mapping[str, str]) -> bool:
        site = headers.get("sec-fetch-site", "none")
        return (
            Proxies.is_local(peer, headers)
            and headers.get("host", "").lower() in self._hosts
            and site in ("none", "same-origin")
        )

    async def _page(self) -> Response:
        overview = await self._reader.read()
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
    """Serve the operators' page on a port while the context lasts; port 0 disables it.

    An occupied port is logged and ignored, so that it does not stop the API.
    """
    if not port:
        yield
        return
    try:
        config = hypercorn_config(HOST, port)
    except OSError as error:
        LOG.error("no operators' page on %s port %d: %s", HOST, port, error)  # noqa: TRY400  the traceback adds nothing
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
