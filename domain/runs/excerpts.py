"""Some lines of a feed's tables, as the feed has them."""

from collections.abc import Collection, Iterator
from typing import Any, Final

from domain.ingestion.model import FeedTable
from domain.ingestion.reading import Excerpt
from domain.ingestion.values.text import whole_text

_ROWS: Final = 200
"""Rows of one table that are told; several may stand on one line."""
_CELL: Final = 120
_ALONE: Final = 2_000
"""Characters of a cell where one line is asked for."""
_CELLS: Final = 200


def excerpts(tables: Iterator[FeedTable], lines: Collection[tuple[str | None, int]], beside: int) -> list[Excerpt]:
    """Those lines of the tables, and `beside` lines around each. The cells of one line alone are longer."""
    longest = _CELL if len(lines) > 1 or beside else _ALONE
    wanted: dict[str | None, set[int]] = {}
    for sheet, line in lines:
        wanted.setdefault(sheet, set()).update(range(line - beside, line + beside + 1))
    found = []
    for table in tables:
        numbers = wanted.pop(table.sheet, None)
        if numbers:
            headers = tuple(_shown(header, _CELL) for header in table.headers[:_CELLS])
            found.append(Excerpt(table.sheet, headers, tuple(_rows(table, numbers, longest))))
        if not wanted:
            break
    return found


def _rows(table: FeedTable, numbers: set[int], longest: int) -> Iterator[tuple[int, tuple[str, ...]]]:
    last, told = max(numbers), 0
    for line, cells in table.rows:
        if line in numbers:
            yield line, tuple(_shown(cell, longest) for cell in cells[:_CELLS])
            told += 1
        if line > last or told == _ROWS:
            return


def _shown(cell: Any, longest: int) -> str:
    text = "" if cell is None else whole_text(str(cell))
    return text if len(text) <= longest else text[: longest - 1] + "…"
