"""How often one host is asked for feeds: so many at a time, a moment between two, and not while it asks to be left alone.

One pace a process, over all sources of all organisations (docs/conventions.md#politeness).
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
"""How many hosts are known before those that are idle are looked for."""
_LONGEST = 20
"""Characters of a Retry-After in seconds that is read as one."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Who asks: an organisation, signed in at the host by an account's texts, or by none."""

    org: str = ""
    account: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class HostBounds:
    """`at_once` requests under way, `each` of one organisation; `spacing` from the beginning of one to that of the next; seconds.

    Whoever's turn does not come within `patience` comes back later, and at once where a host wants to be left alone for longer
    than `breath`. Of what a host asks for, no more than `longest` holds for other sources.
    """

    at_once: int = 32
    each: int = 4
    spacing: float = 0.05
    patience: float = 60.0
    breath: float = 5.0
    longest: float = 600.0


@dataclass(slots=True)
class _Host:
    """`users` hold or await a turn; `free_at` is when the next may begin, `rests` until when an organisation leaves it alone."""

    turns: ConcurrencyLimit
    users: int = 0
    free_at: float = 0.0
    rests: dict[str, float] = field(default_factory=dict)

    def is_idle(self, now: float) -> bool:
        """Whether nothing need be known of it any more."""
        return not self.users and self.free_at <= now and all(until <= now for until in self.rests.values())


@dataclass(slots=True)
class HostPace:
    """Whose turn it is, fairly among organisations: none has more than some of the turns at a host.

    A host is known by name and port, and to whoever signs in by the account, whose limits are its own. What a host asks an
    organisation for holds for all sources of that organisation, and for nobody else: else anyone could have others wait.
    """

    bounds: HostBounds = field(default_factory=HostBounds)
    clock: Callable[[], float] = monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _hosts: dict[tuple[str, int | None, frozenset[str]], _Host] = field(default_factory=dict)
    _crowded: int = _CROWDED

    @asynccontextmanager
    async def turn(self, url: URL, asker: Asker) -> AsyncIterator[Callable[[int, Mapping[str, str]], None]]:
        """One request's turn, as soon as it comes; it is told how the answer begins. Raises HostBusy."""
        key = (url.host or "", url.port, asker.account)
        host = self._hosts.setdefault(key, _Host(ConcurrencyLimit(self.bounds.at_once, self.bounds.each)))
        host.users += 1
        try:
            async with AsyncExitStack() as stack:
                await self._entered(stack, host, asker.org)
                await self._begun(host, asker.org)
                yield lambda status, headers: self._told(host, asker.org, status, headers)
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
        """Wait until the host may be asked; each who waits has a moment of its own, and only that is kept free of others."""
        if (rest := host.rests.get(org, 0.0) - self.clock()) > self.bounds.breath:
            raise HostBusy("The host has asked to be left alone for a while.", rest)
        if rest > 0:
            await self.sleep(rest)
        now = self.clock()
        begins = max(now, host.free_at)
        host.free_at = begins + self.bounds.spacing
        if begins > now:
            await self.sleep(begins - now)

    def _told(self, host: _Host, org: str, status: int, headers: Mapping[str, str]) -> None:
        """Leave the host alone for as long as it asks for (RFC 9110 §10.2.3)."""
        if status in _PRESSED and (seconds := _retry_after(headers.get("Retry-After") or "")):
            until = self.clock() + min(seconds, self.bounds.longest)
            host.rests[org] = max(host.rests.get(org, 0.0), until)

    def _forget_idle(self) -> None:
        now = self.clock()
        for key in [key for key, host in self._hosts.items() if host.is_idle(now)]:
            del self._hosts[key]
        self._crowded = max(_CROWDED, 2 * len(self._hosts))


def _retry_after(value: str) -> float:
    """Seconds until the host may be asked again; 0 where it names no time."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text) if len(text) <= _LONGEST else 0.0
    try:
        until = parsedate_to_datetime(text)
        until = until.replace(tzinfo=UTC) if until.tzinfo is None else until
        return max(0.0, (until - now()).total_seconds())
    except (ValueError, TypeError, IndexError, OverflowError):  # what a stranger writes for a date
        return 0.0
