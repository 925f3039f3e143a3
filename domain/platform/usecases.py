"""Measuring the service's own health and showing it: stored checks in, state and uptime per day out."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from domain.platform.model import COMPONENTS, Component, ComponentState, DayUptime
from ports.clock import Clock
from ports.platform import Check, PlatformChecks

Probe = Callable[[], Awaitable[ComponentState]]
"""Looks at one component now; answers its state."""

DAYS: Final = 90
STALE: Final = timedelta(minutes=5)
PROBE_TIMEOUT: Final = 5.0
_WORSE: Final = tuple(ComponentState)


@dataclass(frozen=True, slots=True)
class PlatformStatus:
    """The service's state: the worst of its components' states."""

    state: ComponentState
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
        await self._checks.record([Check(name, now, state) for name, state in seen])

    async def purge_old(self) -> int:
        """Drop checks that no page shows any more."""
        return await self._checks.forget(self._clock.now() - timedelta(days=DAYS + 1))

    @staticmethod
    async def _look(probe: Probe) -> ComponentState:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                return await probe()
        except Exception:
            return ComponentState.DOWN

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
        worst = max((component.state for component in components), key=_WORSE.index, default=ComponentState.DEGRADED)
        return PlatformStatus(worst, components, max((check.at for check in latest.values()), default=None))


def _state(check: Check, now: datetime) -> ComponentState:
    unseen = ComponentState.DEGRADED if now - check.at > STALE else ComponentState.OPERATIONAL
    return max(check.state, unseen, key=_WORSE.index)
