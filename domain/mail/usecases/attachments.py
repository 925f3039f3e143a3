"""Storage of the data files of a message, as uploads, before the message is accepted."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.kernel.errors import StorageFull, is_storage_full
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.mail.model import ParsedAttachment
from domain.storage.ports import StorageLedger
from domain.uploads.model import Upload, UploadStatus
from domain.uploads.usecases import new_upload, store_upload
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork
from ports.workspaces import Workspaces

LOG = logging.getLogger("joinery.mail")
CONTEXT = AuditContext(Actor("service", "mail"), "mail.take")
_CONTENT_TYPE = "application/octet-stream"
"""Content type of all stored files. Types that messages declare are often wrong, and therefore ignored."""


@dataclass(frozen=True, slots=True)
class AttachmentStaging:
    """Service that stores data files of messages as uploads, which get a run later or expire."""

    uow: UnitOfWork
    objects: ObjectStore
    workspaces: Workspaces

    async def store_files(self, tenant: Tenant, source: str, files: Sequence[ParsedAttachment]) -> list[Upload]:
        """Store the files as uploads of the source; return the uploads, in the same order.

        If QuotaExceeded, Conflict or StorageFull is raised, nothing is stored.
        """
        uploads: list[Upload] = []
        async with self.uow.begin(tenant, CONTEXT) as tx:
            for file in files:
                new = new_upload(
                    tx, source, {"filename": file.filename, "content_type": _CONTENT_TYPE, "bytes": file.size}
                )
                await store_upload(tx, new)
                uploads.append(new)
        try:
            with self.workspaces.create_folder() as folder:
                for index, (file, upload) in enumerate(zip(files, uploads, strict=True)):
                    path = folder / str(index)
                    await asyncio.to_thread(_write_file, path, file.content or b"")
                    await self.objects.put_file(upload.key, path)
        except BaseException as error:
            await self.delete_unused(tenant, uploads)
            if is_storage_full(error):
                LOG.warning("files of a message not stored, work folder full: %s", error)
                raise StorageFull from error
            raise
        return uploads

    async def delete_unused(self, tenant: Tenant, uploads: Sequence[Upload]) -> None:
        """Delete the uploads that have no run, and free their storage."""
        if not uploads:
            return
        async with self.uow.begin(tenant, CONTEXT) as tx:
            for upload in uploads:
                # An upload may have a run in spite of an error: a commit can succeed although the reply is lost.
                stored = await tx.store(Upload).get(upload.id, lock=True)
                if stored is not None and stored.status == UploadStatus.PENDING:
                    await tx.store(Upload).remove(upload.id)
                    await tx[StorageLedger].free(upload.key)


def _write_file(path: Path, content: bytes) -> None:
    path.write_bytes(content)
