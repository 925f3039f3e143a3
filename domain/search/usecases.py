"""Facets of products that releases without facets stored."""

import asyncio
from dataclasses import dataclass

from domain.catalogue.ports import CatalogueStore
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LEASE
from domain.search.ports import FacetStore
from ports.unit_of_work import UnitOfWork

FILL_FACETS = "catalogue.fill_facets"
"""Kind of the jobs that compute the facets of all products of a catalogue; the migration that creates the table adds them."""
_PORTION = 200
"""Number of products whose facets are computed in one transaction."""


@dataclass(frozen=True, slots=True)
class FacetFiller:
    """Handler of `catalogue.fill_facets` jobs. After a failure, the next attempt starts again, and only writes differences."""

    uow: UnitOfWork

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Compute the facets of all products, in portions."""
        after = ""
        while not lost.is_set():
            async with self.uow.begin(job.tenant, job.create_context()) as tx:
                await tx[CatalogueStore].lock_for_writing()
                last = await tx[FacetStore].fill_facets(after, _PORTION)
                if last is None:
                    await tx[JobStore].finish(job)
                    return
                after = last
                await tx[JobStore].renew_lease(job, LEASE)
