"""Snapshots (stored files) of runs: fetching and storing, and finding the newest one of a source."""

import hashlib
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from domain.ingestion.ports import Connectors, ConnectorTask, FetchFailed, HttpValidators
from domain.kernel.errors import QuotaExceeded
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.runs.model import (
    MAX_SNAPSHOT_BYTES,
    FetchRecord,
    PushInput,
    Run,
    RunErrorCode,
    RunFilter,
    RunStatus,
    UploadInput,
)
from domain.runs.ports import PushStore, RunStore
from domain.sources.model import Source
from domain.storage.admission import create_quota_error, create_snapshot_entry
from domain.storage.model import build_push_key
from domain.storage.ports import StorageLedger
from ports.objects import ObjectMissing, ObjectStore
from ports.unit_of_work import Tx, UnitOfWork

_CONTEXT = AuditContext(Actor("service", "worker"), "runs.fetch")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Data of a run as it was fetched or submitted.

    Attributes:
        path: The local file; None if the source reported no change.
        key: Key in the object store; None if the source reported no change, or if the quota does not suffice.
        size: Size in bytes.
        is_unchanged: Whether the source reported that nothing has changed since the last fetch.
        served_by: Name of the source's API that returned the data; None if the connector uses only one API.
        validators: ETag and Last-Modified of the response.
    """

    path: Path | None
    key: str | None
    size: int
    is_unchanged: bool = False
    served_by: str | None = None
    validators: HttpValidators = field(default_factory=HttpValidators)

    def create_fetch_record(
        self, settings_digest: str, run: Run, previous: FetchRecord | None, now: datetime
    ) -> FetchRecord:
        """Return the fetch record of a run that has this snapshot.

        Args:
            settings_digest: Digest of the source's settings.
            run: The run as stored before this snapshot was fetched.
            previous: Record of the previous fetch. If the source reported no change, the validators of this record
                replace missing ones of the response.
            now: The current time.
        """
        etag, last_modified = self.validators.etag, self.validators.last_modified
        if self.is_unchanged and previous is not None:
            etag, last_modified = etag or previous.etag, last_modified or previous.last_modified
        at = run.fetched.at if run.snapshot is not None and run.fetched else now
        return FetchRecord(settings_digest, run.is_complete, etag, last_modified, at)


async def read_stored_object(
    objects: ObjectStore, key: str, missing_message: str = "The stored file no longer exists. Submit it again."
) -> AsyncIterator[bytes]:
    """Yield the bytes of a stored object. Raises FetchFailed with the message `missing_message` if the object does not exist."""
    try:
        async for chunk in objects.read(key):
            yield chunk
    except ObjectMissing as error:
        raise FetchFailed("fetch_failed", missing_message) from error


async def read_pushed_parts(tx: Tx, run_id: str, part_numbers: Iterable[int]) -> AsyncIterator[bytes]:
    """Yield the parts of a batch that have these numbers, each as a line with a JSON array."""
    for part_number in part_numbers:
        if (records := await tx[PushStore].get_part(run_id, part_number)) is not None:
            yield records.replace(b"\n", b" ") + b"\n"


@dataclass(frozen=True, slots=True)
class SnapshotFetcher:
    """Gets the snapshots of runs: fetches and stores them, or reads stored ones."""

    uow: UnitOfWork
    connectors: Connectors
    objects: ObjectStore

    async def fetch_snapshot(
        self, tenant: Tenant, run: Run, source: Source, task: ConnectorTask, folder: Path
    ) -> Snapshot:
        """Return the run's snapshot as a file in `folder`, after fetching it if necessary. Raises FetchFailed."""
        path = folder / "snapshot"
        if run.snapshot is not None:
            return Snapshot(path, run.snapshot, (await _write(path, read_stored_object(self.objects, run.snapshot)))[0])
        if isinstance(run.input, UploadInput):
            return await self._store_snapshot(
                tenant, run, path, read_stored_object(self.objects, run.input.key), run.input.key
            )
        if isinstance(run.input, PushInput):
            return await self._store_snapshot(
                tenant, run, path, self._read_pushed(tenant, run), build_push_key(tenant, run.id)
            )
        async with self.connectors.fetch(source.connector, task) as response:
            snapshot = Snapshot(None, None, 0, is_unchanged=True)
            if not response.is_not_modified:
                # copies of a followed catalogue must not outlive the licence because a quota is used up
                snapshot = await self._store_snapshot(
                    tenant, run, path, response.chunks, is_required=not source.follows_catalogue
                )
            return replace(snapshot, served_by=response.served_by, validators=response.validators)

    async def _store_snapshot(
        self,
        tenant: Tenant,
        run: Run,
        path: Path,
        chunks: AsyncIterator[bytes],
        input_key: str | None = None,
        *,
        is_required: bool = True,
    ) -> Snapshot:
        """Write the chunks to a local file, and store the file as the run's snapshot.

        If the run has a submitted input, `input_key` is the key of its ledger entry. The snapshot then counts against
        the storage quota in place of the input. If the quota does not suffice, the file is stored only locally; with
        `is_required`, FetchFailed is raised.
        """
        # the size is counted and committed before the object is stored, so that every stored object is counted
        size, digest = await _write(path, chunks)
        try:
            async with self.uow.begin(tenant, _CONTEXT) as tx:
                new_entry = create_snapshot_entry(tenant, run.id, digest, size, tx.now)
                entry = await tx[StorageLedger].add_entry(new_entry, input_key)
                if entry is None and is_required:
                    raise create_quota_error(size, tx.now)
        except QuotaExceeded as refusal:
            raise FetchFailed(RunErrorCode.QUOTA_EXCEEDED, refusal.detail) from refusal
        if entry is None:
            return Snapshot(path, None, size)
        stored_size = None
        with suppress(ObjectMissing):
            stored_size = await self.objects.get_size(entry.key)
        if stored_size != size:  # objects are written atomically
            await self.objects.put_file(entry.key, path)
        return Snapshot(path, entry.key, size)

    async def _read_pushed(self, tenant: Tenant, run: Run) -> AsyncIterator[bytes]:
        assert isinstance(run.input, PushInput)
        for part_number in range(run.input.parts):
            async with self.uow.begin_reading(tenant) as tx:
                parts = [part async for part in read_pushed_parts(tx, run.id, [part_number])]
            for part in parts:
                yield part


