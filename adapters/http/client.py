"""HTTP client for untrusted URLs: it vets each address, vets each redirect, and limits the time and the size."""

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
from adapters.http.body import MinimumResponseRate, ResponseBody, translate_http_errors
from adapters.http.host_rate_limiter import HostCaller, HostRateLimiter
from adapters.http.resolver import AddressVetting, Lookup, NameResolver, open_guarded_session

_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})
_CROSS_ORIGIN_HEADERS = frozenset({"accept", "accept-language", "if-none-match", "if-modified-since"})
_MIN_SECRET_LENGTH = 4
"""Minimum number of characters of a secret that is searched for in URLs; a shorter one may occur by chance."""


class RequestValidators(Protocol):
    """Validators of an earlier response, for a conditional request (RFC 9110 §13)."""

    @property
    def etag(self) -> str | None:
        """Value of If-None-Match."""
        ...

    @property
    def last_modified(self) -> str | None:
        """Value of If-Modified-Since."""
        ...


@dataclass(frozen=True, slots=True)
class HttpBounds:
    """Limits of one request and its redirects.

    Attributes:
        total_seconds: Maximum time of the whole request.
        connect_seconds: Maximum time until a connection is established.
        response_seconds: Maximum time from the connection until the response's headers are received.
        idle_seconds: Maximum time between two chunks of the body.
        max_received_bytes: Maximum size of the body as received.
        max_body_bytes: Maximum size of the decompressed body.
        max_redirects: Maximum number of redirects.
        minimum_rate: Minimum rate at which the body must arrive.
    """

    total_seconds: float = 3_600.0
    connect_seconds: float = 10.0
    response_seconds: float = 30.0
    idle_seconds: float = 30.0
    max_received_bytes: int = 1024 * 1024 * 1024
    max_body_bytes: int = 1024 * 1024 * 1024
    max_redirects: int = 5
    minimum_rate: MinimumResponseRate = field(default_factory=MinimumResponseRate)


@dataclass(frozen=True, slots=True)
class StreamedResponse:
    """Response whose body has not been read yet.

    `chunks` yields the decompressed body. In `headers`, the case of names does not matter.
    """

    status: int
    headers: Mapping[str, str]
    final_url: str
    chunks: AsyncIterator[bytes]


ResponseObserver: TypeAlias = Callable[[int, Mapping[str, str]], None]
"""Function that receives the status and headers of a response."""
TurnFactory: TypeAlias = Callable[[URL], AbstractAsyncContextManager[ResponseObserver]]
"""Function that returns a context manager for a turn: the permission to send one request to the URL's host.

Entering the context waits for the turn and returns the observer of the response. Leaving the context ends the turn.
"""


@dataclass(frozen=True, slots=True)
class _RequestPlan:
    """Properties of a request that remain the same for all redirects."""

    method: str
    body: bytes | None
    bounds: HttpBounds
    turns: TurnFactory | None


def _ignore_response(status: int, headers: Mapping[str, str]) -> None:
    """Ignore the response; this is the observer of a request without a turn."""


