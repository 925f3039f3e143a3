"""The job that is queued when the precedence of a source in merges changes."""

from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant
from domain.sources.model import Source

UPDATE_SOURCE_PRECEDENCE = "matching.rank"  # an earlier name, which stored jobs contain
"""The kind of job that recomputes the merged products of a source after a change of its precedence in merges."""
_LANE = "match"


def new_precedence_update_job(tenant: Tenant, source_before: Source) -> NewJob:
    """Return the job that recomputes the merged products of a source after a change of its precedence in merges.

    Args:
        tenant: The tenant.
        source_before: The source before the change.
    """
    payload = {
        "source": source_before.id,
        "first_party": source_before.first_party,
        "licence_basis": str(source_before.licence_basis),
    }
    return NewJob(UPDATE_SOURCE_PRECEDENCE, _LANE, tenant, payload)
