"""The jobs of images: what a run named is collected, what a host serves is fetched."""

from datetime import datetime, timedelta
from typing import Final

from domain.jobs.model import NewJob
from domain.kernel.tenancy import Tenant

COLLECT: Final = "media.collect"
FETCH: Final = "media.fetch"
_CLOCKS: Final = timedelta(minutes=5)
"""How far the clocks of two processes may be apart."""


def collecting(tenant: Tenant, source: str, run: str, began: datetime) -> NewJob:
    """Collect the images of the source's products that the run changed; `began` is when the run was queued."""
    args = {"source": source, "run": run, "since": (began - _CLOCKS).isoformat()}
    return NewJob(COLLECT, f"media:{source}", tenant, args, key=run)


def fetching(tenant: Tenant, host: str, run: str) -> NewJob:
    """Fetch what the host has to serve. Each run asks for itself: a job that is about to end hears of nothing new."""
    return NewJob(FETCH, f"media:{host}", tenant, {"host": host}, key=f"{run} {host}")