class GuardedClient:
    """HTTP client for untrusted URLs. Every failure is an OutboundError.

    Use the client as an async context manager, or call `close`.

    Args:
        allowed_hosts: Private hosts that may be reached (JOINERY_ALLOW_PRIVATE_HOSTS), as `host` or `host:port`.
        version: Version of Joinery in the User-Agent header.
        bounds: Limits of each request.
        allows_any_port: Whether ports other than 80 and 443 are permitted.
        lookup: Name resolver other than the system's.
        tls: TLS context other than the system's.
        rate_limiter: Rate limiter for the clients that `for_organisation` returns.
    """

    def __init__(
        self,
        *,
        allowed_hosts: frozenset[str] = frozenset(),
        version: str = "0",
        bounds: HttpBounds | None = None,
        allows_any_port: bool = False,
        lookup: Lookup | None = None,
        tls: ssl.SSLContext | None = None,
        rate_limiter: HostRateLimiter | None = None,
    ) -> None:
        allowed = frozenset(name.strip().lower() for name in allowed_hosts if name.strip())
        self._vetting = AddressVetting(allowed, ports=None) if allows_any_port else AddressVetting(allowed)
        self._bounds = bounds or HttpBounds()
        self._agent = f"Joinery/{version}"
        self._lookup = lookup or NameResolver().lookup
        self._tls = tls
        self._pace = rate_limiter or HostRateLimiter()
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

    def for_organisation(self, org: str, credentials: frozenset[str]) -> "RateLimitedClient":
        """Return a client for one organisation, which waits for its turn at each host.

        Args:
            org: ID of the organisation.
            credentials: Secret values of the source's credentials, which identify the account at each host; empty without
                credentials.
        """
        return RateLimitedClient(self, self._pace, HostCaller(org, credentials))

    @asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: RequestValidators | None = None,
        hosts: frozenset[str] | None = None,
        secrets: frozenset[str] = frozenset(),
        turns: TurnFactory | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        """Send a GET request and follow at most HttpBounds.max_redirects redirects; each target is vetted.

        Raises OutboundError, also while chunks are read.

        Args:
            url: URL of the request.
            headers: Additional headers.
            conditional: Validators of an earlier response.
            hosts: The only host names that may be reached; None for any.
            secrets: Secret texts that are sent only to the origin of the URL.
            turns: Function that returns the turn for each URL, including redirects; None to send without turns.
        """
        sent = {**(headers or {}), **_build_conditional_headers(conditional)}
        redirects = self._bounds.max_redirects
        async with self.request(
            "GET", url, headers=sent, hosts=hosts, secrets=secrets, max_redirects=redirects, turns=turns
        ) as response:
            yield response

    @asynccontextmanager
    async def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
        turns: TurnFactory | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        async with self.request(
            "POST", url, body=body, headers=headers, hosts=hosts, max_redirects=0, turns=turns
        ) as response:
            yield response

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
        secrets: frozenset[str] = frozenset(),
        max_redirects: int = 0,
        bounds: HttpBounds | None = None,
        turns: TurnFactory | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        """Send one request and yield the response. Raises OutboundError, also while chunks are read.

        If `max_redirects` is 0, a redirect is yielded as the response; higher values are for GET and HEAD only. If `turns`
        is given, the client waits for a turn at the host of the URL and of each redirect. A turn ends with the context.
        `secrets` are secret texts that are sent only to the origin of the URL.
        """
        limits = bounds or self._bounds
        sent = dict(headers or {})
        plan = _RequestPlan(method, body, limits, turns)
        async with AsyncExitStack() as turn:
            response = await self._send_with_redirects(plan, _parse_url(url), sent, hosts, secrets, max_redirects, turn)
            try:
                chunks = ResponseBody(
                    response, limits.max_received_bytes, limits.max_body_bytes, limits.minimum_rate
                ).iterate_chunks()
                yield StreamedResponse(response.status, response.headers, str(response.url), chunks)
                await chunks.aclose()
            finally:
                response.close()

    async def _send_with_redirects(
        self,
        plan: _RequestPlan,
        url: URL,
        headers: dict[str, str],
        hosts: frozenset[str] | None,
        secrets: frozenset[str],
        redirects: int,
        turn: AsyncExitStack,
    ) -> aiohttp.ClientResponse:
        for hop in range(redirects + 1):
            self._vetting.vet(url, hosts)
            report = await turn.enter_async_context(plan.turns(url)) if plan.turns else _ignore_response
            try:
                response = await self._send(plan, url, headers)
            except errors.OutboundError as error:
                error.has_followed_redirect = hop > 0
                raise
            report(response.status, response.headers)
            target = response.headers.get("Location")
            if not redirects or response.status not in _REDIRECT_STATUSES or target is None:
                return response
            response.close()
            await turn.aclose()
            following = _resolve_redirect(url, target)
            if following.origin() != url.origin():
                headers = _filter_headers(headers, following, secrets)
            url = following
        raise errors.RedirectRefused(f"The response has more than {redirects} redirects.")

    async def _send(self, plan: _RequestPlan, url: URL, headers: dict[str, str]) -> aiohttp.ClientResponse:
        sent, bounds = {"User-Agent": self._agent, **headers, "Accept-Encoding": "gzip, deflate"}, plan.bounds
        timeout = aiohttp.ClientTimeout(
            total=bounds.total_seconds, sock_connect=bounds.connect_seconds, sock_read=bounds.idle_seconds
        )
        with translate_http_errors():
            async with asyncio.timeout(bounds.connect_seconds + bounds.response_seconds):
                return await self._open_session().request(
                    plan.method, url, data=plan.body, headers=sent, allow_redirects=False, timeout=timeout
                )

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = open_guarded_session(self._vetting, self._lookup, self._tls)
        return self._session


