"""Writing of one export file: read, compressed and stored in portions, so that memory use depends on the portion only."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from domain.exports.model import ExportFile
from domain.exports.ports import Packer, Packing
from domain.kernel.lines import Lines
from ports.objects import Objects

T = TypeVar("T")


@dataclass(slots=True)
class Progress:
    """Number of rows written so far; more than `most` end the attempt."""

    rows: int = 0
    most: int | None = None


class TooManyRows(Exception):
    """An export has more rows than the quota permits."""


@dataclass(frozen=True, slots=True)
class FileWriting:
    """Writer of files one after the other; rows count in `progress`."""

    objects: Objects
    packing: Packing
    progress: Progress = field(default_factory=Progress)

    async def write(
        self, dataset: str, key: str, lines: AsyncGenerator[Lines, None], *, counts: bool = True
    ) -> ExportFile:
        """Write all lines under the key; no lines make an empty, compressed file. Raises TooManyRows."""
        packer, tally = self.packing(), Progress()
        async with aclosing(self._packed(lines, packer, tally, counts=counts)) as chunks:
            await self.objects.put_stream(key, chunks)
        return ExportFile(dataset, tally.rows, packer.size, packer.sha256, key)

    async def _packed(
        self, lines: AsyncGenerator[Lines, None], packer: Packer, tally: Progress, *, counts: bool
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(ahead(lines)) as portions:
            async for portion in portions:
                tally.rows += portion.rows
                if counts:
                    self._count(portion.rows)
                if packed := await asyncio.to_thread(packer.pack, portion.data):
                    yield packed
        yield await asyncio.to_thread(packer.end)

    def _count(self, rows: int) -> None:
        self.progress.rows += rows
        if self.progress.most is not None and self.progress.rows > self.progress.most:
            raise TooManyRows


async def ahead(source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield the items of the source while the next item is fetched in the background; close the source at the end."""
    pending = asyncio.ensure_future(_next(source))
    try:
        while (fetched := await pending) is not None:
            [item] = fetched
            pending = asyncio.ensure_future(_next(source))
            yield item
    finally:
        pending.cancel()
        await asyncio.gather(pending, return_exceptions=True)
        await source.aclose()


async def _next(source: AsyncIterator[T]) -> tuple[T] | None:
    try:
        return (await anext(source),)
    except StopAsyncIteration:
        return None
