"""Making a backup while the service runs."""

import zlib
from collections.abc import AsyncIterable, Sequence
from typing import Final

import msgspec

from adapters.postgres.dump import Snapshot, TableShape, snapshot
from domain.kernel.clock import now
from entrypoints.backup import manifest
from entrypoints.backup.archive import Entry, Writer
from entrypoints.backup.manifest import Manifest, StoredFile, StoredObject, StoredTable
from entrypoints.factories import product_version
from ports.objects import ObjectMissing, Objects

_GZIP: Final = 31
_LEVEL: Final = 1


class Making:
    """One backup: rows of `database_url`, what they name of `objects`, and the secrets when they are to be in it."""

    def __init__(self, writer: Writer, database_url: str, objects: Objects, secrets: Sequence[str]) -> None:
        self._writer, self._database_url, self._objects, self._secrets = writer, database_url, objects, secrets
        self._kept: dict[str, StoredObject] = {}
        self._missing: set[str] = set()

    async def run(self, *, with_secret: bool) -> Manifest:
        """Objects first, then the rows of one moment, then the objects that have come since.

        So an object that is named at that moment is there, whether it was forgotten or made meanwhile.
        """
        async with snapshot(self._database_url) as before:
            earlier = await before.objects()
        await self._keep(earlier)
        async with snapshot(self._database_url) as moment:
            made_at = now()
            tables = [await self._table(moment, shape) for shape in await moment.tables()]
            named = await moment.objects()
            sequences, migrations, version = await moment.sequences(), await moment.migrations(), await moment.version()
        await self._keep({key: needed for key, needed in named.items() if key not in self._kept})
        made = Manifest(
            manifest.FORMAT,
            product_version(),
            version,
            made_at.isoformat(timespec="milliseconds"),
            migrations,
            tables,
            sequences,
            len(self._kept),
            sum(kept.bytes for kept in self._kept.values()),
            self._list(),
            sorted(key for key in self._missing if named.get(key)),
            manifest.mark(self._secrets[0]),
            self._writer.add(manifest.SECRET, "".join(f"{secret}\n" for secret in self._secrets).encode())
            if with_secret
            else None,
        )
        self._writer.add(manifest.NAME, manifest.encoded(made))
        return made

    async def _table(self, moment: Snapshot, shape: TableShape) -> StoredTable:
        with self._writer.adding(f"database/{shape.name}.copy.gz") as entry:
            await _compress(moment.rows(shape), entry)
        return StoredTable(shape, moment.copied, entry.stored())

    async def _keep(self, keys: dict[str, bool]) -> None:
        for key in keys:
            try:
                size = await self._objects.size(key)
                with self._writer.adding(StoredObject(key, size, "").file.name) as entry:
                    async for chunk in self._objects.read(key):
                        entry.write(chunk)
            except ObjectMissing:
                self._missing.add(key)
                continue
            stored = entry.stored()
            self._missing.discard(key)
            self._kept[key] = StoredObject(key, stored.bytes, stored.sha256)

    def _list(self) -> StoredFile:
        with self._writer.adding(manifest.OBJECTS) as entry:
            for kept in self._kept.values():
                entry.write(msgspec.json.encode(kept) + b"\n")
        return entry.stored()


async def _compress(chunks: AsyncIterable[bytes], entry: Entry) -> None:
    packing = zlib.compressobj(_LEVEL, wbits=_GZIP)
    async for chunk in chunks:
        entry.write(packing.compress(chunk))
    entry.write(packing.flush())
