"""Object storage for snapshots, uploads, exports and images, with signed links that expire."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

INLINE_TYPES = {".webp": "image/webp"}
"""Media types that are served inline, by file extension: only images that the service itself encoded."""


def download_headers(filename: str) -> dict[str, str]:
    """Return the Content-Type and Content-Disposition (RFC 6266) headers of a download."""
    kind = INLINE_TYPES.get(filename[filename.rfind(".") :])
    disposition = f"{'inline' if kind else 'attachment'}; filename*=UTF-8''{quote(filename, safe='')}"
    return {"content-type": kind or "application/octet-stream", "content-disposition": disposition}


@dataclass(frozen=True, slots=True)
class SignedPut:
    """Signed URL for one PUT, with the headers that the client must send."""

    url: str
    headers: Mapping[str, str]
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """Object of a listing."""

    key: str
    bytes: int
    modified_at: datetime


class ObjectMissing(Exception):
    """Absence of an object with the key."""


class Objects(Protocol):
    """Object storage by slash-separated keys that the caller chooses.

    Every operation raises Unavailable if the store fails, and StorageFull if it has no space for a write.
    """

    async def put_file(self, key: str, path: Path) -> None:
        """Store the file under the key atomically; replace an existing object."""
        ...

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        """Store the chunks under the key atomically; if their iterator raises, nothing is stored and the error propagates.

        Memory is bounded by a few chunks. `tidy` removes what a killed writer leaves.
        """
        ...

    async def size(self, key: str) -> int:
        """Return the object's size in bytes. Raises ObjectMissing."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Iterate over the object's bytes in chunks. The first chunk raises ObjectMissing if there is no object."""
        ...

    async def delete(self, key: str) -> None:
        """Delete the object, if there is one."""
        ...

    def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """Iterate over pages of the objects below `prefix` (whole segments, ending in a slash), in no order.

        Memory is bounded by the page. Objects written or deleted meanwhile may be listed or not.
        """
        ...

    async def tidy(self, older: timedelta) -> int:
        """Delete leftovers of killed writers that are older than `older`; return their number."""
        ...

    async def sign_put(self, key: str, *, content_type: str, bytes_limit: int, expires_at: datetime) -> SignedPut:
        """Sign a link to PUT at most `bytes_limit` bytes of the content type.

        A store that can only check an exact length accepts exactly `bytes_limit` bytes.
        """
        ...

    async def sign_get(self, key: str, *, filename: str, expires_at: datetime) -> str:
        """Sign a link to download the object with the headers of `download_headers(filename)`.

        Within a step of `domain.kernel.links` the link stays the same, except in a bucket whose credentials the client
        library finds by itself.
        """
        ...
