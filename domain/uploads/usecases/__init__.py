"""Use cases of uploads: create, get and complete an upload."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from domain.audit.ports import AuditLog
from domain.catalogue.model import Stream
from domain.jobs.ports import JobStore
from domain.kernel import retention
from domain.kernel.errors import Conflict, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.resource import require_found
from domain.runs.model import MAX_SNAPSHOT_BYTES, Run, RunTrigger, UploadInput
from domain.runs.ports import RunStore
from domain.runs.run_queue import build_queued_run_change, new_execution_job, new_run
from domain.sources.model import Source
from domain.sources.ports import SourceStore
from domain.storage.admission import create_quota_error
from domain.storage.model import MAX_PENDING_UPLOADS, StoredKind, StoredObject, build_upload_key
from domain.storage.ports import StorageLedger
from domain.uploads.model import AUDITED, TARGET_LIFETIME, CompleteUpload, NewUpload, Upload, UploadStatus
from ports.objects import ObjectMissing, ObjectStore, SignedPut
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class UploadWithTarget:
    """Upload and, while it is pending, the signed link to which the file must be sent."""

    upload: Upload
    target: SignedPut | None


PreviewRun = Callable[[Tx, Source, Run, AsyncIterator[bytes], int], Awaitable[Run]]
"""Function that returns the run with the outcome that it would have, given the file's chunks and size in bytes."""


@dataclass(frozen=True, slots=True)
class UploadService:
    """Use cases of uploads.

    Attributes:
        max_bytes: Maximum size of a file in bytes.
        preview_run: Previews the run when the completion of an upload is a dry run.
    """

    objects: ObjectStore
    max_bytes: int = MAX_SNAPSHOT_BYTES
    preview_run: PreviewRun | None = None

    async def create(self, tx: Tx, source: str, fields: NewUpload) -> UploadWithTarget:
        """Create an upload for a source of kind file.

        The size of the upload counts against the storage quota at once. The file must be sent to the returned target
        within 15 minutes.

        Raises:
            NotFound: The source does not exist.
            Unprocessable: The source is of another kind, or the file is too large.
            Conflict: The source is not active, or too many uploads are pending.
            QuotaExceeded: The plan has no storage left.
        """
        found = await _get_source(tx, source)
        if found.kind != "file":
            raise Unprocessable(
                f"A source of kind {found.kind} does not accept files. Create a source of kind file and upload there."
            )
        if fields["bytes"] > self.max_bytes:
            detail = f"The file is too large: at most {self.max_bytes} bytes are permitted. Split or compress it (gzip, zip)."
            raise Unprocessable.for_field("bytes", "too_large", detail)
        found.refuse_unless_runnable()
        upload = new_upload(tx, source, fields)
        await store_upload(tx, upload)
        return await self._with_target(upload)

    async def get(self, tx: Tx, id: str) -> UploadWithTarget:
        """Return an upload with its current status. Raises NotFound."""
        return await self._with_target((await _get_upload(tx, id)).with_current_status(tx.now))

    async def complete(self, tx: Tx, id: str, completion: CompleteUpload | None = None) -> Upload:
        """Queue the run that reads the uploaded file, and return the completed upload.

        An upload that is completed already is returned unchanged.

        Raises:
            NotFound: The upload does not exist.
            Conflict: The file is missing, the upload has expired, the source is not active, or a run of the source is
                open.
            Unprocessable: The size of the file differs from the upload's `bytes`.
        """
        upload = (await _get_upload(tx, id, lock=not tx.is_dry_run)).with_current_status(tx.now)
        if upload.status == UploadStatus.COMPLETED:
            tx.recorded.extra_previews["outcome"] = {"stats": {}, "changes": 0, "told": 0}
            return upload
        if upload.status != UploadStatus.PENDING:
            raise Conflict(f"The upload is {upload.status}. Create a new upload and PUT the file within 15 minutes.")
        await self._refuse_wrong_bytes(upload)
        found = await _get_source(tx, upload.source, lock=not tx.is_dry_run)
        found.refuse_unless_runnable()
        if open_run := await tx[RunStore].find_open(upload.source, Stream.CATALOGUE):
            raise Conflict(
                f"The run {open_run.id} of this source is {open_run.status}. Complete the upload when the run has "
                f"ended."
            )
        accepts_shrink = completion is not None and completion.accept_shrink
        run = new_upload_run(tx, upload, RunTrigger.UPLOAD, accept_shrink=accepts_shrink)
        if tx.is_dry_run and self.preview_run is not None:
            await self.preview_run(tx, found, run, self.objects.read(upload.key), upload.bytes)
        return await queue_upload_run(tx, upload, run)

    async def refuse_unless_pending(self, tx: Tx, id: str) -> None:
        """Raise Conflict unless the upload exists and is pending; only then is its file accepted."""
        upload = await tx.store(Upload).get(id)
        status = upload.with_current_status(tx.now).status if upload else UploadStatus.EXPIRED
        if status != UploadStatus.PENDING:
            raise Conflict(f"The upload is {status} and no longer accepts bytes. Create a new upload.")

    async def _refuse_wrong_bytes(self, upload: Upload) -> None:
        try:
            size = await self.objects.get_size(upload.key)
        except ObjectMissing:
            raise Conflict(
                "The file's bytes are missing. PUT them to target.url with exactly target.headers, then complete "
                "the upload."
            ) from None
        if size != upload.bytes:
            raise Unprocessable(
                f"The file has {size} bytes instead of {upload.bytes}. Create a new upload with bytes: {size}."
            )

    async def _with_target(self, upload: Upload) -> UploadWithTarget:
        if upload.status != UploadStatus.PENDING:
            return UploadWithTarget(upload, None)
        target = await self.objects.sign_put(
            upload.key, content_type=upload.content_type, max_bytes=upload.bytes, expires_at=upload.expires_at
        )
        return UploadWithTarget(upload, target)


