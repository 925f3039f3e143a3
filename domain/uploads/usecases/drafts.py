"""Draft files for the preview of a new source, which are stored for an hour or copied to an upload."""

from collections.abc import AsyncIterable
from dataclasses import dataclass
from datetime import timedelta

from domain.kernel.errors import Conflict, PayloadTooLarge
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.storage.admission import create_quota_error
from domain.storage.model import MAX_PENDING_UPLOADS, StoredKind, StoredObject, build_upload_key
from domain.storage.ports import StorageLedger
from ports.objects import ObjectStore
from ports.unit_of_work import Tx

DRAFT_LIFETIME = timedelta(hours=1)
"""Time for which a draft is stored."""
MAX_DRAFT_BYTES = 64 << 20
"""Maximum size of a draft in bytes."""


@dataclass(frozen=True, slots=True)
class DraftFiles:
    """Storage of draft files; they are in the object store and count against the storage quota."""

    objects: ObjectStore

    async def reserve(self, tx: Tx, size: int) -> str:
        """Count a new draft of `size` bytes against the storage quota; return the ID of the draft.

        Raises:
            PayloadTooLarge: The draft is larger than MAX_DRAFT_BYTES.
            QuotaExceeded: The storage quota does not suffice.
            Conflict: There are too many drafts and pending uploads.
        """
        if size > MAX_DRAFT_BYTES:
            raise PayloadTooLarge(
                f"At most {MAX_DRAFT_BYTES >> 20} MiB can be previewed. Upload the file without a preview."
            )
        id = new_id("upl")
        entry = StoredObject(build_upload_key(tx.tenant, id), StoredKind.UPLOAD, size, tx.now + DRAFT_LIFETIME)
        if await tx[StorageLedger].add_entry(entry) is None:
            raise create_quota_error(size, tx.now)
        if await tx[StorageLedger].count_unassigned(StoredKind.UPLOAD) > MAX_PENDING_UPLOADS:
            raise Conflict(
                "Too many files are stored for preview. Create the sources from them, or try again in an hour."
            )
        return id

    async def store(self, tenant: Tenant, id: str, chunks: AsyncIterable[bytes]) -> None:
        """Store the chunks as the file of a draft that was counted by `reserve`; the size is not checked again."""
        await self.objects.put_stream(build_upload_key(tenant, id), chunks)

    async def copy_to_upload(self, tenant: Tenant, id: str, upload: str) -> None:
        """Copy the file of a draft to an upload of the same tenant. Raises ObjectMissing."""
        await self.objects.put_stream(build_upload_key(tenant, upload), self.objects.read(build_upload_key(tenant, id)))

    async def delete(self, tx: Tx, id: str) -> None:
        """Delete the file of a draft, which no longer counts against the storage quota."""
        await tx[StorageLedger].free(build_upload_key(tx.tenant, id))
