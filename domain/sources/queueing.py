"""The job that follows when a source's word goes further, or less far, than before."""

from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source

RANK = "matching.rank"
_LANE = "match"


def ranking(tenant: Tenant, before: Source) -> NewJob:
    """Show merged products as the source's word counts now; `before` is the source as it was."""
    told = {"source": before.id, "first_party": before.first_party, "licence_basis": str(before.licence_basis)}
    return NewJob(RANK, _LANE, tenant, told)
