"""Fetching of one host's images: few at a time, verified, stored once by content, retried, and reported if given up."""

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
from domain.jobs.usecases.draining import LEASE
from domain.kernel import retention
from domain.kernel.ids import new_id
from domain.kernel.problems import Problem, ProblemKind
from domain.kernel.tenancy import AuditContext
from domain.media.model import DELAYS, NO_ROOM_FOR, Address, Image, Rendition, delay
from domain.media.ports import ConvertedImage, ImageConverter, ImageFetcher, ImageRefused, ImageUnreachable, MediaStore
from domain.media.usecases.showing import show
from domain.runs.ports import RunStore
from domain.storage.model import StoredKind, StoredObject, image_key
from domain.storage.ports import StorageLedger
from ports.objects import Objects
from ports.unit_of_work import Tx, UnitOfWork
from ports.workspaces import Workspaces

_LOG = logging.getLogger("joinery.media")
AT_ONCE = 2
"""Maximum number of concurrent requests to one host."""
PRESSED_FOR = timedelta(minutes=10)
"""Waiting time for a host that throttles requests (429, 503)."""
_TURN = 60.0
"""Seconds after which a job yields to other jobs of its organisation."""
_PAGE = 20
_LONGEST_HOST = 200
_MAX_PROBLEMS = 1000
"""Maximum number of problems that a run lists individually."""


@dataclass(frozen=True, slots=True)
class MediaFetching:
    """The handler of `media.fetch` jobs; it can be taken over at any point, because storage is reserved before writing."""

    uow: UnitOfWork
    objects: Objects
    fetcher: ImageFetcher
    converter: ImageConverter
    workspaces: Workspaces
    lease: timedelta = LEASE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Carry out one job."""
        context = job.context()
        until, turn, going_on = monotonic() + _TURN, asyncio.Lock(), True
        while going_on and monotonic() < until:
            async with self.uow.read(job.tenant) as tx:
                due = await tx[MediaStore].due(str(job.args["host"]), _PAGE)
            for first in range(0, len(due), AT_ONCE):
                if going_on:
                    these = due[first : first + AT_ONCE]
                    going_on = await _run_all([_Fetch(self, job, context, address, turn) for address in these])
            going_on = going_on and bool(due)
            await show(self.uow, job, context, self.lease)
        await self._end(job, context)

    async def _end(self, job: ClaimedJob, context: AuditContext) -> None:
        async with self.uow.begin(job.tenant, context) as tx:
            again = await tx[MediaStore].next_due(str(job.args["host"]))
            if await tx[MediaStore].unshown():
                again = min(again or tx.now, tx.now + timedelta(seconds=2))
            if again is None:
                await tx[JobStore].finish(job)
            else:
                await tx[JobStore].put_off(job, max(again, tx.now))


async def _run_all(fetches: Sequence["_Fetch"]) -> bool:
    """Run all fetches and return whether the host may be asked again; the first exception cancels the others and is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(fetch.carry_out()) for fetch in fetches]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return all(task.result() for task in tasks)


