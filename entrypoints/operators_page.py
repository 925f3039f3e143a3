"""Operators' page: an overview of the service on a separate port, which only this machine can open."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar, cast

from domain.billing.model import BillingAccount, Invoice
from domain.billing.ports import BillingRegistry, BillingStore
from domain.jobs.ports import JobDispatcher
from domain.orgs.ports import OrgRegistry
from domain.outbox.model import OutgoingMessage
from domain.outbox.usecases import OutgoingMail
from domain.platform.ports import Workload
from domain.platform.usecases import PlatformService
from domain.platform.workload import MAX_EXAMINED_JOBS
from entrypoints.console.rendering import STATIC_PATH, get_environment, get_static_files
from entrypoints.console.security import SECURITY_HEADERS, build_content_policy
from entrypoints.dependencies import Dependencies, ReadinessChecks
from entrypoints.http.addresses import TrustedProxies
from entrypoints.http.connections import create_hypercorn_config, serve
from entrypoints.http.exchange import Response
from entrypoints.http.health import ReadinessEndpoint
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork

T = TypeVar("T")
MAX_READ_SECONDS = 4.0
"""Maximum number of seconds for reading a part of the overview."""
MAX_MESSAGES = 30
"""Maximum number of outgoing emails in the overview; older ones are omitted."""
MAX_ARREARS = 50
"""Maximum number of accounts in arrears in the overview; those with the latest end of the grace period are omitted."""
CACHE_PERIOD = timedelta(seconds=2)
"""Time for which an overview is cached."""


@dataclass(frozen=True, slots=True)
class OverviewPart(Generic[T]):
    """Part of the overview: the data, or the reason why the data could not be read (`error`)."""

    value: T | None
    error: str = ""


@dataclass(frozen=True, slots=True)
class OverviewMessage:
    """Outgoing email with its decrypted text, which is empty after the email was sent."""

    message: OutgoingMessage
    text: str


@dataclass(frozen=True, slots=True)
class AccountInArrears:
    """Billing account with a failed payment; `name` is that of the organisation, `invoice` the oldest overdue one."""

    org: str
    name: str
    account: BillingAccount
    invoice: Invoice | None


@dataclass(frozen=True, slots=True)
class Overview:
    """Data of the operators' page.

    Attributes:
        now: The time at which the data were read.
        readiness: Whether each dependency of the service is available.
        status: The components and incidents of the public status page.
        backlog: The numbers of due and running jobs, by kind of lane (group of jobs that run one after the other).
        tenants: The organisations by load, highest first.
        slowest: The sources whose newest runs took longest.
        troubled: The degraded and blocked sources.
        mail: The latest outgoing emails.
        arrears: The billing accounts with a failed payment.
        sends_mail: Whether the service has a mail server to which it sends emails.
    """

    now: datetime
    readiness: OverviewPart[Any]
    status: OverviewPart[Any]
    backlog: OverviewPart[Any]
    tenants: OverviewPart[Any]
    slowest: OverviewPart[Any]
    troubled: OverviewPart[Any]
    mail: OverviewPart[Sequence[OverviewMessage]]
    arrears: OverviewPart[Sequence[AccountInArrears]]
    sends_mail: bool

    @property
    def is_truncated(self) -> bool:
        """True if the backlog may be incomplete, because counting stopped at MAX_EXAMINED_JOBS jobs."""
        return bool(sum(one.waiting_count + one.running_count for one in self.backlog.value or ()) >= MAX_EXAMINED_JOBS)


class OverviewReader:
    """Reader of the data of the operators' page."""

    def __init__(self, dependencies: Dependencies) -> None:
        self._parts = dependencies
        self._readiness = ReadinessEndpoint(dependencies[ReadinessChecks])
        self._lock, self._latest = asyncio.Lock(), cast("Overview | None", None)
        self._platform = dependencies[PlatformService]

    async def read(self) -> Overview:
        """Return the overview, which is cached for CACHE_PERIOD; concurrent callers wait for the same overview."""
        async with self._lock:
            now = self._parts[Clock].now()
            if self._latest is None or not self._latest.now <= now < self._latest.now + CACHE_PERIOD:
                self._latest = await self._read_all(now)
            return self._latest

    async def _read_all(self, now: datetime) -> Overview:
        """Read all parts of the overview concurrently."""
        parts = self._parts
        reads: list[Awaitable[OverviewPart[Any]]] = [
            _read_part(self._readiness.check()),
            _read_part(self._platform.get_status()),
            _read_part(parts[JobDispatcher].count_backlog(MAX_EXAMINED_JOBS)),
            _read_part(parts[Workload].list_tenants(now)),
            _read_part(parts[Workload].list_slowest_sources()),
            _read_part(parts[Workload].list_failing_sources()),
            _read_part(self._read_messages()),
            _read_part(self._read_arrears()),
        ]
        names = ("readiness", "status", "backlog", "tenants", "slowest", "troubled", "mail", "arrears")
        found: dict[str, OverviewPart[Any]] = dict(zip(names, await asyncio.gather(*reads), strict=True))
        return Overview(now=now, sends_mail=parts[OutgoingMail].sends_messages, **found)

    async def _read_messages(self) -> Sequence[OverviewMessage]:
        """Return the latest outgoing emails with their texts."""
        outbox = self._parts[OutgoingMail]
        return [
            OverviewMessage(message, _decrypt_text(outbox, message))
            for message in await outbox.list_latest(MAX_MESSAGES)
        ]

    async def _read_arrears(self) -> Sequence[AccountInArrears]:
        """Return the accounts with a failed payment, by the end of the grace period."""
        accounts = (await self._parts[BillingRegistry].list_arrears())[:MAX_ARREARS]
        names = await self._parts[OrgRegistry].find_names([tenant.org for tenant, _ in accounts])
        found = []
        for tenant, account in accounts:
            async with self._parts[UnitOfWork].begin_reading(tenant) as tx:
                invoice = await tx[BillingStore].find_overdue_invoice()
            found.append(AccountInArrears(tenant.org, names.get(tenant.org, ""), account, invoice))
        return found


