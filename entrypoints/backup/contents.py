"""What a backup holds, and how it is made while the service runs and restored into an empty place."""

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
        """Where its bytes are. The ending lets one key continue another: `a` and `a/b`."""
        return StoredFile(f"objects/{self.key}~", self.bytes, self.sha256)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The file that is written last, so that a backup without it is none.

    `made_at` is when the copying of rows began; `missing` are keys that rows name and the object store lacked.
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
        """The rows of all tables."""
        return sum(table.rows for table in self.tables)


def mark(secret: str) -> str:
    """Return what tells one secret from another, and nothing about it."""
    return hashlib.blake2b(secret.encode(), digest_size=8, person=b"joinery backup").hexdigest()


async def make(
    writer: Writer, database_url: str, objects: Objects, secrets: Sequence[str], *, with_secret: bool
) -> Manifest:
    """Copy objects, then the database as of one moment, then the objects that have come since.

    So an object that is named at that moment is copied, whether it is deleted or created meanwhile. Raises BackupError.
    """
    kept: dict[str, StoredObject] = {}
    missing: set[str] = set()

    async def keep(keys: dict[str, bool]) -> None:
        for key in keys.keys() - kept.keys():
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
            kept[key] = StoredObject(key, stored.bytes, stored.sha256)

    async with snapshot(database_url) as before:
        earlier = await before.objects()
    await keep(earlier)
    async with snapshot(database_url) as moment:
        made_at = now()
        tables = [await _copy_table(writer, moment, shape) for shape in await moment.tables()]
        named = await moment.objects()
        sequences, migrations, version = await moment.sequences(), await moment.migrations(), await moment.version()
    await keep(named)
    with writer.adding(_OBJECTS) as listed:
        for one in kept.values():
            listed.write(msgspec.json.encode(one) + b"\n")
    made = Manifest(
        format=FORMAT,
        joinery=product_version(),
        postgres=version,
        made_at=made_at.isoformat(timespec="milliseconds"),
        migrations=migrations,
        tables=tables,
        sequences=sequences,
        objects=len(kept),
        objects_bytes=sum(one.bytes for one in kept.values()),
        objects_file=listed.stored(),
        missing=sorted(key for key in missing if named.get(key)),
        secret_mark=mark(secrets[0]),
        secret=writer.add(_SECRET, "".join(f"{secret}\n" for secret in secrets).encode()) if with_secret else None,
    )
    writer.add(MANIFEST, msgspec.json.format(msgspec.json.encode(made), indent=1))
    return made


async def _copy_table(writer: Writer, moment: Snapshot, shape: TableShape) -> StoredTable:
    packing = zlib.compressobj(level=1, wbits=_GZIP)
    with writer.adding(f"database/{shape.name}.copy.gz") as entry:
        async for chunk in moment.rows(shape):
            entry.write(packing.compress(chunk))
        entry.write(packing.flush())
    return StoredTable(shape, moment.copied, entry.stored())


def checked(reader: Reader) -> Manifest:
    """Return the manifest after comparing every byte of the backup with it. Raises BackupError."""
    with reader.open(MANIFEST) as file:
        found = _decoded(file.read())
    for stored in (*(table.file for table in found.tables), found.objects_file, *filter(None, [found.secret])):
        for _ in reader.chunks(stored):
            pass
    listed = 0
    for one in objects_of(reader, found):
        listed += 1
        for _ in reader.chunks(one.file):
            pass
    if listed != found.objects:
        raise BackupError(f"{_OBJECTS} of the backup lists {listed} objects instead of {found.objects}.")
    return found


def _decoded(text: bytes) -> Manifest:
    try:
        if (written := msgspec.json.decode(text)["format"]) != FORMAT:
            by = (
                "release 0.1: restore it with that release, then upgrade"
                if written == 1
                else "a later release: use that"
            )
            raise BackupError(f"The backup was made by {by} (docs/operations.md#backups).")
        return msgspec.json.decode(text, type=Manifest)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise BackupError(f"The backup's {MANIFEST} cannot be read ({error}).") from error


def objects_of(reader: Reader, found: Manifest) -> Iterator[StoredObject]:
    """Iterate over the objects that the backup holds."""
    for line in reader.whole(found.objects_file).splitlines():
        yield msgspec.json.decode(line, type=StoredObject)


def secrets_of(reader: Reader, found: Manifest) -> Sequence[str]:
    """Return the secrets that the backup holds, the current one first; none if it was made without."""
    return reader.whole(found.secret).decode().split() if found.secret else ()


def check_secrets(found: Manifest, secrets: Sequence[str]) -> None:
    """Raise BackupError when the data was made with none of the secrets."""
    if found.secret_mark not in {mark(secret) for secret in secrets}:
        raise BackupError(
            "JOINERY_SECRET is not the secret that this data was made with: sealed credentials could not be opened, and no "
            "key would be known. Set it to the one that was in force when the backup was made."
        )


async def restore(reader: Reader, found: Manifest, database_url: str, objects: Objects) -> None:
    """Store the objects, then load all rows in one transaction: once the database has anything, it has everything.

    Objects that were stored before a failure stay, and are found by the next attempt. Raises BackupError.
    """
    for one in objects_of(reader, found):
        await _put(reader, one, objects)
    try:
        async with loading(database_url) as loader:
            await loader.schema(found.migrations, [table.shape for table in found.tables])
            for table in found.tables:
                rows = await loader.rows(table.shape, _unpacked(reader, table.file))
                if rows != table.rows:
                    raise BackupError(f"{table.shape.name} got {rows} rows instead of {table.rows}.")
            await loader.finish(found.sequences)
        await migrate(database_url)
    except (DumpError, MigrationError) as error:
        raise BackupError(str(error)) from error


async def _unpacked(reader: Reader, file: StoredFile) -> AsyncIterator[bytes]:
    unpacking = zlib.decompressobj(wbits=_GZIP)
    for chunk in reader.chunks(file):
        yield unpacking.decompress(chunk)
    yield unpacking.flush()


async def _put(reader: Reader, stored: StoredObject, objects: Objects) -> None:
    try:
        size, digest = await objects.size(stored.key), hashlib.sha256()
        if size == stored.bytes:
            async for chunk in objects.read(stored.key):
                digest.update(chunk)
        if (size, digest.hexdigest()) != (stored.bytes, stored.sha256):
            raise BackupError(f"The object store holds something else under {stored.key}; restore into an empty one.")
    except ObjectMissing:
        with tempfile.NamedTemporaryFile() as file:
            for part in reader.chunks(stored.file):
                file.write(part)
            file.flush()
            await objects.put_file(stored.key, Path(file.name))
