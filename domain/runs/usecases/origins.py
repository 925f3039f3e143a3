"""The rows that a product was read from, sought in the snapshot that its source's last good run kept."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from domain.catalogue.model import Stream
from domain.ingestion.ports import FeedReaders, ParseFailed, ReaderDied
from domain.ingestion.reading import FoundRows
from domain.kernel.errors import Unprocessable
from domain.kernel.resource import existing
from domain.kernel.tenancy import Tenant
from domain.runs.model import Run
from domain.runs.ports import RunStore
from domain.runs.usecases.execution import known_to, order_of
from domain.sources.ports import SourceStore
from ports.objects import ObjectMissing, Objects
from ports.unit_of_work import UnitOfWork
from ports.workspaces import Workspaces

BYTES: Final = 64 << 20
"""Bytes of a snapshot that is read for this: it comes from the object store first."""
LOOKED: Final = 200_000
"""Rows that are looked at."""
MOST: Final = 20
"""Rows that are told."""
SECONDS: Final = 20.0
AT_ONCE: Final = 2
"""How many snapshots a process reads for this at a time; others wait."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The run whose snapshot was read, and the rows found in it."""

    run: Run
    found: FoundRows


class OriginRows:
    """Reads one source's newest snapshot for the rows that name an item."""

    def __init__(self, uow: UnitOfWork, objects: Objects, readers: FeedReaders, workspaces: Workspaces) -> None:
        self._uow, self._objects, self._readers, self._workspaces = uow, objects, readers, workspaces
        self._room = asyncio.Semaphore(AT_ONCE)

    async def find(self, tenant: Tenant, source_id: str, texts: Collection[str]) -> Origin:
        """The rows of which a cell is one of the texts.

        Raises NotFound for an unknown source, Unprocessable where there is no snapshot, or none that can be read here.
        """
        async with self._uow.read(tenant) as tx:
            source = existing(await tx[SourceStore].get(source_id))
            run = await tx[RunStore].last_good(source.id, Stream.CATALOGUE)
            if run is None or run.snapshot is None:
                raise Unprocessable("Nothing of what the source last sent is kept.")
            known = await known_to(tx, run)
        try:
            async with self._room, asyncio.timeout(SECONDS):
                with self._workspaces.folder() as folder:
                    path = await self._fetched(run.snapshot, folder / "snapshot")
                    async with self._readers.open(order_of(run, source, path, known, LOOKED)) as reader:
                        return Origin(run, await reader.find(texts, MOST))
        except ObjectMissing:
            raise Unprocessable("What the source last sent is kept no longer.") from None
        except (ParseFailed, ReaderDied) as error:
            raise Unprocessable(f"What the source last sent could not be read again: {error}") from None
        except TimeoutError:
            raise Unprocessable(
                "Looking through what the source last sent takes too long; replay it instead."
            ) from None

    async def _fetched(self, key: str, path: Path) -> Path:
        if await self._objects.size(key) > BYTES:
            raise Unprocessable(
                f"What the source last sent has more than {BYTES >> 20} MiB, too much to be looked through here."
            )
        with path.open("wb") as file:
            async for chunk in self._objects.read(key):
                await asyncio.to_thread(file.write, chunk)
        return path
