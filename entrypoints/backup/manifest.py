"""What a backup holds: the file that is written last, so that a backup without it is none."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from adapters.postgres.dump import TableShape
from entrypoints.backup.errors import BackupError

FORMAT: Final = 1
NAME: Final = "manifest.json"
OBJECTS: Final = "objects.jsonl"
SECRET: Final = "secret"  # noqa: S105  a file's name


@dataclass(frozen=True, slots=True)
class StoredFile:
    """One file of the backup: its name in it, and what it must hold."""

    name: str
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table and its rows (gzip of a binary COPY)."""

    shape: TableShape
    rows: int
    file: StoredFile


@dataclass(frozen=True, slots=True)
class StoredObject:
    """A line of `objects.jsonl`: an object under its key."""

    key: str
    bytes: int
    sha256: str

    @property
    def file(self) -> StoredFile:
        """Where its bytes are. The ending lets one key continue another: `a` and `a/b`."""
        return StoredFile(f"objects/{self.key}~", self.bytes, self.sha256)


@dataclass(frozen=True, slots=True)
class Manifest:
    """`made_at` is when the copying of rows began; `missing` are keys that rows name and the object store had not."""

    format: int
    joinery: str
    postgres: str
    made_at: str
    migrations: Sequence[str]
    tables: Sequence[StoredTable]
    sequences: dict[str, int]
    objects: int
    objects_bytes: int
    objects_file: StoredFile
    missing: Sequence[str]
    secret_mark: str
    secret: StoredFile | None = None

    @property
    def rows(self) -> int:
        """Of all tables."""
        return sum(table.rows for table in self.tables)

    def files(self) -> list[StoredFile]:
        """Everything but the objects' bytes."""
        return [*(table.file for table in self.tables), self.objects_file, *([self.secret] if self.secret else [])]


def mark(secret: str) -> str:
    """Tells one secret from another, and nothing about it."""
    return hashlib.blake2b(secret.encode(), digest_size=8, person=b"joinery backup").hexdigest()


def encoded(manifest: Manifest) -> bytes:
    """As the file has it."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1)


def decoded(text: bytes) -> Manifest:
    """Out of the file. Raises BackupError."""
    try:
        if msgspec.json.decode(text)["format"] != FORMAT:
            raise BackupError("The backup was made by another release in a form that this one does not read.")
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise BackupError(f"The backup's {NAME} cannot be read ({error}).") from error
