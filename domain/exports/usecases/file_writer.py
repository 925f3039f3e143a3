"""Writing of export files: rows are read, compressed and stored in portions, so that memory use does not depend on their number."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TypeVar

from domain.exports.model import ExportFile
from domain.exports.ports import Compressor
from domain.kernel.lines import Lines
from ports.objects import ObjectStore

T = TypeVar("T")


@dataclass(slots=True)
class ExportProgress:
    """Number of rows written so far; the attempt fails if more than `max_rows` rows (None: no limit) are written."""

    rows: int = 0
    max_rows: int | None = None


class TooManyRows(Exception):
    """The export has more rows than the quota permits."""


@dataclass(frozen=True, slots=True)
class ExportFileWriter:
    """Writer of export files, which counts the written rows in `progress`."""

    objects: ObjectStore
    progress: ExportProgress = field(default_factory=ExportProgress)

    async def write(
        self,
        dataset: str,
        key: str,
        lines: AsyncGenerator[Lines, None],
        compressor: Compressor,
        *,
        counts_rows: bool = True,
    ) -> ExportFile:
        """Write all lines to an object with the key; return the file, which may be empty. Raises TooManyRows.

        Args:
            dataset: Name of the file's dataset.
            key: Key of the object.
            lines: Portions of the file.
            compressor: A new compressor for the file.
            counts_rows: Whether the lines are added to the rows in `progress`, whose limit then applies.
        """
        tally = ExportProgress()
        async with aclosing(self._compress(lines, compressor, tally, counts_rows=counts_rows)) as chunks:
            await self.objects.put_stream(key, chunks)
        return ExportFile(dataset, tally.rows, compressor.size, compressor.sha256, key)

    async def _compress(
        self, lines: AsyncGenerator[Lines, None], packer: Compressor, tally: ExportProgress, *, counts_rows: bool
    ) -> AsyncGenerator[bytes, None]:
        async with aclosing(prefetch(lines)) as portions:
            async for portion in portions:
                tally.rows += portion.rows
                if counts_rows:
                    self._count_rows(portion.rows)
                if packed := await asyncio.to_thread(packer.compress, portion.data):
                    yield packed
        yield await asyncio.to_thread(packer.finish)

    def _count_rows(self, rows: int) -> None:
        self.progress.rows += rows
        if self.progress.max_rows is not None and self.progress.rows > self.progress.max_rows:
            raise TooManyRows


async def prefetch(source: AsyncGenerator[T, None]) -> AsyncGenerator[T, None]:
    """Yield the items of `source`, and fetch each next item while the caller processes an item; close `source` at the end."""
    pending = asyncio.ensure_future(_fetch_next(source))
    try:
        while (fetched := await pending) is not None:
            [item] = fetched
            pending = asyncio.ensure_future(_fetch_next(source))
            yield item
    finally:
        pending.cancel()
        await asyncio.gather(pending, return_exceptions=True)
        await source.aclose()


async def _fetch_next(source: AsyncIterator[T]) -> tuple[T] | None:
    try:
        return (await anext(source),)
    except StopAsyncIteration:
        return None
