"""Health of the service: checks of components, status and daily uptime, and heartbeats of processes."""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.platform.incidents import REQUIRED_CHECKS, Incident, MeasuredState, OpenedBy, find_changed_incident
from domain.platform.instances import HEARTBEAT_INTERVAL, Instance, RequestTotals
from domain.platform.model import COMPONENTS, Component, ComponentState, DayUptime, find_worst_state
from domain.platform.ports import ComponentCheck, Incidents, Instances, PlatformChecks
from ports.clock import Clock

HealthCheck = Callable[[], Awaitable[ComponentState | None]]
"""Function that checks one component of the service and returns the state, or None if the state is unknown."""

STATUS_DAYS = 90
"""Number of days whose uptime the status contains."""
MAX_CHECK_AGE = timedelta(minutes=5)
"""Age of the last check from which on a component counts as degraded."""
HEALTH_CHECK_TIMEOUT_SECONDS = 5.0
"""Time limit of the health check of a component in seconds."""
LOG = logging.getLogger("joinery.platform")


@dataclass(frozen=True, slots=True)
class PlatformStatus:
    """Status of the service.

    Attributes:
        state: The worst state of a component.
        checked_at: When a component was last checked, or None.
        incidents: The open incidents, newest first.
    """

    state: ComponentState
    components: tuple[Component, ...]
    checked_at: datetime | None
    incidents: tuple[Incident, ...] = ()


class PlatformService:
    """Checks and status of the service."""

    def __init__(
        self,
        checks: PlatformChecks,
        incidents: Incidents,
        clock: Clock,
        health_checks: Mapping[str, HealthCheck] | None = None,
    ) -> None:
        """Create the service.

        Args:
            checks: Storage of the results of checks.
            incidents: Storage of incidents.
            clock: The clock.
            health_checks: The function that checks each component, by component name.
        """
        self._checks, self._incidents = checks, incidents
        self._clock = clock
        self._health_checks = dict(health_checks or {})
        self._recent_checks: dict[str, deque[MeasuredState]] = {}

    async def check_components(self) -> None:
        """Check every component, store the results, and open, change or close incidents.

        A component is down if its check raises an error or takes too long. An unknown state is stored as degraded, but
        affects no incident.
        """
        now = self._clock.now()
        states = await asyncio.gather(
            *(self._check_component(health_check) for health_check in self._health_checks.values())
        )
        results = list(zip(self._health_checks, states, strict=True))
        for name, state in results:
            recent = self._recent_checks.setdefault(name, deque(maxlen=REQUIRED_CHECKS))
            if state is None:
                recent.clear()
            else:
                recent.append(MeasuredState(now, state))
        await self._checks.record(
            [ComponentCheck(name, now, state or ComponentState.DEGRADED) for name, state in results]
        )
        open_incidents = await self._incidents.list_open()
        for name, recent in self._recent_checks.items():
            component_incidents = [incident for incident in open_incidents if incident.component == name]
            changed = find_changed_incident(name, list(recent), component_incidents)
            if changed is not None:
                before = next((incident for incident in component_incidents if incident.id == changed.id), None)
                await self._incidents.save(changed, before)  # a concurrent change by the operator takes precedence

    async def list_incidents(self, page_request: PageRequest) -> Page[Incident]:
        """Return a page of all incidents, newest first."""
        return await self._incidents.page(page_request)

    async def purge_old_checks(self) -> int:
        """Delete checks that are too old for the status; return their number."""
        return await self._checks.delete_before(self._clock.now() - timedelta(days=STATUS_DAYS + 1))

    @staticmethod
    async def _check_component(health_check: HealthCheck) -> ComponentState | None:
        """Return the result of a health check, or `down` if the check raises an error or takes too long."""
        try:
            async with asyncio.timeout(HEALTH_CHECK_TIMEOUT_SECONDS):
                return await health_check()
        except Exception:
            return ComponentState.DOWN

    async def get_status(self) -> PlatformStatus:
        """Return the status and the uptime on the last STATUS_DAYS days, from stored checks and open incidents."""
        now = self._clock.now()
        latest = {check.component: check for check in await self._checks.list_latest()}
        days: dict[str, list[DayUptime]] = {}
        for count in await self._checks.count_by_day((now - timedelta(days=STATUS_DAYS - 1)).date()):
            days.setdefault(count.component, []).append(DayUptime(count.day, count.passed / count.total))
        incidents = tuple(await self._incidents.list_open())
        components = tuple(
            Component(name, _derive_state(name, latest.get(name), now, incidents), tuple(days.get(name, ())))
            for name in COMPONENTS
            if name in latest or any(one.component == name for one in incidents)
        )
        worst = find_worst_state(component.state for component in components)
        checked_at = max((check.at for check in latest.values()), default=None)
        return PlatformStatus(worst, components, checked_at, incidents)


class Heartbeat:
    """Periodic record that this process is running.

    Args:
        roles: Roles of the process.
        get_request_totals: Function that returns the numbers of the process's requests since its start.
    """

    def __init__(
        self,
        instances: Instances,
        roles: Sequence[str],
        get_request_totals: Callable[[], RequestTotals] = lambda: RequestTotals(0, 0),
    ) -> None:
        self._instances, self._roles, self._sample = instances, roles, get_request_totals
        self._id = new_id("prc")
        self._before = RequestTotals(0, 0)

    async def run(self) -> None:
        """Record heartbeats until cancelled; failures are logged."""
        while True:
            try:
                await self._record_heartbeat()
            except Exception as error:
                LOG.debug("heartbeat failed: %s", error)
            await asyncio.sleep(HEARTBEAT_INTERVAL)

    async def remove(self) -> None:
        """Remove the heartbeats of the process, which ends; if that fails, they expire."""
        try:
            async with asyncio.timeout(1):
                await self._instances.remove(self._id)
        except Exception as error:
            LOG.debug("heartbeat could not be removed: %s", error)

    async def _record_heartbeat(self) -> None:
        totals, before = self._sample(), self._before
        instance = Instance(self._id, "", totals.answered - before.answered, totals.failed - before.failed)
        for role in self._roles:
            await self._instances.record_heartbeat(replace(instance, role=role))
        self._before = totals


def _derive_state(
    name: str, check: ComponentCheck | None, now: datetime, incidents: Sequence[Incident]
) -> ComponentState:
    """Return the worst state of the component `name` in its last check and in its incidents opened by the operator.

    A component whose last check is older than MAX_CHECK_AGE is at least degraded.
    """
    states = [entry.state for entry in incidents if entry.component == name and entry.opened_by == OpenedBy.OPERATOR]
    if check is not None:
        states += [
            check.state,
            ComponentState.DEGRADED if now - check.at > MAX_CHECK_AGE else ComponentState.OPERATIONAL,
        ]
    return find_worst_state(states)