async def _get_source(tx: Tx, id: str, *, lock: bool = False) -> Source:
    return require_found(await tx[SourceStore].get(id, lock=lock))


async def _get_upload(tx: Tx, id: str, *, lock: bool = False) -> Upload:
    return require_found(await tx.store(Upload).get(id, lock=lock))


def new_upload(tx: Tx, source: str, fields: NewUpload) -> Upload:
    """Return a new pending upload for the source; it is not stored."""
    id = new_id("upl")
    return Upload(
        id=id,
        source=source,
        **fields,
        status=UploadStatus.PENDING,
        key=build_upload_key(tx.tenant, id),
        expires_at=tx.now + TARGET_LIFETIME,
        created_at=tx.now,
    )


def new_upload_run(tx: Tx, upload: Upload, trigger: RunTrigger, *, accept_shrink: bool = False) -> Run:
    """Return a new run that reads the uploaded file; it is not stored."""
    file = UploadInput(upload.id, upload.key)
    return new_run(upload.source, trigger, tx.now, input=file, accept_shrink=accept_shrink)


async def queue_upload_run(tx: Tx, upload: Upload, run: Run) -> Upload:
    """Queue the run that reads an upload; store and return the upload as completed."""
    await tx[RunStore].add(run)
    await tx[JobStore].add(new_execution_job(run, tx.tenant))
    completed = upload.with_completion(run.id, tx.now)
    await tx.store(Upload).save(completed)
    await tx[AuditLog].add(AUDITED.describe_update(upload, completed))
    await tx[AuditLog].add(build_queued_run_change(run))
    await tx[StorageLedger].assign_to_run(upload.key, run.id)
    return completed


async def store_upload(tx: Tx, upload: Upload) -> None:
    """Store a new upload, and count its size against the storage quota.

    Raises QuotaExceeded if the quota does not suffice, and Conflict if too many uploads are pending.
    """
    await tx.store(Upload).add(upload)
    await tx[AuditLog].add(AUDITED.describe_creation(upload))
    free_after = upload.expires_at + retention.UPLOADS
    if await tx[StorageLedger].add_entry(StoredObject(upload.key, StoredKind.UPLOAD, upload.bytes, free_after)) is None:
        raise create_quota_error(upload.bytes, tx.now)
    if await tx[StorageLedger].count_unassigned(StoredKind.UPLOAD) > MAX_PENDING_UPLOADS:
        raise Conflict(
            f"{MAX_PENDING_UPLOADS} uploads are pending, which is the maximum. Complete them, or wait until they expire."
        )
