"""Speed and coverage of the parsers of cells, over a folder of files (`make bench-normalise`)."""

import argparse
import csv
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from python_calamine import CalamineWorkbook

from benchmarks.ingest import print_figure
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.values import dates, dimensions, money, quantities, rugs, stock
from domain.ingestion.values.text import ParseResult, convert_to_text

Table = tuple[str, list[str], list[list[Any]]]
Parser = Callable[[str, str | None], ParseResult[Any]]

_PARSERS: Final[dict[str, tuple[str, Parser]]] = {
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
_CACHED_FUNCTIONS = [
    cached_function
    for module in (dates, dimensions, money, quantities, rugs, stock)
    for cached_function in vars(module).values()
    if hasattr(cached_function, "cache_clear")
]
_DIGITS = re.compile(r"\d+")


def read_tables(folder: Path) -> Iterator[Table]:
    """Yield the name, headers and rows of each table of a folder; the headers are the fullest of the first five rows."""
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".xlsx":
            workbook = CalamineWorkbook.from_path(str(path))
            for sheet in workbook.sheet_names:
                yield from _split_table(path.name, workbook.get_sheet_by_name(sheet).to_python())
        elif path.suffix in (".csv", ".tsv"):
            text = path.read_text("utf-8-sig", errors="replace")
            delimiter = max(",;\t|", key=text.partition("\n")[0].count)
            yield from _split_table(path.name, list(csv.reader(text.splitlines(keepends=True), delimiter=delimiter)))


def _split_table(name: str, rows: list[list[Any]]) -> Iterator[Table]:
    if len(rows) > 2:
        header_index = max(
            range(min(5, len(rows))),
            key=lambda index: sum(isinstance(cell, str) and bool(cell) for cell in rows[index]),
        )
        yield name, [convert_to_text(cell) for cell in rows[header_index]], rows[header_index + 1 :]


def _find_parser(field: str) -> tuple[str, Parser] | None:
    prefix = field.partition(".")[0] + "."
    return _PARSERS.get(field) or (_PARSERS.get(prefix) if "." in field else None)


def count_cells(folder: Path) -> dict[str, Counter[tuple[str, str | None]]]:
    """Count the distinct texts and units of each parser's columns, with the column mapping that the service proposes.

    Returns:
        Counters of (text, unit of the column), by name of the parser.
    """
    counts: dict[str, Counter[tuple[str, str | None]]] = defaultdict(Counter)
    for _, headers, rows in read_tables(folder):
        mapping = propose_column_mapping(
            headers, [[convert_to_text(cell) for cell in row] for row in rows[:50]], FeedSettings(currency="usd")
        )
        for column in mapping.columns:
            parser = _find_parser(column.field)
            for row in rows if parser else ():
                text = convert_to_text(row[column.position]) if column.position < len(row) else ""
                if parser and text.strip():
                    counts[parser[0]][text, column.find_setting("unit")] += 1
    return counts


def _format_value(value: Any) -> str:
    """Return the content of a parsed value as a text in which numbers can be searched."""
    content = [value.dimensions, value.components, value.extras] if isinstance(value, dimensions.ParsedSize) else value
    return str(content)


def _has_lost_number(text: str, value: Any) -> bool:
    """Return whether a number of the text is missing in the parsed value.

    Fractions, and feet with inches, are ignored, because they are combined into one number.
    """
    text_without_fractions = re.sub(r"(?:\d+\s*[-/ ]?\s*)?\d+\s?/\s?\d+|[½¼¾⅛⅜⅝⅞]|\d+\s?['’]\s?-?\d+", "", text)
    value_text = _format_value(value)
    return any(
        int(digits) and digits.lstrip("0") not in value_text for digits in _DIGITS.findall(text_without_fractions)
    )


def _measure_parser(parser: Parser, distinct_texts: list[tuple[str, str | None]], rounds: int) -> float:
    best = float("inf")
    for _ in range(rounds):
        for cached_function in _CACHED_FUNCTIONS:
            cached_function.cache_clear()
        cpu_before = time.thread_time()
        for text, unit in distinct_texts:
            parser(text, unit)
        best = min(best, time.thread_time() - cpu_before)
    return best / len(distinct_texts) * 1e6


def main(folder: Path, rounds: int) -> None:
    """Print a line per parser.

    It contains the CPU time per distinct text, and the numbers of cells that were read, have a problem, have no
    value, or lost a number without a problem.
    """
    parsers = dict(_PARSERS.values())
    for name, counts in sorted(count_cells(folder).items()):
        distinct_texts = list(counts)
        microseconds = _measure_parser(parsers[name], distinct_texts, rounds)
        read_count = faulty_count = partly_read_count = 0
        for (text, unit), count in counts.items():
            parsed = parsers[name](text, unit)
            faulty_count += count if parsed.faults else 0
            read_count += count if parsed.value is not None and not parsed.faults else 0
            partly_read_count += (
                count
                if parsed.value is not None
                and not parsed.faults
                and name == "dimensions"
                and _has_lost_number(text, parsed.value)
                else 0
            )
        cell_count = sum(counts.values())
        print_figure(
            name,
            f"{microseconds:8.1f} µs per distinct text   {len(distinct_texts):>6,} distinct of {cell_count:>7,} cells   {read_count:>7,} read   {faulty_count:>6,} with a problem   "
            f"{cell_count - read_count - faulty_count:>6,} without a value   {partly_read_count:>5,} with a lost number",
        )


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path, help="folder with .csv, .tsv and .xlsx files")
    options.add_argument("--rounds", type=int, default=3)
    arguments = options.parse_args()
    main(arguments.folder, arguments.rounds)
