"""Notifications between processes, which may be lost, so that receivers poll as well."""

import asyncio
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from domain.kernel.tenancy import Tenant

MAX_PAYLOADS = 10_000


class Channel(StrEnum):
    """Channels of signals, by the kind of change: new jobs, appended events, or changes of webhook endpoints."""

    JOBS = "jobs"
    EVENTS = "events"
    WEBHOOKS = "webhooks"


@dataclass(frozen=True, slots=True)
class Signal:
    """Notification that data of a tenant has changed; on the channel `webhooks`, that the endpoint `id` has changed."""

    tenant: Tenant
    id: str | None = None

    @property
    def payload(self) -> str:
        """The signal as text: `org_… t` for live mode or `org_… f` for test mode, followed by the ID if there is one."""
        tenant = f"{self.tenant.org} {'t' if self.tenant.livemode else 'f'}"
        return tenant if self.id is None else f"{tenant} {self.id}"

    @classmethod
    def parse(cls, payload: str) -> "Signal | None":
        """Parse a payload; return None if it is not a signal."""
        org, _, others = payload.partition(" ")
        mode, _, id = others.partition(" ")
        return cls(Tenant(org, mode == "t"), id or None) if mode in ("t", "f") else None


@dataclass(frozen=True, slots=True)
class ReceivedSignals:
    """Signals received since the last call of `take_signals`.

    Attributes:
        signals: The signals.
        has_missed_signals: Whether other signals may have been lost.
    """

    signals: frozenset[Signal]
    has_missed_signals: bool

    @classmethod
    def from_payloads(cls, payloads: Iterable[str]) -> "ReceivedSignals":
        """Parse the payloads; a payload that is not a signal, such as an empty one, sets `has_missed_signals`."""
        parsed = frozenset(map(Signal.parse, payloads))
        return cls(frozenset(signal for signal in parsed if signal is not None), has_missed_signals=None in parsed)


class SignalListener:
    """Buffer of received signals between the connection, which calls `receive`, and one task that waits for signals."""

    def __init__(self) -> None:
        self._arrived = asyncio.Event()
        self._payloads: set[str] = set()

    def receive(self, payload: str) -> None:
        """Add a payload and wake the waiting task. An empty payload, or too many payloads, count as missed signals."""
        if len(self._payloads) >= MAX_PAYLOADS:
            self._payloads, payload = set(), ""
        self._payloads.add(payload)
        self._arrived.set()

    def take_signals(self) -> ReceivedSignals:
        """Return the signals received since the last call."""
        payloads, self._payloads = self._payloads, set()
        return ReceivedSignals.from_payloads(payloads)

    async def wait(self, timeout: float | None) -> bool:
        """Wait for a signal received since the last call that returned True.

        Returns False if no signal arrives within `timeout` seconds (None: no limit). `take_signals` returns them.
        """
        try:
            async with asyncio.timeout(timeout):
                await self._arrived.wait()
        except TimeoutError:
            return False
        self._arrived.clear()
        return True


class Signals(Protocol):
    """Source of signals."""

    def subscribe(self, channel: Channel) -> AbstractAsyncContextManager[SignalListener]:
        """Subscribe to the channel while the context is open; signals sent during a lost connection count as missed."""
        ...
