"""Raw snapshots of runs: fetched, uploaded, pushed or stored earlier, and the latest input of a source."""

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from domain.ingestion.ports import Connectors, FetchFailed, Job, Validators
from domain.kernel.errors import QuotaExceeded
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.runs.model import SNAPSHOT_LIMIT, Fetched, PushInput, Run, RunErrorCode, RunFilter, RunStatus, UploadInput
from domain.runs.ports import PushStore, RunStore
from domain.sources.model import Source
from domain.storage.keeping import new_snapshot, no_room
from domain.storage.model import push_key
from domain.storage.ports import StorageLedger
from ports.objects import ObjectMissing, Objects
from ports.unit_of_work import Tx, UnitOfWork

_CONTEXT = AuditContext(Actor("service", "worker"), "runs.fetch")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The raw bytes of a feed. `key` is derived from the content; `unchanged`: the source reported no change."""

    path: Path | None
    key: str | None
    size: int
    unchanged: bool = False
    served_by: str | None = None
    validators: Validators = field(default_factory=Validators)

    def fetched(self, settings: str, run: Run, before: Fetched | None, now: datetime) -> Fetched:
        """Return the record of the fetch. Validators missing from an unchanged response are taken from `before`.

        A run without a fetch keeps the time of the earlier fetch.
        """
        etag, last_modified = self.validators.etag, self.validators.last_modified
        if self.unchanged and before is not None:
            etag, last_modified = etag or before.etag, last_modified or before.last_modified
        at = run.fetched.at if run.snapshot is not None and run.fetched else now
        return Fetched(settings, run.complete, etag, last_modified, at)


async def stored(
    objects: Objects, key: str, gone: str = "The stored file no longer exists. Submit it again."
) -> AsyncIterator[bytes]:
    """Yield an object's bytes. Raises FetchFailed with the message `gone` if it is missing."""
    try:
        async for chunk in objects.read(key):
            yield chunk
    except ObjectMissing as error:
        raise FetchFailed("fetch_failed", gone) from error


async def pushed_parts(tx: Tx, run: str, sequences: Iterable[int]) -> AsyncIterator[bytes]:
    """Yield parts of a batch, each a JSON array on its own line."""
    for sequence in sequences:
        if (records := await tx[PushStore].part(run, sequence)) is not None:
            yield records.replace(b"\n", b" ") + b"\n"


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetcher of snapshots into `folder`."""

    uow: UnitOfWork
    connectors: Connectors
    objects: Objects

    async def fetch_snapshot(self, tenant: Tenant, run: Run, source: Source, job: Job, folder: Path) -> Snapshot:
        """Return the run's snapshot, fetched if necessary. Raises FetchFailed."""
        path = folder / "snapshot"
        if run.snapshot is not None:
            return Snapshot(path, run.snapshot, (await _write(path, stored(self.objects, run.snapshot)))[0])
        if isinstance(run.input, UploadInput):
            return await self._take(tenant, run, path, stored(self.objects, run.input.key), run.input.key)
        if isinstance(run.input, PushInput):
            return await self._take(tenant, run, path, self._pushed(tenant, run), push_key(tenant, run.id))
        async with self.connectors.fetch(source.connector, job) as answer:
            taken = Snapshot(None, None, 0, unchanged=True)
            if not answer.not_modified:
                taken = await self._take(tenant, run, path, answer.chunks)
            return replace(taken, served_by=answer.served_by, validators=answer.validators)

    async def _take(
        self, tenant: Tenant, run: Run, path: Path, chunks: AsyncIterator[bytes], input_key: str | None = None
    ) -> Snapshot:
        """Count the bytes and commit before writing, so that every stored object is counted.

        The snapshot replaces the input counted under `input_key`.
        """
        size, digest = await _write(path, chunks)
        try:
            async with self.uow.begin(tenant, _CONTEXT) as tx:
                wanted = new_snapshot(tenant, run.id, digest, size, tx.now)
                entry = await tx[StorageLedger].keep(wanted, input_key)
                if entry is None:
                    raise no_room(size, tx.now)
        except QuotaExceeded as refusal:
            raise FetchFailed(RunErrorCode.QUOTA_EXCEEDED, refusal.detail) from refusal
        size_there = None
        with suppress(ObjectMissing):
            size_there = await self.objects.size(entry.key)
        if size_there != size:  # objects are written atomically
            await self.objects.put_file(entry.key, path)
        return Snapshot(path, entry.key, size)

    async def _pushed(self, tenant: Tenant, run: Run) -> AsyncIterator[bytes]:
        assert isinstance(run.input, PushInput)
        for sequence in range(run.input.parts):
            async with self.uow.read(tenant) as tx:
                parts = [part async for part in pushed_parts(tx, run.id, [sequence])]
            for part in parts:
                yield part


async def _write(path: Path, chunks: AsyncIterator[bytes]) -> tuple[int, str]:
    """Write the chunks to a file; return its size and digest. Raises FetchFailed beyond SNAPSHOT_LIMIT."""
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        async for chunk in chunks:
            size += len(chunk)
            if size > SNAPSHOT_LIMIT:
                raise FetchFailed("fetch_failed", f"The feed is larger than {SNAPSHOT_LIMIT >> 20} MiB.")
            digest.update(chunk)
            file.write(chunk)
    return size, digest.hexdigest()


@dataclass(frozen=True, slots=True)
class HandedIn:
    """Finder of a source's newest file or push; found in a transaction, read after it."""

    objects: Objects

    async def __call__(self, tx: Tx, source: Source) -> Callable[[], AsyncIterator[bytes]] | None:
        """Return a reader of the newest run's bytes that are still stored, or None. Reading raises FetchFailed."""
        for run in (await tx[RunStore].page(PageRequest(limit=20), RunFilter(source.id))).items:
            key = run.snapshot
            if (
                key is None
                and isinstance(run.input, UploadInput)
                and run.status in (RunStatus.QUEUED, RunStatus.RUNNING)
            ):
                key = run.input.key
            if key is not None:
                return partial(
                    stored, self.objects, key, "The last submitted file is no longer stored. Submit it again."
                )
            if isinstance(run.input, PushInput):
                parts = [part async for part in pushed_parts(tx, run.id, [0])]
                if parts:
                    return partial(_given, parts)
        return None


async def _given(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
