"""The jobs of images: what a run named is collected, what a host serves is fetched."""

from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant

FETCH = "media.fetch"


def fetching(tenant: Tenant, host: str, run: str) -> NewJob:
    """Fetch what the host has to serve. Each run asks for itself: a job that is about to end hears of nothing new."""
    return NewJob(FETCH, f"media:{host}", tenant, {"host": host}, key=f"{run} {host}")
