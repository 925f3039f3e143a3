"""What was measured of the service's own health, over all organisations."""

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
    """One look at one component (domain.platform.model.COMPONENTS)."""

    component: str
    at: datetime
    state: ComponentState

    @property
    def passed(self) -> bool:
        """Whether it did its work."""
        return self.state != ComponentState.DOWN


@dataclass(frozen=True, slots=True)
class DayCount:
    """How many checks of a component a day (UTC) saw, and how many passed."""

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
    """Across tenants; the scheduler writes, everybody reads."""

    async def record(self, checks: Sequence[Check]) -> None:
        """Keep the results of one tick."""
        ...

    async def latest(self) -> Sequence[Check]:
        """Return the newest check of each component."""
        ...

    async def days(self, since: date) -> Sequence[DayCount]:
        """Return the counts by component and day from `since`, oldest first; days without checks are left out."""
        ...

    async def forget(self, before: datetime) -> int:
        """Drop checks older than that; answers how many."""
        ...


class Incidents(Protocol):
    """Across tenants; the scheduler and the operator write, everybody reads."""

    async def open(self) -> Sequence[Incident]:
        """Those that are not closed, newest first."""
        ...

    async def get(self, id: str) -> Incident | None:
        """One of them."""
        ...

    async def save(self, incident: Incident, before: Incident | None = None) -> bool:
        """Keep a new one, or what became of one that was as `before`; False when somebody else has changed it since."""
        ...

    async def page(self, page_request: PageRequest) -> Page[Incident]:
        """All, newest first."""
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
    """Each question is bounded, in rows and in time. Raises Unavailable when it takes longer than that."""

    async def tenants(self, now: datetime) -> Sequence[TenantLoad]:
        """Organisations by what they had the service do, the most first."""
        ...

    async def slowest(self) -> Sequence[SourceLoad]:
        """Return the sources whose newest run took or takes longest."""
        ...

    async def troubled(self) -> Sequence[SourceLoad]:
        """Return degraded and blocked sources, the most failures first."""
        ...

    async def tenant_of_source(self, id: str) -> Tenant | None:
        """Return the source's tenant; None for an unknown id."""
        ...
