"""Fetching of one host's images.

Failed fetches are repeated later, and reported as a problem after the last attempt.
"""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from time import monotonic

from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LEASE
from domain.kernel import retention
from domain.kernel.ids import new_id
from domain.kernel.problems import Problem, ProblemKind
from domain.kernel.tenancy import AuditContext
from domain.media.model import QUOTA_RETRY_DELAY, RETRY_DELAYS, Image, ImageUrl, Rendition, compute_retry_delay
from domain.media.ports import ConvertedImage, ImageConverter, ImageFetcher, ImageRefused, ImageUnreachable, MediaStore
from domain.media.usecases.document_refresh import rebuild_pending_documents
from domain.runs.ports import RunStore
from domain.storage.model import StoredKind, StoredObject, build_image_key
from domain.storage.ports import StorageLedger
from ports.objects import ObjectStore
from ports.unit_of_work import Tx, UnitOfWork
from ports.workspaces import Workspaces

_LOG = logging.getLogger("joinery.media")
MAX_CONCURRENT_REQUESTS = 2
"""Maximum number of concurrent requests to one host."""
THROTTLED_PAUSE = timedelta(minutes=10)
"""Pause after a host has throttled requests (429, 503)."""
_MAX_JOB_SECONDS = 60.0
"""Seconds after which a job ends, so that other jobs of the organisation can run; the rest is fetched later."""
_PAGE = 20
_LONGEST_HOST = 200
_MAX_PROBLEMS = 1000
"""Maximum number of problems that a run lists; further problems are only counted."""


@dataclass(frozen=True, slots=True)
class ImageFetchJob:
    """Handler of `media.fetch` jobs, each of which fetches the due images of one host."""

    uow: UnitOfWork
    objects: ObjectStore
    fetcher: ImageFetcher
    converter: ImageConverter
    workspaces: Workspaces
    lease: timedelta = LEASE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Fetch the due images of the job's host; `lost` is set if the worker has lost the job."""
        context = job.create_context()
        until, transaction_lock, is_host_available = monotonic() + _MAX_JOB_SECONDS, asyncio.Lock(), True
        while is_host_available and monotonic() < until:
            async with self.uow.begin_reading(job.tenant) as tx:
                due = await tx[MediaStore].list_due(str(job.args["host"]), _PAGE)
            for first in range(0, len(due), MAX_CONCURRENT_REQUESTS):
                if is_host_available:
                    fetches = [
                        _Fetch(self, job, context, image_url, transaction_lock)
                        for image_url in due[first : first + MAX_CONCURRENT_REQUESTS]
                    ]
                    is_host_available = await _run_all(fetches)
            is_host_available = is_host_available and bool(due)
            await rebuild_pending_documents(self.uow, job, context, self.lease)
        await self._finish_or_reschedule(job, context)

    async def _finish_or_reschedule(self, job: ClaimedJob, context: AuditContext) -> None:
        async with self.uow.begin(job.tenant, context) as tx:
            again = await tx[MediaStore].find_next_due(str(job.args["host"]))
            if await tx[MediaStore].has_pending_documents():
                again = min(again or tx.now, tx.now + timedelta(seconds=2))
            if again is None:
                await tx[JobStore].finish(job)
            else:
                await tx[JobStore].reschedule(job, max(again, tx.now))


