"""Checks of the service's own health, in memory."""

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime

from adapters.memory.table import page_of
from domain.kernel.paging import Page, PageRequest
from domain.platform.incidents import Incident
from domain.platform.ports import Check, DayCount


class MemoryPlatformChecks:
    """PlatformChecks."""

    def __init__(self) -> None:
        self._checks: list[Check] = []

    async def record(self, checks: Sequence[Check]) -> None:
        self._checks.extend(checks)

    async def latest(self) -> Sequence[Check]:
        newest = {check.component: check for check in sorted(self._checks, key=lambda check: check.at)}
        return tuple(newest.values())

    async def days(self, since: date) -> Sequence[DayCount]:
        recent = [check for check in self._checks if check.at.date() >= since]
        total = Counter((check.at.date(), check.component) for check in recent)
        passed = Counter((check.at.date(), check.component) for check in recent if check.passed)
        return tuple(DayCount(name, day, passed[day, name], total[day, name]) for day, name in sorted(total))

    async def forget(self, before: datetime) -> int:
        kept = [check for check in self._checks if check.at >= before]
        gone, self._checks = len(self._checks) - len(kept), kept
        return gone


class MemoryIncidents:
    """Incidents."""

    def __init__(self) -> None:
        self._incidents: dict[str, Incident] = {}

    async def open(self) -> Sequence[Incident]:
        return [one for one in reversed(self._incidents.values()) if one.closed_at is None]

    async def get(self, id: str) -> Incident | None:
        return self._incidents.get(id)

    async def save(self, incident: Incident, before: Incident | None = None) -> bool:
        if self._incidents.get(incident.id) != before:
            return False
        self._incidents[incident.id] = incident
        return True

    async def page(self, page_request: PageRequest) -> Page[Incident]:
        return page_of(self._incidents.values(), page_request, lambda one: one.id)
