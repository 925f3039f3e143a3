"""Guarded HTTP client: vetted addresses, redirects followed one by one, bounded bodies, bounded time."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol, Self, TypeAlias
from urllib.parse import quote, quote_plus, unquote_plus

import aiohttp
from yarl import URL

from adapters.http import errors
from adapters.http.body import Body, Pace, translated
from adapters.http.pacing import Asker, HostPace
from adapters.http.resolver import Lookup, Names, Vetting, guarded_session

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_KEPT_ACROSS = frozenset({"accept", "accept-language", "if-none-match", "if-modified-since"})
_SHORTEST = 4
"""Shortest private text that is searched for in URLs; shorter ones occur by chance."""


class Conditions(Protocol):
    """Validators of a conditional request (RFC 9110 §13)."""

    @property
    def etag(self) -> str | None:
        """Value of If-None-Match."""
        ...

    @property
    def last_modified(self) -> str | None:
        """Value of If-Modified-Since."""
        ...


@dataclass(frozen=True, slots=True)
class Bounds:
    """Time and size limits in seconds and bytes; `wire_bytes` bounds the received, `body_bytes` the decompressed body."""

    total_seconds: float = 3_600.0
    connect_seconds: float = 10.0
    answer_seconds: float = 30.0
    idle_seconds: float = 30.0
    wire_bytes: int = 1024 * 1024 * 1024
    body_bytes: int = 1024 * 1024 * 1024
    redirects: int = 5
    pace: Pace = field(default_factory=Pace)


@dataclass(frozen=True, slots=True)
class Answer:
    """Response whose body is still to be read: decompressed, in chunks. Names in `headers` ignore case."""

    status: int
    headers: Mapping[str, str]
    final_url: str
    chunks: AsyncIterator[bytes]


Told: TypeAlias = Callable[[int, Mapping[str, str]], None]
"""Receives the status and headers of a response."""
Turns: TypeAlias = Callable[[URL], AbstractAsyncContextManager[Told]]
"""Context in which a request to the URL's host may be sent."""


@dataclass(frozen=True, slots=True)
class _RequestPlan:
    """Parts of a request that stay the same across redirects."""

    method: str
    body: bytes | None
    bounds: Bounds
    turns: Turns | None


def _ignore_response(status: int, headers: Mapping[str, str]) -> None:
    """Ignore a response that has no turn."""


class GuardedClient:
    """Guarded client with one connection pool for a process. Use it as an async context, or call close().

    `allowed_hosts` are JOINERY_ALLOW_PRIVATE_HOSTS (`host` or `host:port`); `any_port` permits ports other than 80 and
    443; `lookup` replaces the name service. Every failure is an OutboundError. Requests through `asking` respect the
    `pace` of each host.
    """

    def __init__(
        self,
        *,
        allowed_hosts: frozenset[str] = frozenset(),
        version: str = "0",
        bounds: Bounds | None = None,
        any_port: bool = False,
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
        pace: HostPace | None = None,
    ) -> None:
        allowed = frozenset(name.strip().lower() for name in allowed_hosts if name.strip())
        self._vetting = Vetting(allowed, ports=None) if any_port else Vetting(allowed)
        self._bounds = bounds or Bounds()
        self._agent = f"Joinery/{version}"
        self._lookup = lookup or Names().lookup
        self._tls = tls
        self._pace = pace or HostPace()
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    def asking(self, caller: str, account: frozenset[str]) -> "PacedClient":
        """Return a client for an organisation, signed in by these texts or none, which waits for its turn at each host."""
        return PacedClient(self, self._pace, Asker(caller, account))

    @asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: Conditions | None = None,
        hosts: frozenset[str] | None = None,
        private: frozenset[str] = frozenset(),
        turns: Turns | None = None,
    ) -> AsyncIterator[Answer]:
        """Send a GET request and follow at most `bounds.redirects` redirects, each vetted.

        `hosts` are the only names that may be reached; `private` texts are never sent to another origin than the URL's.
        Raises OutboundError, also while chunks are read.
        """
        sent, most = {**(headers or {}), **_conditions(conditional)}, self._bounds.redirects
        async with self.request(
            "GET", url, headers=sent, hosts=hosts, private=private, redirects=most, turns=turns
        ) as answer:
            yield answer

    @asynccontextmanager
    async def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
        turns: Turns | None = None,
    ) -> AsyncIterator[Answer]:
        async with self.request(
            "POST", url, body=body, headers=headers, hosts=hosts, redirects=0, turns=turns
        ) as answer:
            yield answer

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
        private: frozenset[str] = frozenset(),
        redirects: int = 0,
        bounds: Bounds | None = None,
        turns: Turns | None = None,
    ) -> AsyncIterator[Answer]:
        """Send one request. Raises OutboundError.

        With `redirects` 0, a redirect is returned as the response; more is for GET and HEAD, which are repeated
        unchanged. With `turns`, each host, including that of a redirect, is requested in its turn, which lasts until
        its response is read.
        """
        limits = bounds or self._bounds
        sent = dict(headers or {})
        plan = _RequestPlan(method, body, limits, turns)
        async with AsyncExitStack() as turn:
            response = await self._follow(plan, _parsed(url), sent, hosts, private, redirects, turn)
            try:
                chunks = Body(response, limits.wire_bytes, limits.body_bytes, limits.pace).chunks()
                yield Answer(response.status, response.headers, str(response.url), chunks)
                await chunks.aclose()
            finally:
                response.close()

    async def _follow(
        self,
        plan: _RequestPlan,
        url: URL,
        headers: dict[str, str],
        hosts: frozenset[str] | None,
        private: frozenset[str],
        redirects: int,
        turn: AsyncExitStack,
    ) -> aiohttp.ClientResponse:
        for hop in range(redirects + 1):
            self._vetting.vet(url, hosts)
            report = await turn.enter_async_context(plan.turns(url)) if plan.turns else _ignore_response
            try:
                response = await self._send(plan, url, headers)
            except errors.OutboundError as error:
                error.redirected = hop > 0
                raise
            report(response.status, response.headers)
            target = response.headers.get("Location")
            if not redirects or response.status not in _REDIRECTS or target is None:
                return response
            response.close()
            await turn.aclose()
            following = _joined(url, target)
            if following.origin() != url.origin():
                headers = _kept_across(headers, following, private)
            url = following
        raise errors.RedirectRefused(f"There are more than {redirects} redirects.")

    async def _send(self, plan: _RequestPlan, url: URL, headers: dict[str, str]) -> aiohttp.ClientResponse:
        sent, bounds = {"User-Agent": self._agent, **headers, "Accept-Encoding": "gzip, deflate"}, plan.bounds
        timeout = aiohttp.ClientTimeout(
            total=bounds.total_seconds, sock_connect=bounds.connect_seconds, sock_read=bounds.idle_seconds
        )
        with translated():
            async with asyncio.timeout(bounds.connect_seconds + bounds.answer_seconds):
                return await self._opened().request(
                    plan.method, url, data=plan.body, headers=sent, allow_redirects=False, timeout=timeout
                )

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = guarded_session(self._vetting, self._lookup, self._tls)
        return self._session


