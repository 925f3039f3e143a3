"""Objects as files: written whole or not at all, found by safe keys, reached from outside by signed links."""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO, Final

from adapters.files.links import Grant, Links
from domain.kernel.errors import PayloadTooLarge
from domain.secrets.keys import SigningKeys
from ports.objects import ObjectMissing, SignedPut

CHUNK: Final = 256 * 1024

_SEGMENT: Final = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_LONGEST: Final = 900
_END: Final = "~"
"""Ends each object's file name (no key may hold it), so that one key may continue another: `a` and `a/b`."""


class FileObjects:
    """Objects (ports/objects.py) below the folder `root`; links lead to `base_url`/objects/…, see `verify`."""

    def __init__(self, root: Path, base_url: str, keys: SigningKeys) -> None:
        self._root = root
        self._fresh = root / ".fresh"
        self._links = Links(base_url, keys)

    async def put_file(self, key: str, path: Path) -> None:
        await asyncio.to_thread(self._copy, self._path(key), path)

    async def size(self, key: str) -> int:
        try:
            return (await asyncio.to_thread(self._path(key).stat)).st_size
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error

    async def read(self, key: str) -> AsyncIterator[bytes]:
        try:
            file = await asyncio.to_thread(self._path(key).open, "rb")
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error
        with file:
            while chunk := await asyncio.to_thread(file.read, CHUNK):
                yield chunk

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._path(key).unlink, missing_ok=True)

    async def sign_put(self, key: str, *, content_type: str, bytes_limit: int, expires_at: datetime) -> SignedPut:
        self._path(key)
        url = self._links.make("PUT", key, expires_at, Grant(content_type=content_type, limit=bytes_limit))
        return SignedPut(url, {"Content-Type": content_type}, expires_at)

    async def sign_get(self, key: str, *, filename: str, expires_at: datetime) -> str:
        self._path(key)
        return self._links.make("GET", key, expires_at, Grant(filename=filename))

    def verify(self, method: str, key: str, query: Mapping[str, str], now: datetime) -> Grant:
        """What a request to /objects/`key` with these query parameters may do (PUT, GET, HEAD). Raises PermissionDenied."""
        return self._links.verify(method, key, query, now)

    async def receive(self, key: str, chunks: AsyncIterable[bytes], limit: int) -> int:
        """Store what comes in, at most `limit` bytes; answers how many came.

        Raises PayloadTooLarge; then, or when the sender breaks off, the key is as it was.
        """
        path, size = self._path(key), 0
        with self._writing() as (file, fresh):
            async for chunk in chunks:
                size += len(chunk)
                if size > limit:
                    raise PayloadTooLarge(f"At most {limit} bytes may be sent to this link.")
                await asyncio.to_thread(file.write, chunk)
            await asyncio.to_thread(_settle, file, fresh, path)
        return size

    async def tidy(self, older: timedelta = timedelta(days=1)) -> int:
        """Remove what writers that were killed left behind; answers how many files."""
        return await asyncio.to_thread(self._tidy, time.time() - older.total_seconds())

    def _path(self, key: str) -> Path:
        segments = key.split("/")
        if len(key) > _LONGEST or not all(_SEGMENT.fullmatch(segment) for segment in segments):
            raise ValueError(f"not a safe key: {key!r}")
        return self._root.joinpath(*segments[:-1], segments[-1] + _END)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[tuple[IO[bytes], Path]]:
        self._fresh.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = self._fresh / secrets.token_hex(16)
        try:
            with fresh.open("xb") as file:
                yield file, fresh
        finally:
            fresh.unlink(missing_ok=True)

    def _copy(self, path: Path, source: Path) -> None:
        with source.open("rb") as original, self._writing() as (file, fresh):
            shutil.copyfileobj(original, file, CHUNK)
            _settle(file, fresh, path)

    def _tidy(self, before: float) -> int:
        if not self._fresh.is_dir():
            return 0
        stale = [path for path in self._fresh.iterdir() if path.stat().st_mtime < before]
        for path in stale:
            path.unlink(missing_ok=True)
        return len(stale)


def _settle(file: IO[bytes], fresh: Path, path: Path) -> None:
    """Make the written file the object, lastingly: contents first, then its name, then the folders' entries."""
    file.flush()
    os.fsync(file.fileno())
    made = [folder for folder in path.parents if not folder.exists()]
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh.replace(path)
    for folder in {path.parent, *(folder.parent for folder in made)}:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
