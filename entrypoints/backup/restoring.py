"""Restoring a backup into an empty place."""

import tempfile
import zlib
from collections.abc import AsyncIterator, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from adapters.postgres.dump import DumpError, loading
from adapters.postgres.migrate import MigrationError, migrate
from entrypoints.backup import manifest
from entrypoints.backup.archive import Reader
from entrypoints.backup.errors import BackupError
from entrypoints.backup.manifest import Manifest, StoredFile, StoredObject
from ports.objects import ObjectMissing, Objects

_GZIP: Final = 31


def checked(reader: Reader) -> Manifest:
    """The manifest, after every byte of the backup was compared with it. Raises BackupError."""
    with reader.open(manifest.NAME) as file:
        found = manifest.decoded(file.read())
    listed = 0
    for file_ in found.files():
        for _ in reader.chunks(file_):
            pass
    for stored in objects_of(reader, found):
        listed += 1
        for _ in reader.chunks(stored.file):
            pass
    if listed != found.objects:
        raise BackupError(f"{manifest.OBJECTS} of the backup lists {listed} objects instead of {found.objects}.")
    return found


def objects_of(reader: Reader, found: Manifest) -> Iterator[StoredObject]:
    """The objects that the backup holds."""
    for line in reader.whole(found.objects_file).splitlines():
        yield msgspec.json.decode(line, type=StoredObject)


def secrets_of(reader: Reader, found: Manifest) -> Sequence[str]:
    """The secrets that the backup holds, the current one first; none where it was made without."""
    return reader.whole(found.secret).decode().split() if found.secret else ()


def check_secrets(found: Manifest, secrets: Sequence[str]) -> None:
    """Raises BackupError when the data was made with none of them."""
    if found.secret_mark not in {manifest.mark(secret) for secret in secrets}:
        raise BackupError(
            "JOINERY_SECRET is not the secret that this data was made with: sealed credentials could not be opened, and no "
            "key would be known. Set it to the one that was in force when the backup was made."
        )


async def restore(reader: Reader, found: Manifest, database_url: str, objects: Objects) -> None:
    """Objects first, then all rows in one transaction: once the database has anything, it has everything.

    Raises BackupError; what was put into the object store until then stays there, and is found by the next attempt.
    """
    for stored in objects_of(reader, found):
        await _put(reader, stored, objects)
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


async def _put(reader: Reader, stored: StoredObject, objects: Objects) -> None:
    try:
        if await objects.size(stored.key) == stored.bytes and await _digest(objects, stored.key) == stored.sha256:
            return
        raise BackupError(f"The object store holds something else under {stored.key}; restore into an empty one.")
    except ObjectMissing:
        with tempfile.NamedTemporaryFile() as file:
            for chunk in reader.chunks(stored.file):
                file.write(chunk)
            file.flush()
            await objects.put_file(stored.key, Path(file.name))


async def _digest(objects: Objects, key: str) -> str:
    digest = sha256()
    async for chunk in objects.read(key):
        digest.update(chunk)
    return digest.hexdigest()


async def _unpacked(reader: Reader, file: StoredFile) -> AsyncIterator[bytes]:
    unpacking = zlib.decompressobj(wbits=_GZIP)
    for chunk in reader.chunks(file):
        yield unpacking.decompress(chunk)
    yield unpacking.flush()
