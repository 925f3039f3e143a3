"""Writing and reading of a backup: a folder, or one `.tar` file."""

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
CHUNK_BYTES = 256 * 1024


class BackupError(OperatorError):
    """Failure of a backup or restore; the message names the reason and the remedy."""


@dataclass(frozen=True, slots=True)
class BackupFile:
    """Name, size and SHA-256 digest of a file in a backup."""

    name: str
    bytes: int
    sha256: str


class ArchiveEntry:
    """File that is being added to a backup."""

    def __init__(self, name: str, file: IO[bytes]) -> None:
        self._name, self._file, self._digest, self._bytes = name, file, hashlib.sha256(), 0

    def write(self, chunk: bytes) -> None:
        """Append a chunk to the file."""
        self._file.write(chunk)
        self._digest.update(chunk)
        self._bytes += len(chunk)

    def finish(self) -> BackupFile:
        """Return the file's name, and the size and digest of the chunks written."""
        return BackupFile(self._name, self._bytes, self._digest.hexdigest())


class BackupWriter:
    """Context in which a backup is created at `path`, a new folder or `.tar` file.

    The backup has a temporary name until it is complete.
    """

    def __init__(self, path: Path) -> None:
        if path.exists():
            raise BackupError(f"{path} already exists. Use another path for the backup.")
        if not path.absolute().parent.is_dir():
            raise BackupError(f"The folder {path.absolute().parent} of the backup does not exist. Create it first.")
        self._path, self._temporary_path = path, path.with_name(path.name + ".partial")

    def __enter__(self) -> "BackupWriter":
        """Create the backup under its temporary name, and replace a partial backup that a killed process left there."""
        _remove_path(self._temporary_path)
        self._archive = (
            _Tar(self._temporary_path, is_new=True)
            if self._path.suffix == ".tar"
            else _Folder(self._temporary_path, is_new=True)
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Rename the backup to `path`; after an error, remove it."""
        try:
            self._archive.close()
            if error is None:
                self._temporary_path.rename(self._path)
                _sync_folder(self._path.absolute().parent)
        finally:
            _remove_path(self._temporary_path)

    @contextmanager
    def open_new_file(self, name: str) -> Iterator[ArchiveEntry]:
        """Add a file to the backup; yield the entry to which the file's chunks are written within the context."""
        with self._archive.open_new_file(name) as file:
            yield ArchiveEntry(name, file)

    def add_file(self, name: str, content: bytes) -> BackupFile:
        """Add a file with the content to the backup; return its name, size and digest."""
        with self.open_new_file(name) as entry:
            entry.write(content)
        return entry.finish()


class BackupReader:
    """Reader of a complete backup, which is a folder or `.tar` file.

    Raises BackupError if the backup does not exist or is incomplete.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            raise BackupError(f"The backup {path} does not exist.")
        try:
            self._archive = _Folder(path) if path.is_dir() else _Tar(path)
            self.open(MANIFEST).close()
        except (KeyError, OSError, tarfile.TarError) as error:
            raise BackupError(f"{path} is not a complete backup: {MANIFEST} is missing.") from error

    def open(self, name: str) -> IO[bytes]:
        """Open a file of the backup for reading."""
        return self._archive.open(name)

    def read_chunks(self, file: BackupFile) -> Iterator[bytes]:
        """Yield the file's content in chunks. Raises BackupError, at the latest after the last chunk, if size or digest are wrong."""
        digest, size = hashlib.sha256(), 0
        try:
            with self.open(file.name) as source:
                while chunk := source.read(CHUNK_BYTES):
                    digest.update(chunk)
                    size += len(chunk)
                    yield chunk
        except (KeyError, OSError, tarfile.TarError, EOFError) as error:
            raise BackupError(f"{file.name} of the backup is unreadable ({error}). Use another backup.") from error
        if (size, digest.hexdigest()) != (file.bytes, file.sha256):
            raise BackupError(f"{file.name} of the backup is damaged. Use another backup.")

    def read_all(self, file: BackupFile) -> bytes:
        """Return the content of a file. Raises BackupError if size or digest are wrong."""
        return b"".join(self.read_chunks(file))


class _Folder:
    """Backup as a folder."""

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        self._path = path
        if is_new:
            path.mkdir(mode=0o700)

    @contextmanager
    def open_new_file(self, name: str) -> Iterator[IO[bytes]]:
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
    """Backup as an uncompressed tar file."""

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        self._path = path
        if is_new:
            self._file: IO[bytes] = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
            self._tar = tarfile.open(fileobj=self._file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115  see close
        else:
            self._file = path.open("rb")
            self._tar = tarfile.open(fileobj=self._file, mode="r:")  # noqa: SIM115  open until the command ends

    @contextmanager
    def open_new_file(self, name: str) -> Iterator[IO[bytes]]:
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


def _remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
