"""Creation of the jobs that fetch images."""

from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant

FETCH = "media.fetch"


def new_fetch_job(tenant: Tenant, host: str, run: str) -> NewJob:
    """Return a job that fetches the due images of a host; `run` is the ID of the run whose feed contains the images."""
    # Each run queues a job, because a job that is about to end does not see new URLs.
    return NewJob(FETCH, f"media:{host}", tenant, {"host": host}, key=f"{run} {host}")
