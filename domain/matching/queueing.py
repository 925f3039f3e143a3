"""The job that matches what is in the queue."""

from typing import Final

from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant

MATCH: Final = "matching.match"
LANE: Final = "match"


def matching(tenant: Tenant) -> NewJob:
    """Match what waits. One is open at a time, which also takes what is queued while it runs."""
    return NewJob(MATCH, LANE, tenant, {}, key=LANE)
