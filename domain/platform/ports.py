"""Measurements of the service's health across all organisations."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.platform.incidents import Incident
from domain.platform.instances import Instance
from domain.platform.model import ComponentState, OperatingFigures
from domain.platform.workload import SourceLoad, TenantLoad


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one component (domain.platform.model.COMPONENTS)."""

    component: str
    at: datetime
    state: ComponentState

    @property
    def passed(self) -> bool:
        """True if the component was not down."""
        return self.state != ComponentState.DOWN


@dataclass(frozen=True, slots=True)
class DayCount:
    """Numbers of all and of passed checks of a component on a day (UTC)."""

    component: str
    day: date
    passed: int
    total: int


class Instances(Protocol):
    """Running processes across tenants, by their heartbeats."""

    async def beat(self, instance: Instance) -> None:
        """Record a heartbeat at the store's present time."""
        ...

    async def leave(self, instance: str) -> None:
        """Remove a process that is ending."""
        ...

    async def list_alive(self) -> Sequence[Instance]:
        """Return the instances with a heartbeat within domain.platform.instances.HEARTBEAT_TIMEOUT."""
        ...


class OperatingFiguresReader(Protocol):
    """Operating figures across tenants."""

    async def read(self) -> OperatingFigures:
        """Return the figures now."""
        ...


class PlatformChecks(Protocol):
    """Results of checks; the scheduler writes, everybody reads."""

    async def record(self, checks: Sequence[Check]) -> None:
        """Store the results of one tick."""
        ...

    async def latest(self) -> Sequence[Check]:
        """Return the newest check of each component that has one."""
        ...

    async def days(self, since: date) -> Sequence[DayCount]:
        """Return counts per component and day from `since` on, oldest first; days without checks are omitted."""
        ...

    async def forget(self, before: datetime) -> int:
        """Delete checks older than that; return their number."""
        ...


class Incidents(Protocol):
    """Incidents; the scheduler and the operator write, everybody reads."""

    async def open(self) -> Sequence[Incident]:
        """Return the open incidents, newest first."""
        ...

    async def get(self, id: str) -> Incident | None:
        """Return an incident, or None."""
        ...

    async def save(self, incident: Incident, before: Incident | None = None) -> bool:
        """Store a new incident, or the successor of `before`; return False if that has changed since."""
        ...

    async def page(self, page_request: PageRequest) -> Page[Incident]:
        """Return a page of all incidents, newest first."""
        ...


class SchemaCheck(Protocol):
    """Whether this release is compatible with the database's schema."""

    @property
    def fault(self) -> str | None:
        """The reason why not, as of the last check; None if it is compatible, or before the first check."""
        ...

    async def check(self) -> str | None:
        """Check now and return the fault. Raises Unavailable while the database does not answer."""
        ...

    async def require(self) -> None:
        """Raise Unavailable unless the schema is compatible."""
        ...

    async def watch(self, *, until_fault: bool = False) -> None:
        """Keep `fault` current until cancelled or, with `until_fault`, until there is one."""
        ...


class Workload(Protocol):
    """Bounded queries of the workload. All raise Unavailable if they take too long."""

    async def tenants(self, now: datetime) -> Sequence[TenantLoad]:
        """Return organisations by their load, highest first."""
        ...

    async def slowest(self) -> Sequence[SourceLoad]:
        """Return the sources whose newest run took, or takes, longest."""
        ...

    async def troubled(self) -> Sequence[SourceLoad]:
        """Return the degraded and blocked sources, most failures first."""
        ...

    async def tenant_of_source(self, id: str) -> Tenant | None:
        """Return the source's tenant; None for an unknown id."""
        ...
