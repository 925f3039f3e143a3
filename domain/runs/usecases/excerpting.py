"""Lines of a snapshot as the feed itself has them, around what could not be read."""

import asyncio
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from domain.ingestion.reading import Excerpt
from domain.kernel.problems import Problem
from domain.runs.model import Run, UploadInput
from domain.runs.usecases.execution import order_of
from domain.sources.model import Source
from ports.connectors import ParseFailed
from ports.feed_readers import FeedReaders, Place, ReaderDied
from ports.objects import ObjectMissing, Objects
from ports.workspaces import Workspaces

PLACES: Final = 40
"""Lines that are looked up at once."""
BYTES: Final = 64 << 20
SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Excerpting:
    """Reads them from the snapshot that is kept; what cannot be had is left out."""

    objects: Objects
    readers: FeedReaders
    workspaces: Workspaces

    async def around(self, run: Run, source: Source, problems: Iterable[Problem]) -> Sequence[Excerpt]:
        """The lines that the first of these problems name, each with its neighbours; none where no file is kept, or one too large."""
        lines = dict.fromkeys((one.sheet, one.line) for one in problems if one.line is not None)
        key = run.snapshot or (run.input.key if isinstance(run.input, UploadInput) else None)
        if not lines or key is None:
            return ()
        with suppress(ObjectMissing, ParseFailed, ReaderDied, TimeoutError):
            async with asyncio.timeout(SECONDS):
                return await self._read(key, run, source, list(lines)[:PLACES])
        return ()

    async def _read(self, key: str, run: Run, source: Source, lines: list[Place]) -> Sequence[Excerpt]:
        if await self.objects.size(key) > BYTES:
            return ()
        with self.workspaces.folder() as folder:
            path = folder / "snapshot"
            with path.open("wb") as file:
                async for chunk in self.objects.read(key):
                    file.write(chunk)
            async with self.readers.open(order_of(run, source, path, ())) as reader:
                return await reader.excerpt(lines, 1)
