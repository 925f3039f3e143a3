"""Jobs of images: collecting the images of a run, and fetching those of a host."""

from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant

FETCH = "media.fetch"


def fetching(tenant: Tenant, host: str, run: str) -> NewJob:
    """Return the job that fetches the host's due images. Each run queues its own, because a job about to end misses new addresses."""
    return NewJob(FETCH, f"media:{host}", tenant, {"host": host}, key=f"{run} {host}")
