"""Use cases of uploads: announce a file, read its state, complete it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.jobs.ports import JobStore
from domain.kernel import retention
from domain.kernel.errors import Conflict, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.resource import existing
from domain.runs.model import SNAPSHOT_LIMIT, Run, RunTrigger, UploadInput
from domain.runs.ports import RunStore
from domain.runs.queueing import execution, queued, started
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.storage.keeping import no_room
from domain.storage.model import OPEN_UPLOADS, StoredKind, StoredObject, upload_key
from domain.storage.ports import StorageLedger
from domain.uploads.model import AUDITED, TARGET_LIFETIME, CompleteUpload, NewUpload, Upload, UploadStatus
from ports.objects import ObjectMissing, Objects, SignedPut
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class Announced:
    """An upload, with the target of its bytes while it is pending."""

    upload: Upload
    target: SignedPut | None


Rehearse = Callable[[Tx, Source, Run, AsyncIterator[bytes], int], Awaitable[Run]]
"""Dry run of a run over an uploaded file with these bytes and this size."""


@dataclass(frozen=True, slots=True)
class UploadService:
    """Uploads of a tenant. `limit` is the largest file in bytes; `rehearse` previews a run in a dry run."""

    objects: Objects
    limit: int = SNAPSHOT_LIMIT
    rehearse: Rehearse | None = None

    async def announce(self, tx: Tx, source: str, new: NewUpload) -> Announced:
        """Announce a file for a source of kind file; its bytes may be PUT to the target for 15 minutes.

        Its size counts against the plan at once. Raises NotFound; Unprocessable for other kinds of source and for a file
        over the limit; Conflict if the source is not active or too many uploads are pending; QuotaExceeded.
        """
        found = await _source(tx, source)
        if found.kind != "file":
            raise Unprocessable(
                f"A source of kind {found.kind} takes no files; make a source of kind file and upload there."
            )
        if new["bytes"] > self.limit:
            detail = (
                f"The file is too large: {self.limit} bytes are taken at most. Divide it, or compress it (gzip, zip)."
            )
            raise Unprocessable.of("bytes", "too_large", detail)
        found.refuse_unless_runnable()
        upload = pending(tx, source, new)
        await stage(tx, upload)
        return await self._with_target(upload)

    async def get(self, tx: Tx, id: str) -> Announced:
        """Return an upload as of now. Raises NotFound."""
        return await self._with_target((await _upload(tx, id)).at(tx.now))

    async def complete(self, tx: Tx, id: str, asked: CompleteUpload | None = None) -> Upload:
        """Start the run that reads the uploaded file; for a completed upload, return it unchanged.

        Raises NotFound; Conflict when the bytes are missing, the upload has expired, the source is not active or a run
        of it is open; Unprocessable when there are more or fewer bytes than announced.
        """
        upload = (await _upload(tx, id, lock=not tx.dry)).at(tx.now)
        if upload.status == UploadStatus.COMPLETED:
            tx.recorded.forecasts["outcome"] = {"stats": {}, "changes": 0, "told": 0}
            return upload
        if upload.status != UploadStatus.PENDING:
            raise Conflict(
                f"The upload is {upload.status}; announce the file again and PUT its bytes within 15 minutes."
            )
        await self._refuse_wrong_bytes(upload)
        found = await _source(tx, upload.source, lock=not tx.dry)
        found.refuse_unless_runnable()
        if open_run := await tx[RunStore].open(upload.source, Stream.CATALOGUE):
            raise Conflict(
                f"The run {open_run.id} of this source is {open_run.status}; complete the upload when it has ended."
            )
        shrinking = asked is not None and asked.accept_shrink
        run = run_of(tx, upload, RunTrigger.UPLOAD, accept_shrink=shrinking)
        if tx.dry and self.rehearse is not None:
            await self.rehearse(tx, found, run, self.objects.read(upload.key), upload.bytes)
        return await start_run(tx, upload, run)

    async def refuse_bytes(self, tx: Tx, id: str) -> None:
        """Raise Conflict if the upload no longer accepts bytes."""
        upload = await tx.store(Upload).get(id)
        status = upload.at(tx.now).status if upload else UploadStatus.EXPIRED
        if status != UploadStatus.PENDING:
            raise Conflict(f"The upload is {status} and takes no bytes any more; announce the file again.")

    async def _refuse_wrong_bytes(self, upload: Upload) -> None:
        try:
            size = await self.objects.size(upload.key)
        except ObjectMissing:
            raise Conflict(
                "The file's bytes are not there yet; PUT them to target.url with exactly target.headers, then complete."
            ) from None
        if size != upload.bytes:
            raise Unprocessable(
                f"The file has {size} bytes where {upload.bytes} were announced; announce it again with bytes: {size}."
            )

    async def _with_target(self, upload: Upload) -> Announced:
        if upload.status != UploadStatus.PENDING:
            return Announced(upload, None)
        target = await self.objects.sign_put(
            upload.key, content_type=upload.content_type, bytes_limit=upload.bytes, expires_at=upload.expires_at
        )
        return Announced(upload, target)


async def _source(tx: Tx, id: str, *, lock: bool = False) -> Source:
    return existing(await tx[SourceStore].get(id, lock=lock))


async def _upload(tx: Tx, id: str, *, lock: bool = False) -> Upload:
    return existing(await tx.store(Upload).get(id, lock=lock))


def pending(tx: Tx, source: str, new: NewUpload) -> Upload:
    """Return a new pending upload of the source."""
    id = new_id("upl")
    return Upload(
        id=id,
        source=source,
        **new,
        status=UploadStatus.PENDING,
        key=upload_key(tx.tenant, id),
        expires_at=tx.now + TARGET_LIFETIME,
        created_at=tx.now,
    )


def run_of(tx: Tx, upload: Upload, trigger: RunTrigger, *, accept_shrink: bool = False) -> Run:
    """Return the run that reads an uploaded file."""
    file = UploadInput(upload.id, upload.key)
    return queued(upload.source, trigger, tx.now, input=file, accept_shrink=accept_shrink)


async def start_run(tx: Tx, upload: Upload, run: Run) -> Upload:
    """Queue the run that reads a completed upload."""
    await tx[RunStore].add(run)
    await tx[JobStore].add(execution(run, tx.tenant))
    completed = upload.completed(run.id, tx.now)
    await tx.store(Upload).save(completed)
    await tx[AuditLog].add(AUDITED.updated(upload, completed))
    await tx[AuditLog].add(started(run))
    await tx[StorageLedger].assign(upload.key, run.id)
    return completed


async def stage(tx: Tx, upload: Upload) -> None:
    """Store the upload and count its bytes against the plan. Raises QuotaExceeded, Conflict."""
    await tx.store(Upload).add(upload)
    await tx[AuditLog].add(AUDITED.created(upload))
    free_after = upload.expires_at + retention.UPLOADS
    if await tx[StorageLedger].keep(StoredObject(upload.key, StoredKind.UPLOAD, upload.bytes, free_after)) is None:
        raise no_room(upload.bytes, tx.now)
    if await tx[StorageLedger].count(StoredKind.UPLOAD) > OPEN_UPLOADS:
        raise Conflict(
            f"{OPEN_UPLOADS} announced files wait for their bytes already, the most there may be; complete them, or wait until they expire."
        )