async def _write(path: Path, chunks: AsyncIterator[bytes]) -> tuple[int, str]:
    """Write the chunks to a file; return its size and digest. Raises FetchFailed if it exceeds MAX_SNAPSHOT_BYTES."""
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        async for chunk in chunks:
            size += len(chunk)
            if size > MAX_SNAPSHOT_BYTES:
                raise FetchFailed(
                    "fetch_failed",
                    f"The feed is larger than {MAX_SNAPSHOT_BYTES >> 20} MiB, the maximum. Provide a smaller feed.",
                )
            digest.update(chunk)
            file.write(chunk)
    return size, digest.hexdigest()


@dataclass(frozen=True, slots=True)
class LatestInputFinder:
    """Finds the newest stored data of a source, which can then be read outside the transaction."""

    objects: ObjectStore

    async def __call__(self, tx: Tx, source: Source) -> Callable[[], AsyncIterator[bytes]] | None:
        """Return a function that yields the newest snapshot, upload or pushed part; None if nothing is stored.

        The function raises FetchFailed.
        """
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
                    read_stored_object,
                    self.objects,
                    key,
                    "The last submitted file is no longer stored. Submit it again.",
                )
            if isinstance(run.input, PushInput):
                parts = [part async for part in read_pushed_parts(tx, run.id, [0])]
                if parts:
                    return partial(_yield_parts, parts)
        return None


async def _yield_parts(parts: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
