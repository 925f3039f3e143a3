"""Collection of the image URLs of products that a run changed: new URLs are fetched, unused ones deleted."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LEASE
from domain.kernel.tenancy import AuditContext
from domain.media.fetch_jobs import new_fetch_job
from domain.media.model import REFETCH_AFTER, build_image_urls
from domain.media.ports import MediaStore
from domain.media.usecases.document_refresh import rebuild_pending_documents
from domain.storage.ports import StorageLedger
from ports.unit_of_work import UnitOfWork

_PAGE = 200


@dataclass(frozen=True, slots=True)
class ImageCollectionJob:
    """Handler of `media.collect` jobs, each of which registers the image URLs of the products that a run changed."""

    uow: UnitOfWork
    lease: timedelta = LEASE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Register the image URLs of the products that the job's run changed.

        `lost` is set if the worker has lost the job.
        """
        context = job.create_context()
        before = await self._collect_page(job, context, None)
        while before is not None:
            before = await self._collect_page(job, context, before)
        await rebuild_pending_documents(self.uow, job, context, self.lease)
        async with self.uow.begin(job.tenant, context) as tx:
            if await tx[MediaStore].has_pending_documents():
                await tx[JobStore].reschedule(job, tx.now + timedelta(seconds=2))
            else:
                await tx[JobStore].finish(job)

    async def _collect_page(self, job: ClaimedJob, context: AuditContext, before: str | None) -> str | None:
        """Register the image URLs of one page of products, and queue their fetches.

        `before` is the ID of the last product of the previous page, or None. Returns the `before` of the next page, or
        None at the end.
        """
        source, run = str(job.args["source"]), str(job.args["run"])
        since = datetime.fromisoformat(str(job.args["since"]))
        async with self.uow.begin(job.tenant, context) as tx:
            page = await tx[MediaStore].list_media(source, since, before, _PAGE)
            urls_by_product = {media.product: media.find_image_urls() for media in page}
            image_urls = build_image_urls((url for urls in urls_by_product.values() for url in urls), run)
            digest_by_url = {image_url.url: image_url.url_digest for image_url in image_urls}
            uses = {product: [digest_by_url[url] for url in urls] for product, urls in urls_by_product.items()}
            for key in await tx[MediaStore].replace_image_urls(uses, image_urls, tx.now - REFETCH_AFTER):
                await tx[StorageLedger].free(key)
            for host in sorted({image_url.host for image_url in image_urls}):
                await tx[JobStore].add(new_fetch_job(job.tenant, host, run))
            await tx[JobStore].renew_lease(job, self.lease)
        return page[-1].product if len(page) == _PAGE else None
