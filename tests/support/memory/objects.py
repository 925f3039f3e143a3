"""Objects in memory, with random tokens as links."""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from domain.kernel.clock import CLOCK
from domain.kernel.errors import PayloadTooLarge, PermissionDenied
from ports.objects import ObjectInfo, ObjectMissing, SignedPut

CHUNK = 64 * 1024
PAGE = 500
"""Objects per page of a listing."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Permissions of a link."""

    method: str
    key: str
    expires_at: datetime
    content_type: str = ""
    max_bytes: int = 0
    filename: str = ""


class MemoryObjects:
    """Objects (ports/objects.py) in memory; links point to `base_url`/objects/…, see `verify_link`."""

    def __init__(self, base_url: str = "http://127.0.0.1:8080") -> None:
        self._base = base_url.rstrip("/")
        self._objects: dict[str, bytes] = {}
        self.written: dict[str, datetime] = {}
        """When each object was written, by the machine's clock."""
        self._grants: dict[str, Grant] = {}
        self._key = secrets.token_bytes(32)

    async def put_file(self, key: str, path: Path) -> None:
        self._write(key, await asyncio.to_thread(path.read_bytes))

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        self._write(key, b"".join([chunk async for chunk in chunks]))

    async def get_size(self, key: str) -> int:
        return len(self._found(key))

    async def read(self, key: str) -> AsyncIterator[bytes]:
        data = self._found(key)
        for start in range(0, len(data), CHUNK):
            yield data[start : start + CHUNK]

    async def delete(self, key: str) -> None:
        self._objects.pop(key, None)
        self.written.pop(key, None)

    async def list_objects(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        keys = [key for key in self._objects if key.startswith(prefix)]
        for start in range(0, len(keys), PAGE):
            there = [key for key in keys[start : start + PAGE] if key in self._objects]
            yield [ObjectInfo(key, len(self._objects[key]), self.written[key]) for key in there]

    async def delete_temporary_files(self, min_age: timedelta) -> int:
        del min_age
        return 0

    async def sign_put(self, key: str, *, content_type: str, max_bytes: int, expires_at: datetime) -> SignedPut:
        grant = Grant("PUT", key, expires_at, content_type=content_type, max_bytes=max_bytes)
        return SignedPut(self._link(grant), {"Content-Type": content_type}, expires_at)

    async def sign_get(self, key: str, *, filename: str, expires_at: datetime) -> str:
        return self._link(Grant("GET", key, expires_at, filename=filename))

    def verify_link(self, method: str, key: str, query: Mapping[str, str], now: datetime) -> Grant:
        """Return the permissions of a request to /objects/`key`. Raises PermissionDenied."""
        grant = self._grants.get(query.get("signature", ""))
        method = "GET" if method == "HEAD" else method
        if grant is None or (grant.method, grant.key) != (method, key):
            raise PermissionDenied("This link is not valid. Use target.url exactly as the API returned it.")
        if now >= grant.expires_at:
            raise PermissionDenied("This link has expired. Request a new one from the API.")
        return grant

    async def store_upload(self, key: str, chunks: AsyncIterable[bytes], limit: int) -> int:
        """Store the chunks; return the number of bytes. Raises PayloadTooLarge and leaves the key unchanged."""
        data = bytearray()
        async for chunk in chunks:
            data += chunk
            if len(data) > limit:
                raise PayloadTooLarge(
                    f"The file is larger than {limit} bytes, the limit of this link. Create an upload with the size of the file."
                )
        self._write(key, bytes(data))
        return len(data)

    def _write(self, key: str, data: bytes) -> None:
        self._objects[key], self.written[key] = data, CLOCK.now()

    def _found(self, key: str) -> bytes:
        if key not in self._objects:
            raise ObjectMissing(key)
        return self._objects[key]

    def _link(self, grant: Grant) -> str:
        signature = hashlib.blake2b(repr(grant).encode(), key=self._key, digest_size=24).hexdigest()
        self._grants[signature] = grant
        return f"{self._base}/objects/{quote(grant.key)}?signature={signature}"
