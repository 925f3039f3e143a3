"""Ports of the service's health and workload, for all organisations together."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.platform.incidents import Incident
from domain.platform.instances import Instance
from domain.platform.model import ComponentState, WorkloadMetrics
from domain.platform.workload import SourceLoad, TenantLoad


@dataclass(frozen=True, slots=True)
class ComponentCheck:
    """Component, time and result of one check."""

    component: str
    at: datetime
    state: ComponentState

    @property
    def has_passed(self) -> bool:
        """True if the component was operational or degraded."""
        return self.state != ComponentState.DOWN


@dataclass(frozen=True, slots=True)
class DayCount:
    """Numbers of passed checks and of all checks of a component on a day (UTC)."""

    component: str
    day: date
    passed: int
    total: int


class Instances(Protocol):
    """Storage of the heartbeats of running processes."""

    async def record_heartbeat(self, instance: Instance) -> None:
        """Record a heartbeat of a process in one role, with the store's current time."""
        ...

    async def remove(self, instance: str) -> None:
        """Remove the heartbeats of a process that ends; `instance` is the ID of the process."""
        ...

    async def list_alive(self) -> Sequence[Instance]:
        """Return the processes with a heartbeat within HEARTBEAT_TIMEOUT, in each of their roles."""
        ...


class WorkloadMetricsReader(Protocol):
    """Reader of the workload metrics of all tenants."""

    async def read(self) -> WorkloadMetrics:
        """Return the current workload metrics."""
        ...


class PlatformChecks(Protocol):
    """Storage of the results of checks, which the scheduler writes."""

    async def record(self, checks: Sequence[ComponentCheck]) -> None:
        """Store the results of simultaneous checks."""
        ...

    async def list_latest(self) -> Sequence[ComponentCheck]:
        """Return the newest check of each component; components without checks are omitted."""
        ...

    async def count_by_day(self, since: date) -> Sequence[DayCount]:
        """Return the numbers of checks of each component on each day since `since`, oldest first.

        Days without checks of a component are omitted.
        """
        ...

    async def delete_before(self, before: datetime) -> int:
        """Delete checks older than `before`; return their number."""
        ...


class Incidents(Protocol):
    """Storage of incidents, which the scheduler and the operator write."""

    async def list_open(self) -> Sequence[Incident]:
        """Return the open incidents, newest first."""
        ...

    async def get(self, id: str) -> Incident | None:
        """Return an incident, or None."""
        ...

    async def save(self, incident: Incident, before: Incident | None = None) -> bool:
        """Store a new incident, or an incident that has changed from `before`.

        Returns False, without storing it, if the stored incident is no longer `before`.
        """
        ...

    async def page(self, page_request: PageRequest) -> Page[Incident]:
        """Return a page of all incidents, newest first."""
        ...


class SchemaCheck(Protocol):
    """Check of whether the database's schema is compatible with this release."""

    @property
    def incompatibility(self) -> str | None:
        """The incompatibility that the last check found; None if there was none, or before the first check."""
        ...

    async def check(self) -> str | None:
        """Check the schema now; return the incompatibility, or None.

        Raises Unavailable if the database does not respond.
        """
        ...

    async def require_compatible(self) -> None:
        """Raise Unavailable unless the schema is compatible."""
        ...

    async def watch(self, *, until_incompatible: bool = False) -> None:
        """Check periodically until cancelled or, with `until_incompatible`, until a check finds an incompatibility."""
        ...


class Workload(Protocol):
    """Queries of the workload, which raise Unavailable if they take too long."""

    async def list_tenants(self, now: datetime) -> Sequence[TenantLoad]:
        """Return the tenants with the most requests and webhook deliveries in the last COUNTED_PERIOD, most first.

        At most MAX_TENANTS tenants are returned; `now` is the current time.
        """
        ...

    async def list_slowest_sources(self) -> Sequence[SourceLoad]:
        """Return the sources whose newest runs have the longest durations, longest first; open runs are included."""
        ...

    async def list_failing_sources(self) -> Sequence[SourceLoad]:
        """Return the degraded and blocked sources, most consecutive failures first."""
        ...

    async def find_tenant_of_source(self, id: str) -> Tenant | None:
        """Return the tenant of the source with this ID, or None."""
        ...
