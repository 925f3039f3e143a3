"""Object store in files: written atomically, under safe keys, reached from outside by signed links."""

import asyncio
import contextlib
import logging
import os
import re
import secrets
import shutil
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import IO

from adapters.files.links import Grant, Links
from domain.kernel.errors import PayloadTooLarge, StorageFull, Unavailable, is_storage_full
from domain.secrets.keys import SigningKeys
from ports.objects import ObjectInfo, ObjectMissing, SignedPut

CHUNK = 256 * 1024
PAGE = 500
"""Objects in a page of a listing."""

_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_LONGEST = 900
_LOG = logging.getLogger("joinery.objects")
_NAMING = 100
"""Attempts to rename a file into a folder that `tidy` may remove as empty in the meantime."""
_END = "~"
"""Ends each object's file name (no key may hold it), so that one key may continue another: `a` and `a/b`."""


class FileObjects:
    """Objects (ports/objects.py) below the folder `root`; links lead to `base_url`/objects/…, see `verify`."""

    def __init__(self, root: Path, base_url: str, keys: SigningKeys) -> None:
        self._root = root
        self._fresh = root / ".fresh"
        self._links = Links(base_url, keys)

    async def put_file(self, key: str, path: Path) -> None:
        await _run_in_thread(self._copy, self._path(key), path)

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        path = self._path(key)
        with self._writing() as (file, fresh):
            async for chunk in chunks:
                await _run_in_thread(file.write, chunk)
            await _run_in_thread(_settle, file, fresh, path)

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
        """Return the permission of a request to /objects/`key` (PUT, GET, HEAD). Raises PermissionDenied."""
        return self._links.verify(method, key, query, now)

    async def receive(self, key: str, chunks: AsyncIterable[bytes], limit: int) -> int:
        """Store the received bytes and return their number.

        Raises PayloadTooLarge above `limit` bytes; then, or if the sender disconnects, the key is unchanged.
        """
        path, size = self._path(key), 0
        with self._writing() as (file, fresh):
            async for chunk in chunks:
                size += len(chunk)
                if size > limit:
                    raise PayloadTooLarge(f"At most {limit} bytes may be sent to this link.")
                await _run_in_thread(file.write, chunk)
            await _run_in_thread(_settle, file, fresh, path)
        return size

    async def list(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        folder = self._path(prefix + "x").parent
        found = self._walk(folder, prefix)
        while page := await asyncio.to_thread(lambda: list(islice(found, PAGE))):
            yield page

    async def tidy(self, older: timedelta) -> int:
        """Delete temporary files of killed writers and empty folders, both older than `older`; return their number."""
        return await asyncio.to_thread(self._tidy, time.time() - older.total_seconds())  # noqa: TID251  files have the machine's times

    def _walk(self, folder: Path, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects depth first, one entry at a time, without collecting a folder's names."""
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._walk(Path(entry.path), f"{prefix}{entry.name}/")
                elif entry.name.endswith(_END):
                    with contextlib.suppress(FileNotFoundError):
                        stat = entry.stat(follow_symlinks=False)
                        modified_at = datetime.fromtimestamp(stat.st_mtime, UTC)
                        yield ObjectInfo(prefix + entry.name.removesuffix(_END), stat.st_size, modified_at)

    def _path(self, key: str) -> Path:
        segments = key.split("/")
        if len(key) > _LONGEST or not all(_SEGMENT.fullmatch(segment) for segment in segments):
            raise ValueError(f"not a safe key: {key!r}")
        return self._root.joinpath(*segments[:-1], segments[-1] + _END)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[tuple[IO[bytes], Path]]:
        fresh = self._fresh / secrets.token_hex(16)
        with _translate_errors():
            self._fresh.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = fresh.open("xb")
        try:
            yield file, fresh
        finally:
            with contextlib.suppress(OSError):  # closing fails only after an error that is raised already
                file.close()
            fresh.unlink(missing_ok=True)

    def _copy(self, path: Path, source: Path) -> None:
        with source.open("rb") as original, self._writing() as (file, fresh):
            shutil.copyfileobj(original, file, CHUNK)
            _settle(file, fresh, path)

    def _tidy(self, before: float) -> int:
        removed = 0
        for stale in _files(self._fresh):
            with contextlib.suppress(FileNotFoundError):
                if stale.stat().st_mtime < before:
                    stale.unlink()
                    removed += 1
        return removed + self._tidy_folders(self._root, before)

    def _tidy_folders(self, folder: Path, before: float) -> int:
        """Remove empty folders below this one; `_settle` creates a folder again that disappears during a write."""
        removed = 0
        for child in _folders(folder):
            if child == self._fresh:
                continue
            removed += self._tidy_folders(child, before)
            with contextlib.suppress(OSError):  # not empty, or already removed
                if child.stat().st_mtime < before:
                    child.rmdir()
                    removed += 1
        return removed


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate errors of the disk into StorageFull and Unavailable."""
    try:
        yield
    except FileNotFoundError:  # the file to store is missing
        raise
    except OSError as error:
        _LOG.error("object store error: %s", error)
        raise StorageFull if is_storage_full(error) else Unavailable from error


async def _run_in_thread(function: Callable[..., object], *args: object) -> None:
    """Run a write in a thread. Raises StorageFull, Unavailable."""
    with _translate_errors():
        await asyncio.to_thread(function, *args)


def _files(folder: Path) -> Iterator[Path]:
    """Yield the folder's files, one at a time."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from (Path(entry.path) for entry in entries if not entry.is_dir(follow_symlinks=False))


def _folders(folder: Path) -> Iterator[Path]:
    """Yield the folder's subfolders, one at a time."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from (Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))


def _settle(file: IO[bytes], fresh: Path, path: Path) -> None:
    """Make the written file the object durably: first its contents, then its name, then the folder entries."""
    file.flush()
    os.fsync(file.fileno())
    made = _named(fresh, path)
    for folder in {path.parent, *(folder.parent for folder in made)}:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _named(fresh: Path, path: Path) -> list[Path]:
    """Rename the file and return the folders that were created, again if `tidy` removes one in the meantime."""
    for retries in reversed(range(_NAMING)):
        made = [folder for folder in path.parents if not folder.exists()]
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh.replace(path)
        except (FileNotFoundError, FileExistsError):  # removed or created concurrently
            if not retries or not fresh.exists():
                raise
        else:
            return made
    raise AssertionError("the last try raises")
