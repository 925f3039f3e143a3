"""Rate limiter of the requests for feeds to each host, which also respects pauses that the host requests.

One rate limiter per process applies to all sources of all organisations (docs/conventions.md#politeness).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC
from email.utils import parsedate_to_datetime
from time import monotonic

from yarl import URL

from adapters.http.errors import HostBusy
from domain.kernel.clock import now
from domain.kernel.concurrency import ConcurrencyLimit

_OVERLOAD_STATUSES = frozenset({429, 503})
_MIN_CLEANUP_THRESHOLD = 256
"""Minimum number of hosts in memory at which idle hosts are removed."""
_MAX_DIGITS = 20
"""Maximum number of digits of a Retry-After header in seconds; a longer number is invalid."""


@dataclass(frozen=True, slots=True)
class HostCaller:
    """Organisation that sends requests to a host, with its credentials there.

    Attributes:
        org: ID of the organisation.
        credentials: Secret values of the credentials; empty without credentials.
    """

    org: str = ""
    credentials: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HostBounds:
    """Limits of the requests to one host. Times are in seconds.

    Attributes:
        max_concurrent: Maximum number of concurrent requests.
        max_per_caller: Maximum number of concurrent requests of one organisation.
        spacing_seconds: Minimum time between the starts of two requests.
        max_wait_seconds: Maximum time that a request waits for its turn before HostBusy is raised.
        max_awaited_pause_seconds: Maximum remaining pause that a request waits for; for a longer one, HostBusy is raised at once.
        max_recorded_pause_seconds: Maximum pause that is recorded; a longer one that a host requests is shortened.
    """

    max_concurrent: int = 32
    max_per_caller: int = 4
    spacing_seconds: float = 0.05
    max_wait_seconds: float = 60.0
    max_awaited_pause_seconds: float = 5.0
    max_recorded_pause_seconds: float = 600.0


@dataclass(slots=True)
class _HostState:
    """State of the requests to one host with one account.

    Attributes:
        concurrency: Limit of concurrent requests.
        active_requests: Number of requests that are in progress or wait for their turn.
        next_start: Time of the limiter's clock, in seconds, from which the next request may start.
        paused_until: End of the pause that the host has requested, by organisation ID, as time of the same clock.
    """

    concurrency: ConcurrencyLimit
    active_requests: int = 0
    next_start: float = 0.0
    paused_until: dict[str, float] = field(default_factory=dict)

    def is_idle(self, now: float) -> bool:
        """Return whether the state can be removed: there are no requests, no pause, and no required spacing."""
        return (
            not self.active_requests
            and self.next_start <= now
            and all(until <= now for until in self.paused_until.values())
        )


@dataclass(slots=True)
class HostRateLimiter:
    """Rate limiter of the requests to each host. A free slot goes to the organisation with the fewest requests.

    Requests are counted by host name, port and account, because hosts limit the rate of each account. A pause that a
    host requests applies to the organisation to which the host responded, and to all its sources.

    Attributes:
        bounds: Limits of the requests to each host.
        clock: Returns monotonic seconds.
        sleep: Waits for a number of seconds.
    """

    # A pause for all organisations would enable anyone to block the others.
    bounds: HostBounds = field(default_factory=HostBounds)
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _hosts: dict[tuple[str, int | None, frozenset[str]], _HostState] = field(default_factory=dict)
    _cleanup_threshold: int = _MIN_CLEANUP_THRESHOLD

    @asynccontextmanager
    async def wait_for_turn(
        self, url: URL, caller: HostCaller
    ) -> AsyncIterator[Callable[[int, Mapping[str, str]], None]]:
        """Wait until a request to the URL's host may be sent; the turn ends with the context. Raises HostBusy.

        Yields:
            Function that the caller must call with the status and the headers of the response.
        """
        key = (url.host or "", url.port, caller.credentials)
        host = self._hosts.setdefault(
            key, _HostState(ConcurrencyLimit(self.bounds.max_concurrent, self.bounds.max_per_caller))
        )
        host.active_requests += 1
        try:
            async with AsyncExitStack() as stack:
                await self._acquire_turn(stack, host, caller.org)
                await self._wait_for_start(host, caller.org)
                yield lambda status, headers: self._record_pause(host, caller.org, status, headers)
        finally:
            host.active_requests -= 1
            if host.is_idle(self.clock()):
                self._hosts.pop(key, None)
            elif len(self._hosts) >= self._cleanup_threshold:
                self._remove_idle_hosts()

    async def _acquire_turn(self, stack: AsyncExitStack, host: _HostState, org: str) -> None:
        try:
            async with asyncio.timeout(self.bounds.max_wait_seconds):
                await stack.enter_async_context(host.concurrency.slot(org))
        except TimeoutError:
            raise HostBusy(
                f"The request waited {self.bounds.max_wait_seconds:.0f} seconds for other requests to this host and was not sent.",
                self.bounds.max_wait_seconds,
            ) from None

    async def _wait_for_start(self, host: _HostState, org: str) -> None:
        """Wait for the end of a pause and for the required spacing of requests. Raises HostBusy for a long pause."""
        if (remaining := host.paused_until.get(org, 0.0) - self.clock()) > self.bounds.max_awaited_pause_seconds:
            raise HostBusy("The host has requested a pause, so the request was not sent.", remaining)
        if remaining > 0:
            await self.sleep(remaining)
        now = self.clock()
        start = max(now, host.next_start)
        host.next_start = start + self.bounds.spacing_seconds
        if start > now:
            await self.sleep(start - now)

    def _record_pause(self, host: _HostState, org: str, status: int, headers: Mapping[str, str]) -> None:
        """Record the pause that a response with status 429 or 503 requests by Retry-After (RFC 9110 §10.2.3)."""
        if status in _OVERLOAD_STATUSES and (seconds := _parse_retry_after(headers.get("Retry-After") or "")):
            until = self.clock() + min(seconds, self.bounds.max_recorded_pause_seconds)
            host.paused_until[org] = max(host.paused_until.get(org, 0.0), until)

    def _remove_idle_hosts(self) -> None:
        now = self.clock()
        for key in [key for key, host in self._hosts.items() if host.is_idle(now)]:
            del self._hosts[key]
        self._cleanup_threshold = max(_MIN_CLEANUP_THRESHOLD, 2 * len(self._hosts))


def _parse_retry_after(value: str) -> float:
    """Return the seconds that a Retry-After header states, as a number or by a date; 0 if it is missing or invalid."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) <= _MAX_DIGITS else 0.0
    try:
        until = parsedate_to_datetime(text)
        until = until.replace(tzinfo=UTC) if until.tzinfo is None else until
        return max(0.0, (until - now()).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):  # dates come from third parties, in any form
        return 0.0