def _decrypt_text(outbox: Any, message: OutgoingMessage) -> str:
    """Return the text of an email, or a note that the text cannot be decrypted."""
    try:
        return str(outbox.decrypt_text(message))
    except ValueError:
        return "(The text cannot be decrypted, because the key is missing.)"


async def _read_part(value: Awaitable[T]) -> OverviewPart[T]:
    """Await the data of a part of the overview; if this fails or takes too long, return the error."""
    try:
        async with asyncio.timeout(MAX_READ_SECONDS):
            return OverviewPart(await value)
    except TimeoutError:
        return OverviewPart(None, f"No data: the query took more than {MAX_READ_SECONDS:g} seconds.")
    except Exception as error:
        return OverviewPart(None, f"No data: {error or type(error).__name__}")


HOST = "127.0.0.1"
"""IP address on which the page is served."""
HOST_NAMES = ("127.0.0.1", "localhost", "[::1]")
"""Host names under which the page can be opened."""
MAX_CONNECTIONS = 50
"""Maximum number of open connections to the page."""
LOG = logging.getLogger("joinery.operators")


class OperatorsPage:
    """ASGI application of the operators' page, which everybody on this machine can open without signing in.

    It accepts only direct requests from this machine with the host names in HOST_NAMES, so that websites cannot read the page
    by DNS rebinding.
    """

    def __init__(self, dependencies: Dependencies, port: int) -> None:
        self._reader = OverviewReader(dependencies)
        self._hosts = frozenset(f"{name}:{port}" for name in HOST_NAMES) | (
            frozenset(HOST_NAMES) if port == 80 else frozenset()
        )

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle an HTTP request, or the start and shutdown of the server."""
        if scope["type"] == "lifespan":
            await _confirm_lifespan(receive, send)
        elif scope["type"] == "http":
            await _send(scope, send, await self._respond(scope))

    async def _respond(self, scope: Any) -> Response:
        """Return the response to a request: the page, a static file or an error."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        client = scope.get("client")
        if not self._is_allowed(client[0] if client else "", headers):
            return _build_text_response(
                421, "This page is available on this machine only. Open it directly at 127.0.0.1 or localhost."
            )
        if scope["method"] not in ("GET", "HEAD"):
            return _build_text_response(405, "This page only supports GET and HEAD.")
        path: str = scope["path"]
        if path.startswith(STATIC_PATH):
            found = get_static_files().find(path)
            return found or _build_text_response(404, "File not found.")
        if path != "/":
            return _build_text_response(404, "Page not found. The only page is at /.")
        return await self._render_page()

    def _is_allowed(self, peer: str, headers: Mapping[str, str]) -> bool:
        """Return whether a request is directly from this machine, names an allowed host, and is from no other site.

        Args:
            peer: The IP address of the client.
            headers: The headers by lower-case name.
        """
        site = headers.get("sec-fetch-site", "none")
        return (
            TrustedProxies.is_local(peer, headers)
            and headers.get("host", "").lower() in self._hosts
            and site in ("none", "same-origin")
        )

    async def _render_page(self) -> Response:
        overview = await self._reader.read()
        text = get_environment().get_template("operators/overview.html").render(overview=overview, theme="")
        headers = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"cache-control", b"no-store"),
            (b"content-security-policy", build_content_policy()),
            *SECURITY_HEADERS,
        ]
        return Response(200, headers, text.encode("utf-8", "replace"))


@contextlib.asynccontextmanager
async def serve_operators_page(dependencies: Dependencies, port: int) -> AsyncIterator[None]:
    """Serve the operators' page on a port of this machine during the context.

    If the port is 0, the page is not served. If the port is in use, this is logged and the page is not served.
    """
    if not port:
        yield
        return
    try:
        config = create_hypercorn_config(HOST, port)
    except OSError as error:  # must not stop the API
        LOG.error("operators' page not served on %s port %d: %s", HOST, port, error)  # noqa: TRY400  the traceback adds nothing
        yield
        return
    stop = asyncio.Event()

    async def wait_for_stop() -> None:
        await stop.wait()

    task = asyncio.create_task(
        serve(OperatorsPage(dependencies, port), config, wait_for_stop, max_connections=MAX_CONNECTIONS),
        name="operators' page",
    )
    try:
        yield
    finally:
        stop.set()
        await asyncio.gather(task, return_exceptions=True)


def _build_text_response(status: int, text: str) -> Response:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store"), *SECURITY_HEADERS]
    return Response(status, headers, text.encode())


async def _send(scope: Any, send: Any, response: Response) -> None:
    """Send a response as ASGI messages, without a body for HEAD."""
    headers = [(name, value) for name, value in response.headers if name != b"content-length"]
    headers.append((b"content-length", str(len(response.body)).encode()))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else response.body})


async def _confirm_lifespan(receive: Any, send: Any) -> None:
    """Confirm the start and the shutdown of the server (ASGI lifespan protocol)."""
    while True:
        message = await receive()
        await send({"type": f"{message['type']}.complete"})
        if message["type"] == "lifespan.shutdown":
            return
