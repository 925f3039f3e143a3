"""Rate of feed requests to one host: concurrency, spacing, and the pauses that the host requests.

One pace per process applies to all sources of all organisations (docs/conventions.md#politeness).
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

_PRESSED = frozenset({429, 503})
_CROWDED = 256
"""Number of hosts above which idle ones are removed."""
_LONGEST = 20
"""Maximum digits of a Retry-After in seconds."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Caller of a host: an organisation, with the texts of its account at the host, or none."""

    org: str = ""
    account: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HostBounds:
    """Limits of one host: `at_once` requests in total, `each` of one organisation, `spacing` between starts; in seconds.

    A caller without a turn within `patience` is refused, and at once if the host requests a pause longer than `breath`.
    A requested pause is limited to `longest`.
    """

    at_once: int = 32
    each: int = 4
    spacing: float = 0.05
    patience: float = 60.0
    breath: float = 5.0
    longest: float = 600.0


@dataclass(slots=True)
class _Host:
    """State of a host: `users` hold or await a turn, `free_at` is the next start, `rests` the end of each organisation's pause."""

    turns: ConcurrencyLimit
    users: int = 0
    free_at: float = 0.0
    rests: dict[str, float] = field(default_factory=dict)

    def is_idle(self, now: float) -> bool:
        """Return whether the state can be dropped."""
        return not self.users and self.free_at <= now and all(until <= now for until in self.rests.values())


@dataclass(slots=True)
class HostPace:
    """Fair turns of organisations at hosts: none has more than its share of the turns at a host.

    A host is identified by name, port and account, as limits apply to each account. A pause that a host requests from
    an organisation applies to all its sources, but not to others, who could otherwise be blocked by anyone.
    """

    bounds: HostBounds = field(default_factory=HostBounds)
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _hosts: dict[tuple[str, int | None, frozenset[str]], _Host] = field(default_factory=dict)
    _crowded: int = _CROWDED

    @asynccontextmanager
    async def turn(self, url: URL, asker: Asker) -> AsyncIterator[Callable[[int, Mapping[str, str]], None]]:
        """Wait for a turn and yield a function that receives the response's status and headers. Raises HostBusy."""
        key = (url.host or "", url.port, asker.account)
        host = self._hosts.setdefault(key, _Host(ConcurrencyLimit(self.bounds.at_once, self.bounds.each)))
        host.users += 1
        try:
            async with AsyncExitStack() as stack:
                await self._entered(stack, host, asker.org)
                await self._begun(host, asker.org)
                yield lambda status, headers: self._note_response(host, asker.org, status, headers)
        finally:
            host.users -= 1
            if host.is_idle(self.clock()):
                self._hosts.pop(key, None)
            elif len(self._hosts) >= self._crowded:
                self._forget_idle()

    async def _entered(self, stack: AsyncExitStack, host: _Host, org: str) -> None:
        try:
            async with asyncio.timeout(self.bounds.patience):
                await stack.enter_async_context(host.turns.slot(org))
        except TimeoutError:
            raise HostBusy("So many others ask this host that its turn did not come.", self.bounds.patience) from None

    async def _begun(self, host: _Host, org: str) -> None:
        """Wait until the host may be requested; each waiting caller gets a start of its own."""
        if (rest := host.rests.get(org, 0.0) - self.clock()) > self.bounds.breath:
            raise HostBusy("The host has requested a pause.", rest)
        if rest > 0:
            await self.sleep(rest)
        now = self.clock()
        begins = max(now, host.free_at)
        host.free_at = begins + self.bounds.spacing
        if begins > now:
            await self.sleep(begins - now)

    def _note_response(self, host: _Host, org: str, status: int, headers: Mapping[str, str]) -> None:
        """Record the pause that the host requests (RFC 9110 §10.2.3)."""
        if status in _PRESSED and (seconds := _retry_after(headers.get("Retry-After") or "")):
            until = self.clock() + min(seconds, self.bounds.longest)
            host.rests[org] = max(host.rests.get(org, 0.0), until)

    def _forget_idle(self) -> None:
        now = self.clock()
        for key in [key for key, host in self._hosts.items() if host.is_idle(now)]:
            del self._hosts[key]
        self._crowded = max(_CROWDED, 2 * len(self._hosts))


def _retry_after(value: str) -> float:
    """Return the seconds until the host may be requested again; 0 if it names no time."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) <= _LONGEST else 0.0
    try:
        until = parsedate_to_datetime(text)
        until = until.replace(tzinfo=UTC) if until.tzinfo is None else until
        return max(0.0, (until - now()).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):  # dates come from third parties, in any form
        return 0.0
