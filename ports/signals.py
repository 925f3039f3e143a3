"""Notifications between processes, in addition to polling."""

import asyncio
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from domain.kernel.tenancy import Tenant

MOST_PAYLOADS = 10_000


class Channel(StrEnum):
    """Subject of signals: new jobs, appended events, or changes of webhook endpoints."""

    JOBS = "jobs"
    EVENTS = "events"
    WEBHOOKS = "webhooks"


@dataclass(frozen=True, slots=True)
class Signal:
    """Notice that data of the tenant has changed; on the channel `webhooks`, of the endpoint `id`."""

    tenant: Tenant
    id: str | None = None

    @property
    def payload(self) -> str:
        """Text form: `org_… t` for live mode, `org_… f` for test mode, followed by the id if there is one."""
        tenant = f"{self.tenant.org} {'t' if self.tenant.livemode else 'f'}"
        return tenant if self.id is None else f"{tenant} {self.id}"

    @classmethod
    def parse(cls, payload: str) -> "Signal | None":
        """Return the payload's signal, or None if it has none."""
        org, _, others = payload.partition(" ")
        mode, _, id = others.partition(" ")
        return cls(Tenant(org, mode == "t"), id or None) if mode in ("t", "f") else None


@dataclass(frozen=True, slots=True)
class Heard:
    """Signals received since the last read; if `missed`, others may have been lost."""

    signals: frozenset[Signal]
    missed: bool

    @classmethod
    def of(cls, payloads: Iterable[str]) -> "Heard":
        """Parse the payloads; one that is not a signal, such as an empty one, sets `missed`."""
        parsed = frozenset(map(Signal.parse, payloads))
        return cls(frozenset(signal for signal in parsed if signal is not None), missed=None in parsed)


class SignalListener:
    """Buffer between a channel's connection, which calls `hear`, and the one task that waits for signals."""

    def __init__(self) -> None:
        self._arrived = asyncio.Event()
        self._payloads: set[str] = set()

    def hear(self, payload: str) -> None:
        """Add a payload and wake the waiting task; an empty payload or an overflow counts as missed signals."""
        if len(self._payloads) >= MOST_PAYLOADS:
            self._payloads, payload = set(), ""
        self._payloads.add(payload)
        self._arrived.set()

    def heard(self) -> Heard:
        """Return the signals received since the last call."""
        payloads, self._payloads = self._payloads, set()
        return Heard.of(payloads)

    async def wait(self, timeout: float | None) -> bool:
        """Wait for a signal that arrived since the last wait; return False after `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                await self._arrived.wait()
        except TimeoutError:
            return False
        self._arrived.clear()
        return True


class Signals(Protocol):
    """Source of signals, which are hints: subscribers also poll at intervals."""

    def subscribe(self, channel: Channel) -> AbstractAsyncContextManager[SignalListener]:
        """Subscribe to the channel; signals of a time without connection count as missed."""
        ...
