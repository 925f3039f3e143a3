"""Lines of a snapshot as the feed itself has them, around what could not be read."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, TypeAlias

from domain.ingestion.ports import FeedReaders, ParseFailed, Place, ReaderDied
from domain.ingestion.reading import Excerpt
from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.problems import Problem
from domain.runs.model import Run, UploadInput
from domain.runs.usecases.execution import order_of
from domain.sources.model import Source
from ports.objects import ObjectMissing, Objects
from ports.workspaces import Workspaces

READ_AHEAD: Final = 56
"""Places that are looked up at once: a workbook is unpacked whole for the first line of it already, so one asks for more."""
BYTES: Final = 64 << 20
SECONDS: Final = 20.0
AT_ONCE: Final = 2
"""How many snapshots a process reads for this at a time, one for an organisation; others wait."""
KEPT: Final = 8 << 20
"""Characters that a process keeps of what it read last, and of what it was asked for."""
_EACH: Final = 64
"""What a text takes beside its characters, in as many of them: there may be more texts than characters."""

_Key: TypeAlias = tuple[str, str, int, tuple[Place, ...], int]


def places_of(problems: Iterable[Problem]) -> list[Place]:
    """The lines that problems name, each once, in the file's order; sheets as they are first named."""
    named = [(one.sheet, one.line) for one in problems if one.line is not None]
    order = {sheet: number for number, sheet in enumerate(dict.fromkeys(sheet for sheet, _ in named))}
    return sorted(dict.fromkeys(named), key=lambda place: (order[place[0]], place[1]))


class Excerpting:
    """Reads lines from the snapshot that is kept; what cannot be had is left out.

    A snapshot never changes, so what was read of it last is told again without reading.
    """

    def __init__(self, objects: Objects, readers: FeedReaders, workspaces: Workspaces) -> None:
        self._objects, self._readers, self._workspaces = objects, readers, workspaces
        self._room = ConcurrencyLimit(AT_ONCE)
        self._kept: OrderedDict[_Key, tuple[Sequence[Excerpt], int]] = OrderedDict()
        self.kept = 0
        """Of KEPT, as much as is taken."""

    async def around(
        self, org: str, run: Run, source: Source, places: Sequence[Place], start: int, count: int, beside: int = 1
    ) -> Sequence[Excerpt]:
        """The lines of `count` places from `start` on, each with its neighbours; none where no file is kept, or one too large.

        `org` is the organisation that the run is of. The places are those of one look at the file, in its order: what stands around them is read ahead.
        """
        shown, first = places[start : start + count], start - start % READ_AHEAD
        last = max(first + READ_AHEAD, start + count)
        key = run.snapshot or (run.input.key if isinstance(run.input, UploadInput) else None)
        if not shown or key is None:
            return ()
        ahead = (key, run.id, source.version, tuple(places[first:last]), beside)
        found: Sequence[Excerpt] = ()
        with suppress(ObjectMissing, ParseFailed, ReaderDied, TimeoutError):
            async with asyncio.timeout(SECONDS):
                found = await self._known(org, ahead, run, source)
        return _narrowed(found, shown, beside)

    async def _known(self, org: str, key: _Key, run: Run, source: Source) -> Sequence[Excerpt]:
        if key not in self._kept:
            async with self._room.slot(org):
                if key not in self._kept:  # nobody else read it in the meantime
                    self._keep(key, await self._read(key[0], run, source, list(key[3]), key[4]))
        self._kept.move_to_end(key)
        return self._kept[key][0]

    def _keep(self, key: _Key, found: Sequence[Excerpt]) -> None:
        size = _size(key, found)
        self._kept[key] = (found, size)
        self.kept += size
        while len(self._kept) > 1 and self.kept > KEPT:
            self.kept -= self._kept.popitem(last=False)[1][1]

    async def _read(self, key: str, run: Run, source: Source, lines: list[Place], beside: int) -> Sequence[Excerpt]:
        if await self._objects.size(key) > BYTES:
            return ()
        with self._workspaces.folder() as folder:
            path = folder / "snapshot"
            with path.open("wb") as file:
                async for chunk in self._objects.read(key):
                    await asyncio.to_thread(file.write, chunk)
            async with self._readers.open(order_of(run, source, path, ())) as reader:
                return await reader.excerpt(lines, beside)


def _size(key: _Key, found: Sequence[Excerpt]) -> int:
    """Characters that this takes, with what is around them."""
    asked = sum(len(sheet or "") + 2 * _EACH for sheet, _ in key[3]) + 8 * _EACH
    rows = (texts for table in found for texts in (table.headers, *(cells for _, cells in table.rows)))
    return asked + sum(_EACH + sum(len(text) + _EACH for text in texts) for texts in rows)


def _narrowed(tables: Sequence[Excerpt], places: Sequence[Place], beside: int) -> list[Excerpt]:
    """Those lines alone, and what stands beside them."""
    wanted = {(sheet, line + step) for sheet, line in places for step in range(-beside, beside + 1)}
    found = []
    for table in tables:
        rows = tuple(row for row in table.rows if (table.sheet, row[0]) in wanted)
        if rows:
            found.append(Excerpt(table.sheet, table.headers, rows))
    return found
