"""The files of a backup in a folder or one `.tar` file, which has its name only once it is whole."""

import hashlib
import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO

from entrypoints.errors import OperatorError

MANIFEST = "manifest.json"
CHUNK = 256 * 1024


class BackupError(OperatorError):
    """A backup cannot be made or restored; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a backup, with its size and digest."""

    name: str
    bytes: int
    sha256: str


class Entry:
    """A file that is being added, and counted and hashed meanwhile."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self._name, self._file, self._digest, self._bytes = name, file, hashlib.sha256(), 0

    def write(self, chunk: bytes) -> None:
        """Append."""
        self._file.write(chunk)
        self._digest.update(chunk)
        self._bytes += len(chunk)

    def stored(self) -> StoredFile:
        """Return what was written so far."""
        return StoredFile(self._name, self._bytes, self._digest.hexdigest())


class Writer:
    """A backup that is being made at `path`, as a context. What a killed process left of it is replaced."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            raise BackupError(f"{path} is there already; name another place for the backup.")
        if not path.absolute().parent.is_dir():
            raise BackupError(f"There is no folder {path.absolute().parent} for the backup; make it first.")
        self._path, self._partial = path, path.with_name(path.name + ".partial")

    def __enter__(self) -> "Writer":
        """Begin."""
        _remove(self._partial)
        self._place = _Tar(self._partial, new=True) if self._path.suffix == ".tar" else _Folder(self._partial, new=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give the backup its name, or after an error remove it."""
        try:
            self._place.close()
            if error is None:
                self._partial.rename(self._path)
                _settle(self._path.absolute().parent)
        finally:
            _remove(self._partial)

    @contextmanager
    def adding(self, name: str) -> Iterator[Entry]:
        """Add a file of this name."""
        with self._place.adding(name) as file:
            yield Entry(name, file)

    def add(self, name: str, content: bytes) -> StoredFile:
        """Add a file with this content."""
        with self.adding(name) as entry:
            entry.write(content)
        return entry.stored()


class Reader:
    """A finished backup."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise BackupError(f"There is no backup {path}.")
        try:
            self._place = _Folder(path) if path.is_dir() else _Tar(path)
            self.open(MANIFEST).close()
        except (KeyError, OSError, tarfile.TarError) as error:
            raise BackupError(f"{path} is no finished backup: it has no {MANIFEST}.") from error

    def open(self, name: str) -> IO[bytes]:
        """Open a file of the backup."""
        return self._place.open(name)

    def chunks(self, file: StoredFile) -> Iterator[bytes]:
        """Iterate over a file's bytes. Raises BackupError, at the latest at the end, when they are not those that were written."""
        digest, size = hashlib.sha256(), 0
        try:
            with self.open(file.name) as opened:
                while chunk := opened.read(CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
                    yield chunk
        except (KeyError, OSError, tarfile.TarError, EOFError) as error:
            raise BackupError(f"{file.name} of the backup cannot be read ({error}).") from error
        if (size, digest.hexdigest()) != (file.bytes, file.sha256):
            raise BackupError(f"{file.name} of the backup is not what was written; use another backup.")

    def whole(self, file: StoredFile) -> bytes:
        """Return all bytes of a file. Raises BackupError."""
        return b"".join(self.chunks(file))


class _Folder:
    def __init__(self, path: Path, *, new: bool = False) -> None:
        self._path = path
        if new:
            path.mkdir(mode=0o700)

    @contextmanager
    def adding(self, name: str) -> Iterator[IO[bytes]]:
        path = self._inside(name)
        for folder in reversed([folder for folder in path.parents if not folder.exists()]):
            folder.mkdir(mode=0o700)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            try:
                yield file
            except BaseException:
                path.unlink()
                raise
            file.flush()
            os.fsync(file.fileno())

    def open(self, name: str) -> IO[bytes]:
        return self._inside(name).open("rb")

    def close(self) -> None:
        for folder, _, _ in os.walk(self._path):
            _settle(Path(folder))

    def _inside(self, name: str) -> Path:
        if ".." in name.split("/") or name.startswith("/"):
            raise BackupError(f"{name!r} is no name of a file in a backup.")
        return self._path / name


class _Tar:
    def __init__(self, path: Path, *, new: bool = False) -> None:
        self._path = path
        if new:
            self._file: IO[bytes] = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
            self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115  see close
        else:
            self._file = path.open("rb")
            self._tar = tarfile.open(fileobj=self._file, mode="r:")  # noqa: SIM115  a command reads it to its end

    @contextmanager
    def adding(self, name: str) -> Iterator[IO[bytes]]:
        with tempfile.TemporaryFile(dir=self._path.absolute().parent) as file:
            yield file
            member = tarfile.TarInfo(name)
            member.size, member.mode = file.tell(), 0o600
            file.seek(0)
            self._tar.addfile(member, file)

    def open(self, name: str) -> IO[bytes]:
        found = self._tar.extractfile(name)
        if found is None:
            raise KeyError(name)
        return found

    def close(self) -> None:
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def _settle(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
