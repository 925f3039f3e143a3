"""Blobs by key: raw snapshots, uploads, exports and images, with links that are signed for a while."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SignedPut:
    """Where a client may PUT one object, and the headers it must send."""

    url: str
    headers: Mapping[str, str]
    expires_at: datetime


class ObjectMissing(Exception):
    """No object has that key."""


class Objects(Protocol):
    """Keys are slash-separated, chosen by the caller; snapshots are content-addressed."""

    async def put_file(self, key: str, path: Path) -> None:
        """Store the file's bytes under the key, whole or not at all; an object of that key is replaced."""
        ...

    async def size(self, key: str) -> int:
        """The object's size in bytes. Raises ObjectMissing."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """The object's bytes in chunks. Raises ObjectMissing at the first chunk."""
        ...

    async def delete(self, key: str) -> None:
        """Forget the object; an unknown key is no error."""
        ...

    async def sign_put(self, key: str, *, content_type: str, bytes_limit: int, expires_at: datetime) -> SignedPut:
        """A link for one PUT of at most `bytes_limit` bytes of that content type, valid until `expires_at`."""
        ...

    async def sign_get(self, key: str, *, filename: str, expires_at: datetime) -> str:
        """A link to download the object, valid until `expires_at`."""
        ...
