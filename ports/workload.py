"""What the service has on its hands, over all organisations: for its operator alone."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.platform.workload import SourceLoad, TenantLoad


class Workload(Protocol):
    """Each question is bounded, in rows and in time. Raises Unavailable when it takes longer than that."""

    async def tenants(self, now: datetime) -> Sequence[TenantLoad]:
        """Organisations by what they had the service do, the most first."""
        ...

    async def slowest(self) -> Sequence[SourceLoad]:
        """Sources whose newest run took, or takes, longest."""
        ...

    async def troubled(self) -> Sequence[SourceLoad]:
        """Sources that are degraded or blocked, those that failed most often first."""
        ...

    async def tenant_of_source(self, id: str) -> Tenant | None:
        """Return the source's tenant; None for an unknown id."""
        ...
