"""Measuring the service's own health and telling it: stored checks in, state and uptime per day out."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from domain.platform.model import COMPONENTS, Component, DayUptime
from ports.clock import Clock
from ports.platform import Check, PlatformChecks

Probe = Callable[[], Awaitable[str]]
"""Looks at one component now; answers one of domain.platform.model.STATES."""

DAYS: Final = 90
STALE: Final = timedelta(minutes=5)
PROBE_TIMEOUT: Final = 5.0


@dataclass(frozen=True, slots=True)
class PlatformStatus:
    """The service's state: the worst of its components' states."""

    state: str
    components: tuple[Component, ...]
    checked_at: datetime | None


class PlatformService:
    """`probes` are the components that this process can look at; those without one are not claimed to be anything."""

    def __init__(self, checks: PlatformChecks, clock: Clock, probes: Mapping[str, Probe] | None = None) -> None:
        self._checks = checks
        self._clock = clock
        self._probes = dict(probes or {})

    async def tick(self) -> None:
        """Look at every component and keep what was seen; a probe that fails or hangs counts as down."""
        now = self._clock.now()
        states = await asyncio.gather(*(self._look(probe) for probe in self._probes.values()))
        seen = zip(self._probes, states, strict=True)
        await self._checks.record([Check(name, now, state != "down", state == "degraded") for name, state in seen])

    async def purge_old(self) -> int:
        """Drop checks that no page shows any more."""
        return await self._checks.forget(self._clock.now() - timedelta(days=DAYS + 1))

    @staticmethod
    async def _look(probe: Probe) -> str:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                return await probe()
        except Exception:
            return "down"

    async def status(self) -> PlatformStatus:
        """State now and uptime of the last 90 days, from stored checks alone.

        A component whose last check is older than five minutes counts as degraded: nobody is looking.
        """
        now = self._clock.now()
        latest = {check.component: check for check in await self._checks.latest()}
        days: dict[str, list[DayUptime]] = {}
        for count in await self._checks.days((now - timedelta(days=DAYS - 1)).date()):
            days.setdefault(count.component, []).append(DayUptime(count.day, count.passed / count.total))
        components = tuple(
            Component(name, _state(latest[name], now), tuple(days.get(name, ())))
            for name in COMPONENTS
            if name in latest
        )
        states = {component.state for component in components}
        state = "down" if "down" in states else "degraded" if "degraded" in states or not states else "operational"
        return PlatformStatus(state, components, max((check.at for check in latest.values()), default=None))


def _state(check: Check, now: datetime) -> str:
    if not check.passed:
        return "down"
    return "degraded" if check.degraded or now - check.at > STALE else "operational"
