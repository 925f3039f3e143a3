"""What was measured of the service's own health, over all organisations."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.platform.incidents import Incident
from domain.platform.instances import Instance
from domain.platform.model import ComponentState, OperatingFigures


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
    """Across tenants: processes that are alive, by their heartbeats."""

    async def beat(self, instance: Instance) -> None:
        """Keep it as seen now, by the store's clock."""
        ...

    async def leave(self, instance: str) -> None:
        """Forget a process that ends."""
        ...

    async def alive(self) -> Sequence[Instance]:
        """Those that were seen within domain.platform.instances.ALIVE."""
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
        """The newest check of each component that has one."""
        ...

    async def days(self, since: date) -> Sequence[DayCount]:
        """Counts per component and day from `since` on, oldest first; days without checks are left out."""
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
    """The check whether this release works on the database's schema."""

    @property
    def fault(self) -> str | None:
        """Why not, as of the last look; None when it does, or before the first look."""
        ...

    async def look(self) -> str | None:
        """Look now and answer the fault. Raises Unavailable while the database does not answer."""
        ...

    async def confirm(self) -> None:
        """Raise Unavailable unless the schema fits."""
        ...

    async def watch(self, *, until_fault: bool = False) -> None:
        """Keep `fault` current until cancelled or, if asked for, until there is one."""
        ...
