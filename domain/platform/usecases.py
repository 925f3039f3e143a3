"""Measurement and display of the service's health: checks are stored, state and uptime per day are derived."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.platform.incidents import IN_A_ROW, Incident, OpenedBy, Seen, measured
from domain.platform.instances import HEARTBEAT_INTERVAL, Instance, RequestTotals
from domain.platform.model import COMPONENTS, Component, ComponentState, DayUptime, worst_of
from domain.platform.ports import Check, Incidents, Instances, PlatformChecks
from ports.clock import Clock

Probe = Callable[[], Awaitable[ComponentState | None]]
"""Checks one component; returns its state, or None if it cannot be determined."""

DAYS = 90
STALE = timedelta(minutes=5)
PROBE_TIMEOUT = 5.0
LOG = logging.getLogger("joinery.platform")


@dataclass(frozen=True, slots=True)
class PlatformStatus:
    """The service's state, which is the worst of its components' states.

    `incidents` are the open ones, newest first.
    """

    state: ComponentState
    components: tuple[Component, ...]
    checked_at: datetime | None
    incidents: tuple[Incident, ...] = ()


class PlatformService:
    """Checks and status. `probes` are those of components that this process can check; others have no state."""

    def __init__(
        self,
        checks: PlatformChecks,
        incidents: Incidents,
        clock: Clock,
        probes: Mapping[str, Probe] | None = None,
    ) -> None:
        self._checks, self._incidents = checks, incidents
        self._clock = clock
        self._probes = dict(probes or {})
        self._looks: dict[str, deque[Seen]] = {}

    async def tick(self) -> None:
        """Check every component and store the results; a probe that fails or hangs counts as down.

        An unknown state is stored as degraded, and neither opens nor closes an incident.
        """
        now = self._clock.now()
        states = await asyncio.gather(*(self._check_component(probe) for probe in self._probes.values()))
        seen = list(zip(self._probes, states, strict=True))
        for name, state in seen:
            looks = self._looks.setdefault(name, deque(maxlen=IN_A_ROW))
            if state is None:
                looks.clear()
            else:
                looks.append(Seen(now, state))
        await self._checks.record([Check(name, now, state or ComponentState.DEGRADED) for name, state in seen])
        open_incidents = await self._incidents.open()
        for name, looks in self._looks.items():
            own = [incident for incident in open_incidents if incident.component == name]
            changed = measured(name, list(looks), own)
            if changed is not None:
                before = next((incident for incident in own if incident.id == changed.id), None)
                await self._incidents.save(changed, before)  # a concurrent change by the operator takes precedence

    async def history(self, page_request: PageRequest) -> Page[Incident]:
        """Return a page of incidents, newest first."""
        return await self._incidents.page(page_request)

    async def purge_old(self) -> int:
        """Delete checks that are no longer shown."""
        return await self._checks.forget(self._clock.now() - timedelta(days=DAYS + 1))

    @staticmethod
    async def _check_component(probe: Probe) -> ComponentState | None:
        try:
            async with asyncio.timeout(PROBE_TIMEOUT):
                return await probe()
        except Exception:
            return ComponentState.DOWN

    async def status(self) -> PlatformStatus:
        """Return the present state and the uptime of the last 90 days, from stored checks.

        A component whose last check is older than five minutes counts as degraded, because it is unmonitored.
        """
        now = self._clock.now()
        latest = {check.component: check for check in await self._checks.latest()}
        days: dict[str, list[DayUptime]] = {}
        for count in await self._checks.days((now - timedelta(days=DAYS - 1)).date()):
            days.setdefault(count.component, []).append(DayUptime(count.day, count.passed / count.total))
        incidents = tuple(await self._incidents.open())
        components = tuple(
            Component(name, _state(name, latest.get(name), now, incidents), tuple(days.get(name, ())))
            for name in COMPONENTS
            if name in latest or any(one.component == name for one in incidents)
        )
        worst = worst_of(component.state for component in components)
        checked_at = max((check.at for check in latest.values()), default=None)
        return PlatformStatus(worst, components, checked_at, incidents)


class Heartbeat:
    """Regular record that a process is running. `sample` returns its requests since the start."""

    def __init__(
        self,
        instances: Instances,
        roles: Sequence[str],
        sample: Callable[[], RequestTotals] = lambda: RequestTotals(0, 0),
    ) -> None:
        self._instances, self._roles, self._sample = instances, roles, sample
        self._id = new_id("prc")
        self._before = RequestTotals(0, 0)

    async def run(self) -> None:
        """Record heartbeats until cancelled; a failed one is logged and skipped."""
        while True:
            try:
                await self._beat()
            except Exception as error:
                LOG.debug("heartbeat failed: %s", error)
            await asyncio.sleep(HEARTBEAT_INTERVAL)

    async def leave(self) -> None:
        """Remove the record of the process; if that fails, the record expires."""
        try:
            async with asyncio.timeout(1):
                await self._instances.leave(self._id)
        except Exception as error:
            LOG.debug("heartbeat could not be removed: %s", error)

    async def _beat(self) -> None:
        totals, before = self._sample(), self._before
        seen = Instance(self._id, "", totals.answered - before.answered, totals.failed - before.failed)
        for role in self._roles:
            await self._instances.beat(replace(seen, role=role))
        self._before = totals


def _state(name: str, check: Check | None, now: datetime, incidents: Sequence[Incident]) -> ComponentState:
    """Return the worst of the measured state, if any, and the operator's incidents."""
    states = [entry.state for entry in incidents if entry.component == name and entry.opened_by == OpenedBy.OPERATOR]
    if check is not None:
        states += [check.state, ComponentState.DEGRADED if now - check.at > STALE else ComponentState.OPERATIONAL]
    return worst_of(states)
