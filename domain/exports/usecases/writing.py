"""Writing one file of an export: read, packed and stored piece by piece, so that memory depends on the piece alone."""

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
    """How many rows are written by now; more than `most` end the attempt."""

    rows: int = 0
    most: int | None = None


class TooManyRows(Exception):
    """There are more rows than may be written."""


@dataclass(frozen=True, slots=True)
class FileWriting:
    """Writes files one after the other; rows count in `progress`."""

    objects: Objects
    packing: Packing
    progress: Progress = field(default_factory=Progress)

    async def write(
        self, dataset: str, key: str, lines: AsyncGenerator[Lines, None], *, counts: bool = True
    ) -> ExportFile:
        """Write all lines under the key; without any it is an empty file, packed. Raises TooManyRows."""
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
    """Yield the items of the source while the next one is being fetched; it closes the source."""
    coming = asyncio.ensure_future(_next(source))
    try:
        while (found := await coming) is not None:
            [one] = found
            coming = asyncio.ensure_future(_next(source))
            yield one
    finally:
        coming.cancel()
        await asyncio.gather(coming, return_exceptions=True)
        await source.aclose()


async def _next(source: AsyncIterator[T]) -> tuple[T] | None:
    try:
        return (await anext(source),)
    except StopAsyncIteration:
        return None