async def _run_all(fetches: Sequence["_Fetch"]) -> bool:
    """Carry out the fetches concurrently; return whether more images may be fetched from the host.

    The first exception cancels the other fetches and is raised.
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(fetch.carry_out()) for fetch in fetches]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return all(task.result() for task in tasks)


@dataclass(frozen=True, slots=True)
class _Fetch:
    """Fetch of one image.

    Attributes:
        handler: The handler that executes the job.
        transaction_lock: Lock that allows one transaction of the job at a time, which prevents deadlocks.
    """

    handler: ImageFetchJob
    job: ClaimedJob
    context: AuditContext
    image_url: ImageUrl
    transaction_lock: asyncio.Lock

    async def carry_out(self) -> bool:
        """Fetch the image and record the outcome; return whether more images may be fetched from the host."""
        with self.handler.workspaces.create_folder() as folder:
            try:
                return await self._fetch_and_store(folder)
            except ImageUnreachable as failure:
                if failure.unreachable_origin is not None:
                    await self._record_origin_failure(failure.unreachable_origin, str(failure))
                else:
                    await self._record_failure(
                        str(failure), is_forbidden=failure.is_forbidden, is_throttled=failure.is_throttled
                    )
                return not failure.is_throttled and failure.unreachable_origin is None
            except ImageRefused as failure:
                await self._record_failure(str(failure))
                return True

    @asynccontextmanager
    async def _fenced_transaction(self) -> AsyncIterator[Tx]:
        async with self.transaction_lock, self.handler.uow.begin(self.job.tenant, self.context) as tx:
            yield tx
            await tx[JobStore].renew_lease(self.job, self.handler.lease)

    async def _fetch_and_store(self, folder: Path) -> bool:
        image_url, is_stored = self.image_url, self.image_url.image is not None
        fetched = await self.handler.fetcher.fetch(
            image_url.url,
            folder / "fetched",
            image_url.etag if is_stored else None,
            image_url.last_modified if is_stored else None,
        )
        if fetched is None:
            async with self._fenced_transaction() as tx:
                await tx[MediaStore].record_unchanged(image_url.url_digest)
            return True
        converted = await self.handler.converter.convert(fetched.path, folder / "stored.webp")
        image_url = replace(image_url, etag=fetched.etag, last_modified=fetched.last_modified)
        keys, has_room = await self._reserve_storage(image_url, converted)
        if keys:
            for key, file in zip(keys, converted.files, strict=True):
                await self.handler.objects.put_file(key, file.path)
            await self._record_stored(image_url, keys, converted)
        return has_room

    async def _reserve_storage(self, image_url: ImageUrl, converted: ConvertedImage) -> tuple[Sequence[str], bool]:
        """Reserve storage for the converted files, unless an equal image is stored.

        Returns the keys to which the caller must write the files, and whether the storage quota suffices.
        """
        async with self._fenced_transaction() as tx:
            stored = await tx[MediaStore].lock_by_content(converted.content)
            if stored is not None:
                await _record_image(tx, image_url, stored.id)
                return (), True
            keys: list[str] = []
            for file in converted.files:
                suffix = "" if file is converted.file else f"-{max(file.width, file.height)}"
                key = build_image_key(tx.tenant, converted.content + suffix, secrets.token_hex(8))
                reservation = StoredObject(key, StoredKind.IMAGE, file.bytes, tx.now + retention.ORPHANS)
                if await tx[StorageLedger].add_entry(reservation) is None:
                    _LOG.info(
                        "images not stored: storage quota exhausted",
                        extra={"org": tx.tenant.org, "host": image_url.host},
                    )
                    await _free_objects(tx, keys)
                    await tx[MediaStore].postpone(image_url.host, tx.now + QUOTA_RETRY_DELAY)
                    return (), False
                keys.append(key)
        return keys, True

    async def _record_stored(self, image_url: ImageUrl, keys: Sequence[str], converted: ConvertedImage) -> None:
        """Record the image, whose files were written to `keys`.

        The files are deleted instead if no product contains the URL any more, or if another job stored the image first.
        """
        pairs = zip(keys[1:], converted.renditions, strict=True)
        renditions = tuple(Rendition(key, file.bytes, file.width, file.height) for key, file in pairs)
        largest = converted.file
        async with self._fenced_transaction() as tx:
            image = Image(
                new_id("img"),
                converted.content,
                keys[0],
                largest.bytes,
                largest.width,
                largest.height,
                tx.now,
                renditions,
            )
            if (
                await tx[MediaStore].lock_image_url(image_url.url_digest)
                and await _confirm_objects(tx, keys)
                and await tx[MediaStore].add(image)
            ):
                await _record_image(tx, image_url, image.id)
            else:
                await _free_objects(tx, keys)
                if stored := await tx[MediaStore].lock_by_content(converted.content):
                    await _record_image(tx, image_url, stored.id)

    async def _record_failure(self, reason: str, *, is_forbidden: bool = False, is_throttled: bool = False) -> None:
        image_url, tries = self.image_url, self.image_url.tries + 1
        wait = None if is_forbidden else compute_retry_delay(tries)
        async with self._fenced_transaction() as tx:
            if is_throttled:
                await tx[MediaStore].postpone(image_url.host, tx.now + THROTTLED_PAUSE)
            next_attempt = None if wait is None else tx.now + max(wait, THROTTLED_PAUSE if is_throttled else wait)
            await tx[MediaStore].record_failure(image_url.url_digest, tries, reason, next_attempt)
            if wait is None:
                await _report_problem(
                    tx, image_url, reason, ProblemKind.UNSAFE_URL if is_forbidden else ProblemKind.UNREADABLE
                )

    async def _record_origin_failure(self, origin: str, reason: str) -> None:
        """Record a failed fetch for all due images of an unreachable origin (scheme, host and port)."""
        async with self._fenced_transaction() as tx:
            failed_counts = await tx[MediaStore].record_origin_failure(
                self.image_url.host, origin, reason, RETRY_DELAYS
            )
            for run, count in failed_counts.items():
                message = f"{count} images at {origin[:_LONGEST_HOST]} could not be fetched: {reason}"
                await _add_problem(tx, run, message, ProblemKind.UNREADABLE, count)


async def _record_image(tx: Tx, image_url: ImageUrl, image: str) -> None:
    await _free_objects(tx, await tx[MediaStore].record_image(image_url, image))


async def _free_objects(tx: Tx, keys: Iterable[str]) -> None:
    for key in keys:
        await tx[StorageLedger].free(key)


async def _confirm_objects(tx: Tx, keys: Sequence[str]) -> bool:
    """Record in the storage ledger that the objects were written; return False if a reservation no longer exists."""
    return all([await tx[StorageLedger].remove_age_limit(key) for key in keys])


async def _report_problem(tx: Tx, image_url: ImageUrl, reason: str, kind: ProblemKind) -> None:
    """Add a problem to the run whose feed contains the image URL."""
    await _add_problem(tx, image_url.run, f"The image at {image_url.url[:300]} could not be fetched: {reason}", kind)


async def _add_problem(tx: Tx, id: str, detail: str, kind: ProblemKind, count: int = 1) -> None:
    run = await tx[RunStore].get(id, lock=True)
    if run is None:
        return
    problem = Problem("media", kind, detail)
    kept = (*run.problems, problem) if len(run.problems) < _MAX_PROBLEMS else run.problems
    stats = {**run.stats, "problems": run.stats.get("problems", 0) + count}
    await tx[RunStore].save(replace(run, problems=kept, stats=stats))
