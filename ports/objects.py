"""Object storage for snapshots, uploads, exports and images, with signed links that expire."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

INLINE_TYPES = {".webp": "image/webp"}
"""Media types that browsers may display, by file extension: only images that the service has encoded."""


def download_headers(filename: str) -> dict[str, str]:
    """Return the headers Content-Type and Content-Disposition (RFC 6266) for a download with that file name."""
    kind = INLINE_TYPES.get(filename[filename.rfind(".") :])
    disposition = f"{'inline' if kind else 'attachment'}; filename*=UTF-8''{quote(filename, safe='')}"
    return {"content-type": kind or "application/octet-stream", "content-disposition": disposition}


@dataclass(frozen=True, slots=True)
class SignedPut:
    """Signed URL for one PUT request, with the headers that the client must send."""

    url: str
    headers: Mapping[str, str]
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """Object in a listing; `bytes` is its size."""

    key: str
    bytes: int
    modified_at: datetime


class ObjectMissing(Exception):
    """There is no object with the key."""


class ObjectStore(Protocol):
    """Object storage with slash-separated keys, which the caller chooses.

    Every method raises Unavailable if the store fails, and StorageFull if it has no space for a write.
    """

    async def put_file(self, key: str, path: Path) -> None:
        """Store the file under the key atomically; an existing object is replaced."""
        ...

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        """Store the chunks under the key atomically; if their iterator raises, nothing is stored and the error is raised.

        Only a few chunks are in memory at a time. `delete_temporary_files` deletes the files that killed
        processes leave behind.
        """
        ...

    async def get_size(self, key: str) -> int:
        """Return the object's size in bytes. Raises ObjectMissing."""
        ...

    def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the object's bytes in chunks. The first step of the iteration raises ObjectMissing if there is no object."""
        ...

    async def delete(self, key: str) -> None:
        """Delete the object, if there is one."""
        ...

    def list_objects(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """Yield pages of the objects whose keys start with `prefix` (which must end in a slash), in any order.

        One page is in memory at a time. Objects that are written or deleted meanwhile may be listed or not.
        """
        ...

    async def delete_temporary_files(self, min_age: timedelta) -> int:
        """Delete temporary files of killed processes that are older than `min_age`; return their number."""
        ...

    async def sign_put(self, key: str, *, content_type: str, max_bytes: int, expires_at: datetime) -> SignedPut:
        """Return a signed link for a PUT request of at most `max_bytes` bytes with the content type.

        Some stores accept only exactly `max_bytes` bytes.
        """
        ...

    async def sign_get(self, key: str, *, filename: str, expires_at: datetime) -> str:
        """Return a signed link to download the object, with the headers of `download_headers(filename)`.

        Links that are signed within the same 30 seconds (domain.kernel.links.LINK_STEP) are equal, unless the service
        accesses an S3 bucket with the instance role of the machine.
        """
        ...
