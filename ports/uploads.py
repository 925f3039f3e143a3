"""Uploads in store."""

from typing import Protocol

from domain.uploads.model import Upload


class UploadStore(Protocol):
    """In a tenant's transaction."""

    async def get(self, id: str, *, lock: bool = False) -> Upload | None:
        """One upload."""
        ...

    async def add(self, upload: Upload) -> None:
        """Keep a new upload."""
        ...

    async def save(self, upload: Upload) -> None:
        """Keep its new state."""
        ...
