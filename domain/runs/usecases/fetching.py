"""Getting a run's snapshot: fetched, uploaded, pushed or kept from before; it ends up in a local file and in the object store."""

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from domain.ingestion.ports import Connectors, FetchFailed, Job, Validators
from domain.kernel.errors import QuotaExceeded
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.runs.model import SNAPSHOT_LIMIT, Fetched, PushInput, Run, RunErrorCode, UploadInput
from domain.runs.ports import PushStore
from domain.sources.model import Source
from domain.storage.keeping import new_snapshot, no_room
from domain.storage.model import push_key
from domain.storage.ports import StorageLedger
from ports.objects import ObjectMissing, Objects
from ports.unit_of_work import UnitOfWork

_CONTEXT: Final = AuditContext(Actor("service", "worker"), "runs.fetch")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The raw bytes of a feed. `key` is the object's key, the same for the same content; `unchanged`: the source said so itself."""

    path: Path | None
    key: str | None
    size: int
    unchanged: bool = False
    served_by: str | None = None
    validators: Validators = field(default_factory=Validators)

    def fetched(self, settings: str, run: Run, before: Fetched | None, now: datetime) -> Fetched:
        """How it was come by. A server that says that nothing changed need not repeat what it said `before` of it.

        What a run reads that fetches nothing is as old as it was.
        """
        etag, last_modified = self.validators.etag, self.validators.last_modified
        if self.unchanged and before is not None:
            etag, last_modified = etag or before.etag, last_modified or before.last_modified
        at = run.fetched.at if run.snapshot is not None and run.fetched else now
        return Fetched(settings, run.complete, etag, last_modified, at)


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches snapshots into `folder`."""

    uow: UnitOfWork
    connectors: Connectors
    objects: Objects

    async def fetch_snapshot(self, tenant: Tenant, run: Run, source: Source, job: Job, folder: Path) -> Snapshot:
        """The run's snapshot. Raises FetchFailed."""
        path = folder / "snapshot"
        if run.snapshot is not None:
            return Snapshot(path, run.snapshot, (await self._keep(path, self._stored(run.snapshot)))[0])
        if isinstance(run.input, UploadInput):
            return await self._take(tenant, run, path, self._stored(run.input.key))
        if isinstance(run.input, PushInput):
            return await self._take(tenant, run, path, self._pushed(tenant, run))
        return await self._fetch(tenant, run, source, job, path)

    async def _fetch(self, tenant: Tenant, run: Run, source: Source, job: Job, path: Path) -> Snapshot:
        async with self.connectors.fetch(source.connector, job) as answer:
            if answer.not_modified:
                return Snapshot(None, None, 0, True, answer.served_by, answer.validators)
            taken = await self._take(tenant, run, path, answer.chunks)
            return Snapshot(taken.path, taken.key, taken.size, False, answer.served_by, answer.validators)

    async def _take(self, tenant: Tenant, run: Run, path: Path, chunks: AsyncIterator[bytes]) -> Snapshot:
        """Counted first and committed, then written: whatever is there has been counted."""
        size, digest = await self._keep(path, chunks)
        try:
            async with self.uow.begin(tenant, _CONTEXT) as tx:
                wanted = new_snapshot(tenant, run.id, digest, size, tx.now)
                entry = await tx[StorageLedger].keep(wanted, _handed_in(tenant, run))
                if entry is None:
                    raise no_room(size, tx.now)
        except QuotaExceeded as refusal:
            raise FetchFailed(RunErrorCode.QUOTA_EXCEEDED, refusal.detail) from refusal
        if not await self._lies_there(entry.key, size):
            await self.objects.put_file(entry.key, path)
        return Snapshot(path, entry.key, size)

    async def _lies_there(self, key: str, size: int) -> bool:
        """Objects are written whole or not at all, so the size tells."""
        try:
            return await self.objects.size(key) == size
        except ObjectMissing:
            return False

    async def _keep(self, path: Path, chunks: AsyncIterator[bytes]) -> tuple[int, str]:
        digest, size = hashlib.sha256(), 0
        with path.open("wb") as file:
            async for chunk in chunks:
                size += len(chunk)
                if size > SNAPSHOT_LIMIT:
                    raise FetchFailed("fetch_failed", f"The feed is larger than {SNAPSHOT_LIMIT >> 20} MiB.")
                digest.update(chunk)
                file.write(chunk)
        return size, digest.hexdigest()

    async def _stored(self, key: str) -> AsyncIterator[bytes]:
        try:
            async for chunk in self.objects.read(key):
                yield chunk
        except ObjectMissing as error:
            raise FetchFailed("fetch_failed", "The stored file is gone; hand it in again.") from error

    async def _pushed(self, tenant: Tenant, run: Run) -> AsyncIterator[bytes]:
        """The parts of a batch, one JSON array a line."""
        assert isinstance(run.input, PushInput)
        for sequence in range(run.input.parts):
            async with self.uow.read(tenant) as tx:
                part = await tx[PushStore].part(run.id, sequence)
            if part is not None:
                yield part.replace(b"\n", b" ") + b"\n"


def _handed_in(tenant: Tenant, run: Run) -> str | None:
    """What the run's input is counted under: the snapshot takes its place."""
    if isinstance(run.input, UploadInput):
        return run.input.key
    return push_key(tenant, run.id) if isinstance(run.input, PushInput) else None
