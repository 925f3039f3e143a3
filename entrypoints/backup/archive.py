"""Files of a backup in a folder or one `.tar` file, which gets its name when it is complete."""

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
    """A backup or restore failed; the message names the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class StoredFile:
    """File of a backup with its size and digest."""

    name: str
    bytes: int
    sha256: str


class Entry:
    """File that is being added, with its running size and digest."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self._name, self._file, self._digest, self._bytes = name, file, hashlib.sha256(), 0

    def write(self, chunk: bytes) -> None:
        """Append a chunk."""
        self._file.write(chunk)
        self._digest.update(chunk)
        self._bytes += len(chunk)

    def stored(self) -> StoredFile:
        """Return the file as written so far."""
        return StoredFile(self._name, self._bytes, self._digest.hexdigest())


class Writer:
    """Context of a backup that is being created at `path`; remains of a killed process are replaced."""

    def __init__(self, path: Path) -> None:
        if path.exists():
            raise BackupError(f"{path} already exists. Use another path for the backup.")
        if not path.absolute().parent.is_dir():
            raise BackupError(f"The folder {path.absolute().parent} of the backup does not exist. Create it first.")
        self._path, self._partial = path, path.with_name(path.name + ".partial")

    def __enter__(self) -> "Writer":
        """Start the backup."""
        _remove(self._partial)
        self._place = _Tar(self._partial, new=True) if self._path.suffix == ".tar" else _Folder(self._partial, new=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Rename the backup to its final name, or remove it after an error."""
        try:
            self._place.close()
            if error is None:
                self._partial.rename(self._path)
                _sync_folder(self._path.absolute().parent)
        finally:
            _remove(self._partial)

    @contextmanager
    def adding(self, name: str) -> Iterator[Entry]:
        """Add a file with the name."""
        with self._place.adding(name) as file:
            yield Entry(name, file)

    def add(self, name: str, content: bytes) -> StoredFile:
        """Add a file with the content."""
        with self.adding(name) as entry:
            entry.write(content)
        return entry.stored()


class Reader:
    """A complete backup."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise BackupError(f"The backup {path} does not exist.")
        try:
            self._place = _Folder(path) if path.is_dir() else _Tar(path)
            self.open(MANIFEST).close()
        except (KeyError, OSError, tarfile.TarError) as error:
            raise BackupError(f"{path} is not a complete backup: {MANIFEST} is missing.") from error

    def open(self, name: str) -> IO[bytes]:
        """Open a file of the backup."""
        return self._place.open(name)

    def chunks(self, file: StoredFile) -> Iterator[bytes]:
        """Iterate over a file's bytes. Raises BackupError, at the latest at the end, if size or digest differ."""
        digest, size = hashlib.sha256(), 0
        try:
            with self.open(file.name) as source:
                while chunk := source.read(CHUNK):
                    digest.update(chunk)
                    size += len(chunk)
                    yield chunk
        except (KeyError, OSError, tarfile.TarError, EOFError) as error:
            raise BackupError(f"{file.name} of the backup is unreadable ({error}). Use another backup.") from error
        if (size, digest.hexdigest()) != (file.bytes, file.sha256):
            raise BackupError(f"{file.name} of the backup is damaged. Use another backup.")

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
        path = self._resolve(name)
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
        return self._resolve(name).open("rb")

    def close(self) -> None:
        for folder, _, _ in os.walk(self._path):
            _sync_folder(Path(folder))

    def _resolve(self, name: str) -> Path:
        if ".." in name.split("/") or name.startswith("/"):
            raise BackupError(f"{name!r} is not a valid file name in a backup.")
        return self._path / name


class _Tar:
    def __init__(self, path: Path, *, new: bool = False) -> None:
        self._path = path
        if new:
            self._file: IO[bytes] = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
            self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115  see close
        else:
            self._file = path.open("rb")
            self._tar = tarfile.open(fileobj=self._file, mode="r:")  # noqa: SIM115  open until the command ends

    @contextmanager
    def adding(self, name: str) -> Iterator[IO[bytes]]:
        with tempfile.TemporaryFile(dir=self._path.absolute().parent) as file:
            yield file
            member = tarfile.TarInfo(name)
            member.size, member.mode = file.tell(), 0o600
            file.seek(0)
            self._tar.addfile(member, file)

    def open(self, name: str) -> IO[bytes]:
        member_file = self._tar.extractfile(name)
        if member_file is None:
            raise KeyError(name)
        return member_file

    def close(self) -> None:
        self._tar.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()


def _sync_folder(folder: Path) -> None:
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
