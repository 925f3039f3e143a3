"""A file's own cells as a page shows them: the columns about which something is said, and what is wrong beside each cell."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from domain.ingestion.reading import Excerpt
from domain.kernel.problems import Problem
from entrypoints.console.portions import shortened

WIDEST: Final = 16
"""Columns that are shown beside each other."""
_CELLS: Final = 16_000
_TOLD: Final = 10_000
"""Bytes of a page that cells may fill, and what is told of them."""
_HEADER: Final = 80

Sheet = dict[str, Any]
"""`sheet`, its `headers`, and its `rows` with `line`, `cells` of (text, what is told of it), and what is `told` of the line."""


def sheets_of(tables: Sequence[Excerpt], problems: Sequence[Problem]) -> list[Sheet]:
    """The tables with what is told of their cells, shortened to what a page has room for."""
    made = [_with_problems(table, problems) for table in tables]
    cells = sum(len(row["cells"]) for table in made for row in table["rows"])
    told = sum(bool(said) for table in made for row in table["rows"] for said in (row["told"], *_said(row)))
    for table in made:
        for row in table["rows"]:
            row["told"] = _one(row["told"], _TOLD // max(told, 1))
            row["cells"] = [
                (shortened(text, max(24, _CELLS // max(cells, 1))), _one(said, _TOLD // max(told, 1)))
                for text, said in row["cells"]
            ]
    return made


def _said(row: Mapping[str, Any]) -> list[list[str]]:
    return [said for _, said in row["cells"]]


def _one(said: Sequence[str], room: int) -> str:
    """Everything that is told of a cell or line, each sentence once."""
    return shortened(" ".join(dict.fromkeys(said)), max(80, room))


def _with_problems(table: Excerpt, problems: Sequence[Problem]) -> Sheet:
    """The table's rows with, at each cell, what is wrong with it; what names no column of the table stands beside its line."""
    places = {header: number for number, header in reversed(list(enumerate(table.headers)))}
    lines = {line for line, _ in table.rows}
    cells: defaultdict[tuple[int, int], list[str]] = defaultdict(list)
    whole: defaultdict[int, list[str]] = defaultdict(list)
    for problem in problems:
        if problem.sheet != table.sheet or problem.line not in lines:
            continue
        place = places.get(problem.column or "")
        if place is None:
            whole[problem.line].append(f"{problem.field}: {problem.detail}")
        else:
            cells[problem.line, place].append(problem.detail)
    shown = _columns({place for _, place in cells}, len(table.headers))
    rows = [
        {
            "line": line,
            "cells": [(row[place] if place < len(row) else "", cells.get((line, place), [])) for place in shown],
            "told": [
                *whole.get(line, []),
                *(f"{table.headers[at]}: {' '.join(said)}" for (on, at), said in cells.items() if on == line and at not in shown),
            ],
        }
        for line, row in table.rows
    ]  # fmt: skip
    headers = [shortened(table.headers[place], _HEADER) for place in shown]
    return {"sheet": table.sheet, "headers": headers, "rows": rows, "left_out": len(table.headers) - len(shown)}


def _columns(told: set[int], count: int) -> list[int]:
    """Which columns are shown: the first ones, those that something is told of, and their neighbours, as far as there is room."""
    first = list(range(min(3 if told else 8, count)))
    beside = sorted({place + step for place in told for step in (-1, 1) if 0 <= place + step < count})
    return sorted(list(dict.fromkeys((*sorted(told), *first, *beside)))[:WIDEST])