@dataclass(frozen=True, slots=True)
class PacedClient:
    """Guarded client of one caller, which waits for a turn at each host. Raises as the client does, and HostBusy."""

    client: GuardedClient
    pace: HostPace
    asker: Asker

    @asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: Conditions | None = None,
        hosts: frozenset[str] | None = None,
        private: frozenset[str] = frozenset(),
    ) -> AsyncIterator[Answer]:
        sent = self.client.get(
            url, headers=headers, conditional=conditional, hosts=hosts, private=private, turns=self._turn
        )
        async with sent as answer:
            yield answer

    @asynccontextmanager
    async def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
    ) -> AsyncIterator[Answer]:
        async with self.client.post(url, body=body, headers=headers, hosts=hosts, turns=self._turn) as answer:
            yield answer

    def _turn(self, url: URL) -> AbstractAsyncContextManager[Told]:
        return self.pace.turn(url, self.asker)


def _parsed(url: str) -> URL:
    try:
        return URL(url)
    except (ValueError, TypeError):
        raise errors.RefusedAddress("The URL is not valid.") from None


def _joined(url: URL, target: str) -> URL:
    """Return the target of a redirect. Raises RedirectRefused for an invalid URL and for leaving https."""
    try:
        following = url.join(URL(target)).with_fragment(None)
    except (ValueError, TypeError):
        raise errors.RedirectRefused("The redirect's target is not a valid URL.") from None
    if url.scheme == "https" and following.scheme == "http":
        raise errors.RedirectRefused("The redirect leads from https to http.")
    return following


def _kept_across(headers: Mapping[str, str], following: URL, private: frozenset[str]) -> dict[str, str]:
    """Return the headers that may go to another origin. Raises RedirectRefused for a URL that contains a private text."""
    spellings = {form for text in private for form in (text, quote(text, safe=""), quote_plus(text))}
    target = f"{following} {unquote_plus(str(following))}".lower()
    if any(text.lower() in target for text in spellings if len(text) >= _SHORTEST):
        raise errors.RedirectRefused("The redirect would take the credentials to another host.")
    kept = {name: value for name, value in headers.items() if name.lower() in _KEPT_ACROSS}
    return {name: value for name, value in kept.items() if not any(text in value for text in private)}


def _conditions(conditional: Conditions | None) -> dict[str, str]:
    if conditional is None:
        return {}
    sent = {"If-None-Match": conditional.etag, "If-Modified-Since": conditional.last_modified}
    return {name: value for name, value in sent.items() if value}
