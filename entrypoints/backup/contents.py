"""Contents of a backup, and its creation during operation and restore to an empty service."""

import hashlib
import tempfile
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from adapters.postgres.dump import DumpError, Snapshot, TableShape, loading, snapshot
from adapters.postgres.migrate import MigrationError, migrate
from domain.kernel.clock import now
from entrypoints.backup.archive import MANIFEST, BackupError, Reader, StoredFile, Writer
from entrypoints.factories import product_version
from ports.objects import ObjectMissing, Objects

FORMAT = 1
_GZIP = 31
_OBJECTS = "objects.jsonl"
_SECRET = "secret"  # noqa: S105  a file's name


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
        """File with the object's bytes; the suffix allows keys that continue another: `a` and `a/b`."""
        return StoredFile(f"objects/{self.key}~", self.bytes, self.sha256)


@dataclass(frozen=True, slots=True)
class Manifest:
    """Description of a backup, written last, so that a backup without it is incomplete.

    `made_at` is the start of the row copy; `missing` are referenced keys that were not in the object store.
    """

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
        """Number of rows of all tables."""
        return sum(table.rows for table in self.tables)


def mark(secret: str) -> str:
    """Return a fingerprint of a secret that reveals nothing about it."""
    return hashlib.blake2b(secret.encode(), digest_size=8, person=b"joinery backup").hexdigest()


async def make(
    writer: Writer, database_url: str, objects: Objects, secrets: Sequence[str], *, with_secret: bool
) -> Manifest:
    """Copy objects, then the database as of one moment, then the objects added since.

    So an object referenced at that moment is copied, even if it is deleted or created meanwhile. Raises BackupError.
    """
    stored_by_key: dict[str, StoredObject] = {}
    missing: set[str] = set()

    async def copy_objects(keys: dict[str, bool]) -> None:
        for key in keys.keys() - stored_by_key.keys():
            try:
                size = await objects.size(key)
                with writer.adding(StoredObject(key, size, "").file.name) as entry:
                    async for chunk in objects.read(key):
                        entry.write(chunk)
            except ObjectMissing:
                missing.add(key)
                continue
            stored = entry.stored()
            missing.discard(key)
            stored_by_key[key] = StoredObject(key, stored.bytes, stored.sha256)

    async with snapshot(database_url) as earlier_snapshot:
        earlier_keys = await earlier_snapshot.objects()
    await copy_objects(earlier_keys)
    async with snapshot(database_url) as moment:
        made_at = now()
        tables = [await _copy_table(writer, moment, shape) for shape in await moment.tables()]
        referenced = await moment.objects()
        sequences, migrations, version = await moment.sequences(), await moment.migrations(), await moment.version()
    await copy_objects(referenced)
    with writer.adding(_OBJECTS) as index_entry:
        for one in stored_by_key.values():
            index_entry.write(msgspec.json.encode(one) + b"\n")
    manifest = Manifest(
        format=FORMAT,
        joinery=product_version(),
        postgres=version,
        made_at=made_at.isoformat(timespec="milliseconds"),
        migrations=migrations,
        tables=tables,
        sequences=sequences,
        objects=len(stored_by_key),
        objects_bytes=sum(one.bytes for one in stored_by_key.values()),
        objects_file=index_entry.stored(),
        missing=sorted(key for key in missing if referenced.get(key)),
        secret_mark=mark(secrets[0]),
        secret=writer.add(_SECRET, "".join(f"{secret}\n" for secret in secrets).encode()) if with_secret else None,
    )
    writer.add(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    return manifest


async def _copy_table(writer: Writer, moment: Snapshot, shape: TableShape) -> StoredTable:
    compressor = zlib.compressobj(level=1, wbits=_GZIP)
    with writer.adding(f"database/{shape.name}.copy.gz") as entry:
        async for chunk in moment.rows(shape):
            entry.write(compressor.compress(chunk))
        entry.write(compressor.flush())
    return StoredTable(shape, moment.copied, entry.stored())


def checked(reader: Reader) -> Manifest:
    """Verify every byte of the backup, and return the manifest. Raises BackupError."""
    with reader.open(MANIFEST) as file:
        found = _decode_manifest(file.read())
    for stored in (*(table.file for table in found.tables), found.objects_file, *filter(None, [found.secret])):
        for _ in reader.chunks(stored):
            pass
    index_entry = 0
    for one in objects_of(reader, found):
        index_entry += 1
        for _ in reader.chunks(one.file):
            pass
    if index_entry != found.objects:
        raise BackupError(f"{_OBJECTS} of the backup lists {index_entry} objects instead of {found.objects}.")
    return found


def _decode_manifest(text: bytes) -> Manifest:
    try:
        if (version := msgspec.json.decode(text)["format"]) != FORMAT:
            origin = (
                "release 0.1. Restore it with that release, then upgrade"
                if version == 1
                else "a later release. Use that release"
            )
            raise BackupError(f"The backup was created by {origin} (docs/operations.md#backups).")
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise BackupError(f"The backup's {MANIFEST} is unreadable ({error}). Use another backup.") from error


def objects_of(reader: Reader, found: Manifest) -> Iterator[StoredObject]:
    """Iterate over the objects of the backup."""
    for line in reader.whole(found.objects_file).splitlines():
        yield msgspec.json.decode(line, type=StoredObject)


def secrets_of(reader: Reader, found: Manifest) -> Sequence[str]:
    """Return the secrets in the backup, the current one first; empty if it was created without."""
    return reader.whole(found.secret).decode().split() if found.secret else ()


def check_secrets(found: Manifest, secrets: Sequence[str]) -> None:
    """Raise BackupError if none of the secrets is that of the data."""
    if found.secret_mark not in {mark(secret) for secret in secrets}:
        raise BackupError(
            "JOINERY_SECRET is not the secret of this data: encrypted credentials would be unreadable, and no API "
            "key would be valid. Set it to the secret that was in use when the backup was created."
        )


async def restore(reader: Reader, found: Manifest, database_url: str, objects: Objects) -> None:
    """Store the objects, then load all rows in one transaction, so that the database is either empty or complete.

    Objects stored before a failure stay and are reused by the next attempt. Raises BackupError.
    """
    for one in objects_of(reader, found):
        await _put(reader, one, objects)
    try:
        async with loading(database_url) as loader:
            await loader.schema(found.migrations, [table.shape for table in found.tables])
            for table in found.tables:
                rows = await loader.rows(table.shape, _decompress(reader, table.file))
                if rows != table.rows:
                    raise BackupError(f"{table.shape.name} has {rows} rows instead of {table.rows}.")
            await loader.finish(found.sequences)
        await migrate(database_url)
    except (DumpError, MigrationError) as error:
        raise BackupError(str(error)) from error


async def _decompress(reader: Reader, file: StoredFile) -> AsyncIterator[bytes]:
    decompressor = zlib.decompressobj(wbits=_GZIP)
    for chunk in reader.chunks(file):
        yield decompressor.decompress(chunk)
    yield decompressor.flush()


async def _put(reader: Reader, stored: StoredObject, objects: Objects) -> None:
    try:
        size, digest = await objects.size(stored.key), hashlib.sha256()
        if size == stored.bytes:
            async for chunk in objects.read(stored.key):
                digest.update(chunk)
        if (size, digest.hexdigest()) != (stored.bytes, stored.sha256):
            raise BackupError(f"The object store contains another object under {stored.key}. Restore to an empty one.")
    except ObjectMissing:
        with tempfile.NamedTemporaryFile() as file:
            for part in reader.chunks(stored.file):
                file.write(part)
            file.flush()
            await objects.put_file(stored.key, Path(file.name))
