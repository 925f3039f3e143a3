"""Storage of a message's data files before acceptance: reserved in the ledger first, then written."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.kernel.errors import StorageFull, is_storage_full
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.mail.model import File
from domain.storage.ports import StorageLedger
from domain.uploads.model import Upload, UploadStatus
from domain.uploads.usecases import pending, stage
from ports.objects import Objects
from ports.unit_of_work import UnitOfWork
from ports.workspaces import Workspaces

LOG = logging.getLogger("joinery.mail")
CONTEXT = AuditContext(Actor("service", "mail"), "mail.take")
_CONTENT_TYPE = "application/octet-stream"
"""The content type of all files: declared types are unreliable, so that the type is detected from the bytes."""


@dataclass(frozen=True, slots=True)
class Staging:
    """Uploads that wait for their run. Those that a killed process left expire as any upload."""

    uow: UnitOfWork
    objects: Objects
    workspaces: Workspaces

    async def put(self, tenant: Tenant, source: str, files: Sequence[File]) -> list[Upload]:
        """Store the files as uploads and return them.

        Raises QuotaExceeded, Conflict or StorageFull, with nothing stored.
        """
        uploads: list[Upload] = []
        async with self.uow.begin(tenant, CONTEXT) as tx:
            for file in files:
                new = pending(
                    tx, source, {"filename": file.filename, "content_type": _CONTENT_TYPE, "bytes": file.size}
                )
                await stage(tx, new)
                uploads.append(new)
        try:
            with self.workspaces.folder() as folder:
                for at, (file, upload) in enumerate(zip(files, uploads, strict=True)):
                    path = folder / str(at)
                    await asyncio.to_thread(_write, path, file.content or b"")
                    await self.objects.put_file(upload.key, path)
        except BaseException as error:
            await self.drop(tenant, uploads)
            if is_storage_full(error):
                LOG.warning("no space in the work folder for the files of a message: %s", error)
                raise StorageFull from error
            raise
        return uploads

    async def drop(self, tenant: Tenant, uploads: Sequence[Upload]) -> None:
        """Remove uploads that no run reads, and free their storage.

        An upload that has a run stays: a commit may have succeeded although its confirmation was lost.
        """
        if not uploads:
            return
        async with self.uow.begin(tenant, CONTEXT) as tx:
            for upload in uploads:
                stored = await tx.store(Upload).get(upload.id, lock=True)
                if stored is not None and stored.status == UploadStatus.PENDING:
                    await tx.store(Upload).remove(upload.id)
                    await tx[StorageLedger].free(upload.key)


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