@dataclass(frozen=True, slots=True)
class RateLimitedClient:
    """HTTP client of one organisation, which waits for a turn at each host before a request.

    Raises the errors of GuardedClient, and HostBusy.
    """

    client: GuardedClient
    rate_limiter: HostRateLimiter
    caller: HostCaller

    @asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        conditional: RequestValidators | None = None,
        hosts: frozenset[str] | None = None,
        secrets: frozenset[str] = frozenset(),
    ) -> AsyncIterator[StreamedResponse]:
        sent = self.client.get(
            url, headers=headers, conditional=conditional, hosts=hosts, secrets=secrets, turns=self._turn
        )
        async with sent as response:
            yield response

    @asynccontextmanager
    async def post(
        self,
        url: str,
        *,
        body: bytes,
        headers: Mapping[str, str] | None = None,
        hosts: frozenset[str] | None = None,
    ) -> AsyncIterator[StreamedResponse]:
        async with self.client.post(url, body=body, headers=headers, hosts=hosts, turns=self._turn) as response:
            yield response

    def _turn(self, url: URL) -> AbstractAsyncContextManager[ResponseObserver]:
        return self.rate_limiter.wait_for_turn(url, self.caller)


def _parse_url(url: str) -> URL:
    try:
        return URL(url)
    except (ValueError, TypeError):
        raise errors.RefusedAddress("The URL is invalid.") from None


def _resolve_redirect(url: URL, target: str) -> URL:
    """Return the absolute URL of a redirect's target. Raises RedirectRefused if it is invalid, or http after https."""
    try:
        following = url.join(URL(target)).with_fragment(None)
    except (ValueError, TypeError):
        raise errors.RedirectRefused("The redirect's target is an invalid URL.") from None
    if url.scheme == "https" and following.scheme == "http":
        raise errors.RedirectRefused("The redirect leads from https to http.")
    return following


def _filter_headers(headers: Mapping[str, str], target: URL, secrets: frozenset[str]) -> dict[str, str]:
    """Return the headers that may be sent to the target of a redirect, which has another origin.

    Headers that contain one of the `secrets` are removed. Raises RedirectRefused if the target's URL contains a secret.
    """
    spellings = {spelling for text in secrets for spelling in (text, quote(text, safe=""), quote_plus(text))}
    decoded_target = f"{target} {unquote_plus(str(target))}".lower()
    if any(text.lower() in decoded_target for text in spellings if len(text) >= _MIN_SECRET_LENGTH):
        raise errors.RedirectRefused(
            "The redirect was not followed, because its URL would send the credentials to another host."
        )
    permitted = {name: value for name, value in headers.items() if name.lower() in _CROSS_ORIGIN_HEADERS}
    return {name: value for name, value in permitted.items() if not any(text in value for text in secrets)}


def _build_conditional_headers(conditional: RequestValidators | None) -> dict[str, str]:
    if conditional is None:
        return {}
    sent = {"If-None-Match": conditional.etag, "If-Modified-Since": conditional.last_modified}
    return {name: value for name, value in sent.items() if value}
