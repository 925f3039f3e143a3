"""Blobs by key: raw snapshots, uploads, exports and images, with links that are signed for a while."""

from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

INLINE_TYPES = {".webp": "image/webp"}
"""Media types that are served inline, by file extension: only images that the service has encoded."""


def download_headers(filename: str) -> dict[str, str]:
    """Return the Content-Type and Content-Disposition (RFC 6266) of a download with this name."""
    kind = INLINE_TYPES.get(filename[filename.rfind(".") :])
    disposition = f"{'inline' if kind else 'attachment'}; filename*=UTF-8''{quote(filename, safe='')}"
    return {"content-type": kind or "application/octet-stream", "content-disposition": disposition}


@dataclass(frozen=True, slots=True)
class SignedPut:
    """Where a client may PUT one object, and the headers it must send."""

    url: str
    headers: Mapping[str, str]
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """One object of a listing, and when it was last written."""

    key: str
    bytes: int
    modified_at: datetime


class ObjectMissing(Exception):
    """No object has that key."""


class Objects(Protocol):
    """Keys are slash-separated, chosen by the caller; snapshots are content-addressed.

    Every operation raises Unavailable when the store fails, and StorageFull when it has no space for a write.
    """

    async def put_file(self, key: str, path: Path) -> None:
        """Store the file's bytes under the key, whole or not at all; an object of that key is replaced."""
        ...

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        """Store what comes under the key, whole or not at all: not when the chunks end by an error, which goes on to the caller.

        Memory is bounded by a few chunks, whatever the object's size. What a writer that is killed leaves, `tidy` removes.
        """
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

    def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        """The objects whose keys begin with `prefix` (whole segments, ending in a slash), page by page, in no order.

        Memory is bounded by the page. What comes or goes meanwhile may be listed or not; what is gone is no error.
        """
        ...

    async def tidy(self, older: timedelta) -> int:
        """Remove what writers that were killed left behind and is older than that; answers how many leftovers."""
        ...

    async def sign_put(self, key: str, *, content_type: str, bytes_limit: int, expires_at: datetime) -> SignedPut:
        """A link to PUT at most `bytes_limit` bytes of that content type, valid until `expires_at`.

        A store that can only be told a length takes exactly so many.
        """
        ...

    async def sign_get(self, key: str, *, filename: str, expires_at: datetime) -> str:
        """A link to download the object, valid until `expires_at`, with the headers of `download_headers(filename)`.

        Within a step of `domain.kernel.links` it is the same link, except in a bucket whose credentials the client library finds.
        """
        ...