@dataclass(frozen=True, slots=True)
class _Fetch:
    """The fetch of one address. Its transactions are fenced by the job's attempt and serialised by `turn` to avoid deadlocks."""

    of: MediaFetching
    job: ClaimedJob
    context: AuditContext
    address: Address
    turn: asyncio.Lock

    async def carry_out(self) -> bool:
        """Fetch the address, record the outcome and return whether the host may be asked again."""
        with self.of.workspaces.folder() as folder:
            try:
                return await self._fetched(folder)
            except ImageUnreachable as failure:
                if failure.absent is not None:
                    await self._origin_failed(failure.absent, str(failure))
                else:
                    await self._failed(str(failure), refused=failure.refused, pressed=failure.pressed)
                return not failure.pressed and failure.absent is None
            except ImageRefused as failure:
                await self._failed(str(failure))
                return True

    @asynccontextmanager
    async def _recording(self) -> AsyncIterator[Tx]:
        async with self.turn, self.of.uow.begin(self.job.tenant, self.context) as tx:
            yield tx
            await tx[JobStore].hold(self.job, self.of.lease)

    async def _fetched(self, folder: Path) -> bool:
        at, known = self.address, self.address.image is not None
        got = await self.of.fetcher.fetch(
            at.url, folder / "fetched", at.etag if known else None, at.last_modified if known else None
        )
        if got is None:
            async with self._recording() as tx:
                await tx[MediaStore].unchanged(at.address)
            return True
        converted = await self.of.converter.convert(got.path, folder / "stored.webp")
        at = replace(at, etag=got.etag, last_modified=got.last_modified)
        keys, room = await self._reserve_storage(at, converted)
        if keys:
            for key, made in zip(keys, converted.files, strict=True):
                await self.of.objects.put_file(key, made.path)
            await self._record_stored(at, keys, converted)
        return room

    async def _reserve_storage(self, at: Address, converted: ConvertedImage) -> tuple[Sequence[str], bool]:
        """Reserve storage for an image; return the keys to write (none for a known image), and whether the plan has room."""
        async with self._recording() as tx:
            there = await tx[MediaStore].by_content(converted.content)
            if there is not None:
                await _found(tx, at, there.id)
                return (), True
            keys: list[str] = []
            for made in converted.files:
                smaller = "" if made is converted.file else f"-{max(made.width, made.height)}"
                key = image_key(tx.tenant, converted.content + smaller, secrets.token_hex(8))
                wanted = StoredObject(key, StoredKind.IMAGE, made.bytes, tx.now + retention.ORPHANS)
                if await tx[StorageLedger].keep(wanted) is None:
                    _LOG.info("no room for images", extra={"org": tx.tenant.org, "host": at.host})
                    await _free(tx, keys)
                    await tx[MediaStore].postpone(at.host, tx.now + NO_ROOM_FOR)
                    return (), False
                keys.append(key)
        return keys, True

    async def _record_stored(self, at: Address, keys: Sequence[str], converted: ConvertedImage) -> None:
        """Record the written objects, or free them if the address is no longer needed or another job stored the image first."""
        pairs = zip(keys[1:], converted.renditions, strict=True)
        renditions = tuple(Rendition(key, one.bytes, one.width, one.height) for key, one in pairs)
        own = converted.file
        async with self._recording() as tx:
            image = Image(
                new_id("img"), converted.content, keys[0], own.bytes, own.width, own.height, tx.now, renditions
            )
            if (
                await tx[MediaStore].knows(at.address)
                and await _settle_objects(tx, keys)
                and await tx[MediaStore].add(image)
            ):
                await _found(tx, at, image.id)
            else:
                await _free(tx, keys)
                if there := await tx[MediaStore].by_content(converted.content):
                    await _found(tx, at, there.id)

    async def _failed(self, reason: str, *, refused: bool = False, pressed: bool = False) -> None:
        at, tries = self.address, self.address.tries + 1
        wait = None if refused else delay(tries)
        async with self._recording() as tx:
            if pressed:
                await tx[MediaStore].postpone(at.host, tx.now + PRESSED_FOR)
            again = None if wait is None else tx.now + max(wait, PRESSED_FOR if pressed else wait)
            await tx[MediaStore].failed(at.address, tries, reason, again)
            if wait is None:
                await _report_problem(tx, at, reason, ProblemKind.UNSAFE_URL if refused else ProblemKind.UNREADABLE)

    async def _origin_failed(self, origin: str, reason: str) -> None:
        """Record a failure for all addresses of an unreachable origin."""
        async with self._recording() as tx:
            given_up = await tx[MediaStore].origin_failed(self.address.host, origin, reason, DELAYS)
            for run, count in given_up.items():
                told = f"{count} images at {origin[:_LONGEST_HOST]} were given up: {reason}"
                await _add_problem(tx, run, told, ProblemKind.UNREADABLE, count)


async def _found(tx: Tx, at: Address, image: str) -> None:
    await _free(tx, await tx[MediaStore].found(at, image))


async def _free(tx: Tx, keys: Iterable[str]) -> None:
    for key in keys:
        await tx[StorageLedger].free(key)


async def _settle_objects(tx: Tx, keys: Sequence[str]) -> bool:
    """Record that the objects are written; return whether all of them still exist."""
    return all([await tx[StorageLedger].settle(key) for key in keys])


async def _report_problem(tx: Tx, at: Address, reason: str, kind: ProblemKind) -> None:
    """Add a problem to the run that named the address."""
    await _add_problem(tx, at.run, f"The image at {at.url[:300]} was given up: {reason}", kind)


async def _add_problem(tx: Tx, id: str, detail: str, kind: ProblemKind, count: int = 1) -> None:
    run = await tx[RunStore].get(id, lock=True)
    if run is None:
        return
    problem = Problem("media", kind, detail)
    kept = (*run.problems, problem) if len(run.problems) < _MAX_PROBLEMS else run.problems
    stats = {**run.stats, "problems": run.stats.get("problems", 0) + count}
    await tx[RunStore].save(replace(run, problems=kept, stats=stats))
