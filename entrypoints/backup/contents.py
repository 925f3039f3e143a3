"""Contents of a backup: creation while the service runs, verification, and restore to an empty service."""

import hashlib
import tempfile
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from adapters.postgres.dump import DatabaseSnapshot, DumpError, TableShape, open_loader, open_snapshot
from adapters.postgres.schema_migrations import MigrationError, migrate
from domain.kernel.clock import now
from entrypoints.backup.archive import MANIFEST, BackupError, BackupFile, BackupReader, BackupWriter
from entrypoints.settings import get_release_version
from ports.objects import ObjectMissing, ObjectStore

FORMAT_VERSION = 1
_GZIP = 31
_OBJECTS = "objects.jsonl"
_SECRET = "secret"  # noqa: S105  a file's name


@dataclass(frozen=True, slots=True)
class StoredTable:
    """Table in a backup.

    Attributes:
        shape: The name and columns of the table.
        rows: The number of rows.
        file: The file with the rows as gzipped output of a binary COPY.
    """

    shape: TableShape
    rows: int
    file: BackupFile


@dataclass(frozen=True, slots=True)
class BackupObject:
    """Line of `objects.jsonl`: key, size and digest of an object in a backup."""

    key: str
    bytes: int
    sha256: str

    @property
    def file(self) -> BackupFile:
        """File with the object's content."""
        # without the suffix, the keys `a` and `a/b` would need a file and a folder of the same name
        return BackupFile(f"objects/{self.key}~", self.bytes, self.sha256)


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """Description of a backup, written last: a backup without a manifest is incomplete.

    Attributes:
        format: The version of the backup's format.
        joinery: The release that created the backup.
        postgres: The version of PostgreSQL.
        made_at: The time of the database's copied state, in ISO 8601.
        migrations: The names of the migrations that were applied to the database.
        tables: The tables with their rows.
        sequences: The values of the database's sequences by name.
        objects: The number of objects.
        objects_bytes: The total size of all objects in bytes.
        objects_file: The file that lists the objects.
        missing: The keys of referenced objects that were not in the object store.
        secret_mark: The fingerprint of the operator's current secret.
        secret: The file with the secrets, if they are included.
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
    objects_file: BackupFile
    missing: Sequence[str]
    secret_mark: str
    secret: BackupFile | None = None

    @property
    def rows(self) -> int:
        """Total number of rows of all tables."""
        return sum(table.rows for table in self.tables)


def fingerprint_secret(secret: str) -> str:
    """Return a short hash that identifies a secret without revealing it."""
    return hashlib.blake2b(secret.encode(), digest_size=8, person=b"joinery backup").hexdigest()


async def create_backup(
    writer: BackupWriter, database_url: str, object_store: ObjectStore, secrets: Sequence[str], *, with_secret: bool
) -> BackupManifest:
    """Copy all objects and a consistent snapshot of the database to a backup while the service runs.

    Args:
        writer: The backup.
        database_url: The database URL with the login of the schema owner.
        object_store: The object store.
        secrets: The operator's secrets, the current one first.
        with_secret: Whether the secrets are included.

    Returns:
        The manifest of the backup.

    Raises:
        BackupError: The backup cannot be written.
    """
    # Objects are copied before and after the database, so that every object that the database's snapshot refers to is copied,
    # even if it is created or deleted during the backup.
    stored_by_key: dict[str, BackupObject] = {}
    missing: set[str] = set()

    async def copy_objects(keys: dict[str, bool]) -> None:
        for key in keys.keys() - stored_by_key.keys():
            try:
                size = await object_store.get_size(key)
                with writer.open_new_file(BackupObject(key, size, "").file.name) as entry:
                    async for chunk in object_store.read(key):
                        entry.write(chunk)
            except ObjectMissing:
                missing.add(key)
                continue
            stored = entry.finish()
            missing.discard(key)
            stored_by_key[key] = BackupObject(key, stored.bytes, stored.sha256)

    async with open_snapshot(database_url) as earlier_snapshot:
        earlier_keys = await earlier_snapshot.list_object_keys()
    await copy_objects(earlier_keys)
    async with open_snapshot(database_url) as snapshot:
        made_at = now()
        tables = [await _copy_table(writer, snapshot, shape) for shape in await snapshot.list_tables()]
        referenced_keys = await snapshot.list_object_keys()
        sequences, migrations, version = (
            await snapshot.read_sequences(),
            await snapshot.list_migrations(),
            await snapshot.read_server_version(),
        )
    await copy_objects(referenced_keys)
    with writer.open_new_file(_OBJECTS) as index:
        for stored_object in stored_by_key.values():
            index.write(msgspec.json.encode(stored_object) + b"\n")
    manifest = BackupManifest(
        format=FORMAT_VERSION,
        joinery=get_release_version(),
        postgres=version,
        made_at=made_at.isoformat(timespec="milliseconds"),
        migrations=migrations,
        tables=tables,
        sequences=sequences,
        objects=len(stored_by_key),
        objects_bytes=sum(stored_object.bytes for stored_object in stored_by_key.values()),
        objects_file=index.finish(),
        missing=sorted(key for key in missing if referenced_keys.get(key)),
        secret_mark=fingerprint_secret(secrets[0]),
        secret=writer.add_file(_SECRET, "".join(f"{secret}\n" for secret in secrets).encode()) if with_secret else None,
    )
    writer.add_file(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1))
    return manifest


async def _copy_table(writer: BackupWriter, snapshot: DatabaseSnapshot, shape: TableShape) -> StoredTable:
    """Copy the rows of a table to the backup."""
    compressor = zlib.compressobj(level=1, wbits=_GZIP)
    with writer.open_new_file(f"database/{shape.name}.copy.gz") as entry:
        async for chunk in snapshot.copy_rows(shape):
            entry.write(compressor.compress(chunk))
        entry.write(compressor.flush())
    return StoredTable(shape, snapshot.copied_row_count, entry.finish())


def verify_backup(reader: BackupReader) -> BackupManifest:
    """Verify size and digest of every file in the backup; return the manifest. Raises BackupError."""
    with reader.open(MANIFEST) as file:
        manifest = _decode_manifest(file.read())
    for stored in (*(table.file for table in manifest.tables), manifest.objects_file, *filter(None, [manifest.secret])):
        for _ in reader.read_chunks(stored):
            pass
    count = 0
    for stored_object in iterate_objects(reader, manifest):
        count += 1
        for _ in reader.read_chunks(stored_object.file):
            pass
    if count != manifest.objects:
        raise BackupError(
            f"{_OBJECTS} of the backup lists {count} objects instead of {manifest.objects}. Use another backup."
        )
    return manifest


def _decode_manifest(text: bytes) -> BackupManifest:
    """Decode a manifest. Raises BackupError if it is invalid or has another format."""
    try:
        if (version := msgspec.json.decode(text)["format"]) != FORMAT_VERSION:
            explanation = (
                "by release 0.1, which must restore it. Upgrade after the restore."
                if version == 1
                else "by a later release, which must restore it."
            )
            raise BackupError(
                f"This release cannot restore the backup: it was created {explanation} See docs/operations.md#backups."
            )
        return msgspec.json.decode(text, type=BackupManifest)
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise BackupError(f"The backup's {MANIFEST} is unreadable ({error}). Use another backup.") from error


def iterate_objects(reader: BackupReader, manifest: BackupManifest) -> Iterator[BackupObject]:
    """Yield key, size and digest of each object in the backup."""
    for line in reader.read_all(manifest.objects_file).splitlines():
        yield msgspec.json.decode(line, type=BackupObject)


def read_backup_secrets(reader: BackupReader, manifest: BackupManifest) -> Sequence[str]:
    """Return the secrets in the backup, the current one first; an empty sequence if the backup contains none."""
    return reader.read_all(manifest.secret).decode().split() if manifest.secret else ()


def check_secrets(manifest: BackupManifest, secrets: Sequence[str]) -> None:
    """Raise BackupError unless `secrets` contains the secret that was the current one when the backup was created."""
    if manifest.secret_mark not in {fingerprint_secret(secret) for secret in secrets}:
        raise BackupError(
            "JOINERY_SECRET is not the secret of this data: encrypted credentials would be unreadable, and no API "
            "key would be valid. Set it to the secret that was in use when the backup was created."
        )


async def restore_backup(
    reader: BackupReader, manifest: BackupManifest, database_url: str, object_store: ObjectStore
) -> None:
    """Store the objects, load all rows in one transaction, then migrate the database to this release's schema.

    If loading fails, the database stays empty. Objects that were already stored remain, and the next attempt reuses them.

    Raises:
        BackupError: The database is not empty, or the restore fails.
    """
    for stored_object in iterate_objects(reader, manifest):
        await _restore_object(reader, stored_object, object_store)
    try:
        async with open_loader(database_url) as loader:
            await loader.create_schema(manifest.migrations, [table.shape for table in manifest.tables])
            for table in manifest.tables:
                rows = await loader.load_rows(table.shape, _decompress(reader, table.file))
                if rows != table.rows:
                    raise BackupError(
                        f"The backup of the table {table.shape.name} has {rows} rows instead of {table.rows}. Use another backup."
                    )
            await loader.finish(manifest.sequences)
        await migrate(database_url)
    except (DumpError, MigrationError) as error:
        raise BackupError(str(error)) from error


async def _decompress(reader: BackupReader, file: BackupFile) -> AsyncIterator[bytes]:
    """Yield the decompressed content of a gzipped file."""
    decompressor = zlib.decompressobj(wbits=_GZIP)
    for chunk in reader.read_chunks(file):
        yield decompressor.decompress(chunk)
    yield decompressor.flush()


async def _restore_object(reader: BackupReader, stored: BackupObject, objects: ObjectStore) -> None:
    """Store an object of the backup, unless it is already stored. Raises BackupError if another object has its key."""
    try:
        size, digest = await objects.get_size(stored.key), hashlib.sha256()
        if size == stored.bytes:
            async for chunk in objects.read(stored.key):
                digest.update(chunk)
        if (size, digest.hexdigest()) != (stored.bytes, stored.sha256):
            raise BackupError(
                f"The object store contains another object under {stored.key}. Restore to an empty object store."
            )
    except ObjectMissing:
        with tempfile.NamedTemporaryFile() as file:
            for chunk in reader.read_chunks(stored.file):
                file.write(chunk)
            file.flush()
            await objects.put_file(stored.key, Path(file.name))
