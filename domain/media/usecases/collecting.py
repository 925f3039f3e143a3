"""Collection of the images of a run's products: new, unused and known addresses."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.draining import LEASE
from domain.kernel.tenancy import AuditContext
from domain.media.model import FRESH, addresses_of
from domain.media.ports import MediaStore
from domain.media.queueing import fetching
from domain.media.usecases.showing import show
from domain.storage.ports import StorageLedger
from ports.unit_of_work import UnitOfWork

_PAGE = 200


@dataclass(frozen=True, slots=True)
class MediaCollection:
    """The handler of `media.collect` jobs: one transaction per page; repeating it is harmless."""

    uow: UnitOfWork
    lease: timedelta = LEASE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Carry out one job."""
        context = job.context()
        before = await self._collect_page(job, context, None)
        while before is not None:
            before = await self._collect_page(job, context, before)
        await show(self.uow, job, context, self.lease)
        async with self.uow.begin(job.tenant, context) as tx:
            if await tx[MediaStore].unshown():
                await tx[JobStore].put_off(job, tx.now + timedelta(seconds=2))
            else:
                await tx[JobStore].finish(job)

    async def _collect_page(self, job: ClaimedJob, context: AuditContext, before: str | None) -> str | None:
        """Process one page of products, newest first as in lists; return where the next page begins, or None."""
        source, run = str(job.args["source"]), str(job.args["run"])
        since = datetime.fromisoformat(str(job.args["since"]))
        async with self.uow.begin(job.tenant, context) as tx:
            page = await tx[MediaStore].named(source, since, before, _PAGE)
            pictures = {one.product: one.pictures() for one in page}
            addresses = addresses_of((url for urls in pictures.values() for url in urls), run)
            known = {address.url: address.address for address in addresses}
            uses = {product: [known[url] for url in urls] for product, urls in pictures.items()}
            for key in await tx[MediaStore].register(uses, addresses, tx.now - FRESH):
                await tx[StorageLedger].free(key)
            for host in sorted({address.host for address in addresses}):
                await tx[JobStore].add(fetching(job.tenant, host, run))
            await tx[JobStore].hold(job, self.lease)
        return page[-1].product if len(page) == _PAGE else None
