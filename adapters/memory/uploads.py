"""Uploads in memory."""

from typing import Final

from adapters.memory.table import Table, Transaction
from domain.kernel.errors import NotFound
from domain.uploads.model import Upload

UPLOADS: Final = Table[Upload]("uploads", lambda upload: upload.id)


class MemoryUploads:
    """UploadStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = transaction.rows(UPLOADS)

    async def get(self, id: str, *, lock: bool = False) -> Upload | None:
        """One upload."""
        if lock:
            await self._transaction.lock()
        return self._rows.get(id)

    async def add(self, upload: Upload) -> None:
        """Keep a new upload."""
        await self._rows.add(upload)

    async def save(self, upload: Upload) -> None:
        """Keep its new state."""
        if self._rows.get(upload.id) is None:
            raise NotFound
        await self._rows.put(upload)
