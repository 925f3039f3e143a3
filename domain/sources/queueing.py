"""The job that follows a change of a source's precedence."""

from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source

RANK = "matching.rank"
_LANE = "match"


def ranking(tenant: Tenant, before: Source) -> NewJob:
    """Return the job that recomputes merged products by the source's new precedence; `before` is the source before the change."""
    told = {"source": before.id, "first_party": before.first_party, "licence_basis": str(before.licence_basis)}
    return NewJob(RANK, _LANE, tenant, told)
