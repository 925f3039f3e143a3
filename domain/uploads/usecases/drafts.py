"""Files for preview: stored for an hour under a key of their own, then deleted or taken over by an upload."""

from collections.abc import AsyncIterable
from dataclasses import dataclass
from datetime import timedelta

from domain.kernel.errors import Conflict, PayloadTooLarge
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.storage.keeping import no_room
from domain.storage.model import OPEN_UPLOADS, StoredKind, StoredObject, upload_key
from domain.storage.ports import StorageLedger
from ports.objects import Objects
from ports.unit_of_work import Tx

LIFETIME = timedelta(hours=1)
BYTES = 64 << 20
"""Maximum size of a file for preview, in bytes."""


@dataclass(frozen=True, slots=True)
class Drafts:
    """Store of drafts, each an object with a ledger entry, so that it counts against the plan."""

    objects: Objects

    async def reserve(self, tx: Tx, size: int) -> str:
        """Count the bytes against the plan and return the draft's ID. Raises QuotaExceeded, PayloadTooLarge, Conflict for too many."""
        if size > BYTES:
            raise PayloadTooLarge(f"At most {BYTES >> 20} MiB can be looked into beforehand.")
        id = new_id("upl")
        wanted = StoredObject(upload_key(tx.tenant, id), StoredKind.UPLOAD, size, tx.now + LIFETIME)
        if await tx[StorageLedger].keep(wanted) is None:
            raise no_room(size, tx.now)
        if await tx[StorageLedger].count(StoredKind.UPLOAD) > OPEN_UPLOADS:
            raise Conflict("Too many files wait to be looked into; connect them, or come back in an hour.")
        return id

    async def store(self, tenant: Tenant, id: str, chunks: AsyncIterable[bytes]) -> None:
        """Write the draft's bytes."""
        await self.objects.put_stream(upload_key(tenant, id), chunks)

    async def take_over(self, tenant: Tenant, id: str, upload: str) -> None:
        """Move a draft's bytes to an announced upload of the same tenant. Raises ObjectMissing."""
        await self.objects.put_stream(upload_key(tenant, upload), self.objects.read(upload_key(tenant, id)))

    async def drop(self, tx: Tx, id: str) -> None:
        """Delete a draft."""
        await tx[StorageLedger].free(upload_key(tx.tenant, id))
