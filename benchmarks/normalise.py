"""What reading cells costs and how far they are read: microseconds a distinct text by parser, over a folder of files (`make bench-normalise`)."""

import argparse
import csv
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from python_calamine import CalamineWorkbook

from benchmarks.ingest import line
from domain.ingestion.mapping.proposal import propose
from domain.ingestion.model import FeedSettings
from domain.ingestion.values import dates, dimensions, money, quantities, rugs, stock
from domain.ingestion.values.text import Parsed, as_text

Table = tuple[str, list[str], list[list[Any]]]
Read = Callable[[str, str | None], Parsed[Any]]

_PARSERS: Final[dict[str, tuple[str, Read]]] = {
    "dimensions": ("dimensions", dimensions.parse_dimensions),
    "dimensions.": ("lengths", quantities.parse_length),
    "weight": ("weights", quantities.parse_weight),
    "rug.size_text": ("rug sizes", rugs.parse_rug_size),
    "quantity": ("stock", lambda text, unit: stock.parse_stock(text)),
    "availability": ("availability", lambda text, unit: stock.parse_availability(text)),
    "lead_time_days": ("lead times", lambda text, unit: dates.parse_lead_time(text)),
    **dict.fromkeys(
        ("cost", "msrp", "map", "price", "compare_at"), ("prices", lambda text, unit: money.parse_money(text, "usd"))
    ),
}
_CACHED = [
    kept
    for module in (dates, dimensions, money, quantities, rugs, stock)
    for kept in vars(module).values()
    if hasattr(kept, "cache_clear")
]
_RUN = re.compile(r"\d+")


def tables(folder: Path) -> Iterator[Table]:
    """The tables of a folder: name, headers (the fullest of the first five rows), rows."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".xlsx":
            book = CalamineWorkbook.from_path(str(path))
            for sheet in book.sheet_names:
                yield from _table(path.name, book.get_sheet_by_name(sheet).to_python())
        elif path.suffix in (".csv", ".tsv"):
            text = path.read_text("utf-8-sig", errors="replace")
            mark = max(",;\t|", key=text.partition("\n")[0].count)
            yield from _table(path.name, list(csv.reader(text.splitlines(keepends=True), delimiter=mark)))


def _table(name: str, rows: list[list[Any]]) -> Iterator[Table]:
    if len(rows) > 2:
        at = max(range(min(5, len(rows))), key=lambda n: sum(isinstance(cell, str) and bool(cell) for cell in rows[n]))
        yield name, [as_text(cell) for cell in rows[at]], rows[at + 1 :]


def _parser_of(field: str) -> tuple[str, Read] | None:
    family = field.partition(".")[0] + "."
    return _PARSERS.get(field) or (_PARSERS.get(family) if "." in field else None)


def cells(folder: Path) -> dict[str, Counter[tuple[str, str | None]]]:
    """The texts of each parser's columns with their column's unit, as a source's own mapping would find them."""
    found: dict[str, Counter[tuple[str, str | None]]] = defaultdict(Counter)
    for _, headers, rows in tables(folder):
        mapping = propose(headers, [[as_text(cell) for cell in row] for row in rows[:50]], FeedSettings(currency="usd"))
        for column in mapping.columns:
            parser = _parser_of(column.field)
            for row in rows if parser else ():
                text = as_text(row[column.position]) if column.position < len(row) else ""
                if parser and text.strip():
                    found[parser[0]][text, column.setting("unit")] += 1
    return found


def _said(value: Any) -> str:
    """Everything a reading says, as one text to look for figures in."""
    spread = [value.dimensions, value.components, value.extras] if isinstance(value, dimensions.Spread) else value
    return str(spread)


def _lost(text: str, value: Any) -> bool:
    """Whether a run of digits of a text is nowhere in its reading; fractions and feet with inches become one figure and are passed over."""
    plain = re.sub(r"(?:\d+\s*[-/ ]?\s*)?\d+\s?/\s?\d+|[½¼¾⅛⅜⅝⅞]|\d+\s?['’]\s?-?\d+", "", text)
    said = _said(value)
    return any(int(run) and run.lstrip("0") not in said for run in _RUN.findall(plain))


def _measured(read: Read, distinct: list[tuple[str, str | None]], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        for kept in _CACHED:
            kept.cache_clear()
        begun = time.thread_time()
        for text, unit in distinct:
            read(text, unit)
        best = min(best, time.thread_time() - begun)
    return best / len(distinct) * 1e6


def main(folder: Path, rounds: int) -> None:
    """One line a parser: cells, distinct texts, time a distinct text; how many were read, told, and read in part untold."""
    readers = dict(_PARSERS.values())
    for name, counted in sorted(cells(folder).items()):
        distinct = list(counted)
        took = _measured(readers[name], distinct, rounds)
        read = told = partly = 0
        for (text, unit), times in counted.items():
            parsed = readers[name](text, unit)
            told += times if parsed.faults else 0
            read += times if parsed.value is not None and not parsed.faults else 0
            partly += (
                times
                if parsed.value is not None and not parsed.faults and name == "dimensions" and _lost(text, parsed.value)
                else 0
            )
        total = sum(counted.values())
        line(
            name,
            f"{took:8.1f} µs a distinct text   {len(distinct):>6,} distinct of {total:>7,} cells   {read:>7,} read   {told:>6,} told   "
            f"{total - read - told:>6,} state nothing   {partly:>5,} with a figure untold",
        )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, help="the folder whose .csv, .tsv and .xlsx files are read")
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    main(given.folder, given.rounds)
