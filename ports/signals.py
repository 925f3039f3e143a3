"""Being notified at once instead of asking again and again."""

import asyncio
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from domain.kernel.tenancy import Tenant

MOST_PAYLOADS = 10_000


class Channel(StrEnum):
    """`jobs` hears of new jobs, `events` of appended events, `webhooks` of what changed about an endpoint."""

    JOBS = "jobs"
    EVENTS = "events"
    WEBHOOKS = "webhooks"


@dataclass(frozen=True, slots=True)
class Signal:
    """Something of the tenant's has changed; on the channel `webhooks`, about the endpoint `id`."""

    tenant: Tenant
    id: str | None = None

    @property
    def payload(self) -> str:
        """`org_… t`, or `org_… f` for the sandbox, with the id behind it if there is one."""
        whose = f"{self.tenant.org} {'t' if self.tenant.livemode else 'f'}"
        return whose if self.id is None else f"{whose} {self.id}"

    @classmethod
    def parse(cls, payload: str) -> "Signal | None":
        """The signal with that payload; None for anything else."""
        org, _, others = payload.partition(" ")
        mode, _, id = others.partition(" ")
        return cls(Tenant(org, mode == "t"), id or None) if mode in ("t", "f") else None


@dataclass(frozen=True, slots=True)
class Heard:
    """What was said since it was last asked for; `missed`: anything else may have been said as well."""

    signals: frozenset[Signal]
    missed: bool

    @classmethod
    def of(cls, payloads: Iterable[str]) -> "Heard":
        """What these payloads say; an empty one says nothing but that one should look."""
        parsed = frozenset(map(Signal.parse, payloads))
        return cls(frozenset(signal for signal in parsed if signal is not None), missed=None in parsed)


class SignalListener:
    """One listener on one channel: whoever listens for it says `hear`, whoever waits is woken."""

    def __init__(self) -> None:
        self._said = asyncio.Event()
        self._payloads: set[str] = set()

    def hear(self, payload: str) -> None:
        """Something was said on the channel; an empty payload, or too many to keep, says that one should look."""
        if len(self._payloads) >= MOST_PAYLOADS:
            self._payloads, payload = set(), ""
        self._payloads.add(payload)
        self._said.set()

    def heard(self) -> Heard:
        """What was said since this was last asked."""
        payloads, self._payloads = self._payloads, set()
        return Heard.of(payloads)

    async def wait(self, timeout: float | None) -> bool:
        """True once something was said since the last wait; False when the time (seconds) is over."""
        try:
            async with asyncio.timeout(timeout):
                await self._said.wait()
        except TimeoutError:
            return False
        self._said.clear()
        return True


class Signals(Protocol):
    """Signals are hints: whoever waits also looks for itself now and then."""

    def subscribe(self, channel: Channel) -> AbstractAsyncContextManager[SignalListener]:
        """Listen from now on; a lost connection is taken up again, and what was said meanwhile counts as missed."""
        ...
