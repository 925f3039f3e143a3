"""Object store in a folder of files, which are written atomically."""

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

from adapters.files.links import LinkPermissions, LinkSigner
from domain.kernel.errors import PayloadTooLarge, StorageFull, Unavailable, is_storage_full
from domain.secrets.keys import SigningKeys
from ports.objects import ObjectInfo, ObjectMissing, SignedPut

CHUNK_BYTES = 256 * 1024
"""Bytes that are read from a file at once."""
PAGE_SIZE = 500
"""Maximum objects in a page of a listing."""

_SEGMENT = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,199}")
_MAX_KEY_LENGTH = 900
_LOG = logging.getLogger("joinery.objects")
_RENAME_ATTEMPTS = 100
"""Maximum attempts to rename a file into a folder, which `delete_temporary_files` may concurrently delete while it is empty."""
_FILE_SUFFIX = "~"
"""Suffix of the file name of each object, forbidden in keys, so that the keys `a` and `a/b` can both exist."""


class FileObjects:
    """Object store in a folder (port ObjectStore in ports/objects.py).

    Args:
        root: The folder.
        base_url: The service's URL; a signed link consists of this URL, /objects/ and the key of the object.
        keys: The current and former keys for the signatures of links.
    """

    def __init__(self, root: Path, base_url: str, keys: SigningKeys) -> None:
        self._root = root
        self._temporary_folder = root / ".fresh"
        self._links = LinkSigner(base_url, keys)

    async def put_file(self, key: str, path: Path) -> None:
        await _run_in_thread(self._copy_file, self._find_path(key), path)

    async def put_stream(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        path = self._find_path(key)
        with self._open_temporary() as (file, temporary_path):
            async for chunk in chunks:
                await _run_in_thread(file.write, chunk)
            await _run_in_thread(_store_durably, file, temporary_path, path)

    async def get_size(self, key: str) -> int:
        try:
            return (await asyncio.to_thread(self._find_path(key).stat)).st_size
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error

    async def read(self, key: str) -> AsyncIterator[bytes]:
        try:
            file = await asyncio.to_thread(self._find_path(key).open, "rb")
        except FileNotFoundError as error:
            raise ObjectMissing(key) from error
        with file:
            while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
                yield chunk

    async def delete(self, key: str) -> None:
        await asyncio.to_thread(self._find_path(key).unlink, missing_ok=True)

    async def sign_put(self, key: str, *, content_type: str, max_bytes: int, expires_at: datetime) -> SignedPut:
        self._find_path(key)
        url = self._links.create_link(
            "PUT", key, expires_at, LinkPermissions(content_type=content_type, max_bytes=max_bytes)
        )
        return SignedPut(url, {"Content-Type": content_type}, expires_at)

    async def sign_get(self, key: str, *, filename: str, expires_at: datetime) -> str:
        self._find_path(key)
        return self._links.create_link("GET", key, expires_at, LinkPermissions(filename=filename))

    def verify_link(self, method: str, key: str, query: Mapping[str, str], now: datetime) -> LinkPermissions:
        """Return what the signed link of a PUT, GET or HEAD request to /objects/`key` permits. Raises PermissionDenied."""
        return self._links.verify(method, key, query, now)

    async def store_upload(self, key: str, chunks: AsyncIterable[bytes], max_bytes: int) -> int:
        """Store an object from the body of a request, and return the number of bytes.

        If `chunks` raises an error or exceeds the limit, the object does not change.

        Args:
            key: The key of the object.
            chunks: The body of the request.
            max_bytes: Maximum bytes of the body.

        Raises:
            PayloadTooLarge: The body exceeds the limit.
        """
        path, size = self._find_path(key), 0
        with self._open_temporary() as (file, temporary_path):
            async for chunk in chunks:
                size += len(chunk)
                if size > max_bytes:
                    raise PayloadTooLarge(
                        f"The file is larger than {max_bytes} bytes, the limit of this link. "
                        "Create an upload with the size of the file."
                    )
                await _run_in_thread(file.write, chunk)
            await _run_in_thread(_store_durably, file, temporary_path, path)
        return size

    async def list_objects(self, prefix: str) -> AsyncIterator[Sequence[ObjectInfo]]:
        folder = self._find_path(prefix + "x").parent
        found = self._iterate_objects(folder, prefix)
        while page := await asyncio.to_thread(lambda: list(islice(found, PAGE_SIZE))):
            yield page

    async def delete_temporary_files(self, min_age: timedelta) -> int:
        """Delete temporary files of killed processes, and empty folders, that are older than `min_age`; return their number."""
        return await asyncio.to_thread(self._delete_old_files, time.time() - min_age.total_seconds())  # noqa: TID251  files have the machine's times

    def _iterate_objects(self, folder: Path, prefix: str) -> Iterator[ObjectInfo]:
        """Yield the objects below the folder depth first, one directory entry at a time."""
        with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    yield from self._iterate_objects(Path(entry.path), f"{prefix}{entry.name}/")
                elif entry.name.endswith(_FILE_SUFFIX):
                    with contextlib.suppress(FileNotFoundError):
                        stat = entry.stat(follow_symlinks=False)
                        modified_at = datetime.fromtimestamp(stat.st_mtime, UTC)
                        yield ObjectInfo(prefix + entry.name.removesuffix(_FILE_SUFFIX), stat.st_size, modified_at)

    def _find_path(self, key: str) -> Path:
        """Return the file of the object. Raises ValueError for an invalid key."""
        segments = key.split("/")
        if len(key) > _MAX_KEY_LENGTH or not all(_SEGMENT.fullmatch(segment) for segment in segments):
            raise ValueError(f"the object key is invalid: {key!r}")
        return self._root.joinpath(*segments[:-1], segments[-1] + _FILE_SUFFIX)

    @contextlib.contextmanager
    def _open_temporary(self) -> Iterator[tuple[IO[bytes], Path]]:
        """Create a temporary file; yield the open file and its path. If the file was not moved, delete it at the end."""
        temporary_path = self._temporary_folder / secrets.token_hex(16)
        with _translate_errors():
            self._temporary_folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = temporary_path.open("xb")
        try:
            yield file, temporary_path
        finally:
            with contextlib.suppress(OSError):  # closing fails only after an error that is already raised
                file.close()
            temporary_path.unlink(missing_ok=True)

    def _copy_file(self, path: Path, source: Path) -> None:
        """Store a copy of the file `source` atomically as the object's file `path`."""
        with source.open("rb") as original, self._open_temporary() as (file, temporary_path):
            shutil.copyfileobj(original, file, CHUNK_BYTES)
            _store_durably(file, temporary_path, path)

    def _delete_old_files(self, before: float) -> int:
        """Delete temporary files and empty folders last changed before `before` (Unix time); return their number."""
        removed = 0
        for stale in _iterate_files(self._temporary_folder):
            with contextlib.suppress(FileNotFoundError):
                if stale.stat().st_mtime < before:
                    stale.unlink()
                    removed += 1
        return removed + self._delete_empty_folders(self._root, before)

    def _delete_empty_folders(self, folder: Path, before: float) -> int:
        """Delete empty folders below `folder` that were last changed before `before` (Unix time); return their number."""
        removed = 0
        for child in _iterate_folders(folder):
            if child == self._temporary_folder:
                continue
            removed += self._delete_empty_folders(child, before)
            with contextlib.suppress(OSError):  # not empty, or already removed
                if child.stat().st_mtime < before:
                    child.rmdir()
                    removed += 1
        return removed


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Log errors of the disk, and raise StorageFull or Unavailable instead."""
    try:
        yield
    except FileNotFoundError:  # the file to store is missing
        raise
    except OSError as error:
        _LOG.error("object store error: %s", error)
        raise StorageFull if is_storage_full(error) else Unavailable from error


async def _run_in_thread(function: Callable[..., object], *args: object) -> None:
    """Run a function that writes to the disk in a thread. Raises StorageFull or Unavailable."""
    with _translate_errors():
        await asyncio.to_thread(function, *args)


def _iterate_files(folder: Path) -> Iterator[Path]:
    """Yield the files in the folder, without subfolders; none if the folder does not exist."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from (Path(entry.path) for entry in entries if not entry.is_dir(follow_symlinks=False))


def _iterate_folders(folder: Path) -> Iterator[Path]:
    """Yield the direct subfolders of the folder; none if the folder does not exist."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as entries:
        yield from (Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))


def _store_durably(file: IO[bytes], temporary_path: Path, path: Path) -> None:
    """Move the temporary file to the object's file `path`, so that the object survives a crash."""
    # first the content is synchronised to disk, then the file is renamed, then the folders are synchronised
    file.flush()
    os.fsync(file.fileno())
    made = _rename_file(temporary_path, path)
    for folder in {path.parent, *(folder.parent for folder in made)}:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _rename_file(temporary_path: Path, path: Path) -> list[Path]:
    """Rename the temporary file to `path`, and return the folders that were created for it."""
    for retries in reversed(range(_RENAME_ATTEMPTS)):
        made = [folder for folder in path.parents if not folder.exists()]
        try:  # again if `delete_temporary_files` concurrently deletes an empty folder
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            temporary_path.replace(path)
        except (FileNotFoundError, FileExistsError):  # removed or created concurrently
            if not retries or not temporary_path.exists():
                raise
        else:
            return made
    raise AssertionError("internal error: the last attempt did not raise an error")
