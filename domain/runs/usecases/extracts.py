"""Extracts of a snapshot for people: lines around problems, rows found by their text, and the first records."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.model import FeedSettings, FeedTable, HeaderMapping, Row
from domain.ingestion.normalise import normalise
from domain.ingestion.ports import ParseFailed
from domain.ingestion.reading import Excerpt, FoundRow, FoundRows, Sample
from domain.ingestion.records import from_record
from domain.ingestion.values.text import whole_text
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.usecases.spooling import SAMPLES, mapping_of

_MAX_ROWS = 200
"""Maximum number of rows of one table; several may share one line."""
_CELL = 120
_MAX_SINGLE_LINE_CHARS = 2_000
"""Maximum characters of a cell if a single line is requested."""
_CELLS = 200


def excerpts(tables: Iterator[FeedTable], lines: Collection[tuple[str | None, int]], beside: int) -> list[Excerpt]:
    """Return the lines of the tables with `beside` lines around each. The cells of a single line are longer."""
    longest = _CELL if len(lines) > 1 or beside else _MAX_SINGLE_LINE_CHARS
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
        if line > last or told == _MAX_ROWS:
            return


def _shown(cell: Any, longest: int) -> str:
    text = "" if cell is None else whole_text(str(cell))
    return text if len(text) <= longest else text[: longest - 1] + "…"


LONGEST = 2_000
"""Maximum characters of a cell."""
COLUMNS = 300
"""Maximum number of columns of a row."""


def find_in_tables(tables: Iterator[FeedTable], texts: Collection[str], most: int, limit: int | None) -> FoundRows:
    """Find the first `most` rows that have one of the texts as a cell, among the first `limit`."""
    sought = frozenset(texts)

    def row(table: FeedTable, line: int, cells: Sequence[Any]) -> FoundRow | None:
        if not any(_text(cell) in sought for cell in cells if cell is not None):
            return None
        named = islice(zip(table.headers, cells, strict=False), COLUMNS)
        return FoundRow(table.sheet, line, tuple((header, _text(cell)[:LONGEST]) for header, cell in named))

    return _first((row(table, line, cells) for table in tables for line, cells in table.rows), most, limit)


def find_in_records(
    records: Iterable[Mapping[str, Any]], texts: Collection[str], most: int, limit: int | None
) -> FoundRows:
    """Find the first `most` pushed records with one of the texts as a code of the product or of a variant."""
    sought = frozenset(texts)

    def row(number: int, record: Mapping[str, Any]) -> FoundRow | None:
        named = [record["product"], *record.get("variants", ())]
        if not any(str(one.get(name)) in sought for one in named for name in ("external_id", "sku")):
            return None
        return FoundRow(None, number, tuple(islice(_leaves(record, ""), COLUMNS)))

    return _first((row(number, record) for number, record in enumerate(records, start=1)), most, limit)


def _first(rows: Iterable[FoundRow | None], most: int, limit: int | None) -> FoundRows:
    """Take the first `most` that are found among the first `limit` rows."""
    found: list[FoundRow] = []
    looked = 0
    for looked, row in enumerate(islice(rows, limit), start=1):
        if row is not None:
            found.append(row)
            if len(found) >= most:
                return FoundRows(found, looked, whole=False)
    return FoundRows(found, looked, whole=limit is None or looked < limit)


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _leaves(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield the dotted paths and texts of a record's values."""
    if isinstance(value, Mapping):
        for name, part in value.items():
            yield from _leaves(part, f"{path}.{name}" if path else name)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, part in enumerate(value):
            yield from _leaves(part, f"{path}.{number}")
    else:
        yield path, _text(value)[:LONGEST]


def sample_of_records(records: Iterable[Mapping[str, Any]], count: int, settings: FeedSettings) -> Sample:
    """Return a sample of the first pushed records."""
    head = list(islice(records, SAMPLES))
    found = [from_record(record, settings, line)[1] for line, record in enumerate(head, start=1)]
    return Sample(head[:count], problems=[problem for problems in found for problem in problems])


def sample_of_tables(tables: Iterator[FeedTable], count: int, settings: FeedSettings) -> Sample:
    """Return a sample of the first rows of the tables, with the mapping and problems of the first table."""
    records: list[Mapping[str, Any]] = []
    mapping: HeaderMapping | None = None
    problems: list[Problem] = []
    failure: str | None = None
    try:
        for table in tables:
            head: list[Row] = []
            try:
                head.extend(islice(table.rows, SAMPLES if mapping is None else count))
            except ParseFailed as error:
                failure = str(error)
            named = (
                {h: cell for h, cell in zip(table.headers, cells, strict=False) if cell is not None}
                for _, cells in head
            )
            records += islice(named, count - len(records))
            if mapping is None:
                mapping = mapping_of(table, head, settings)
                problems = _problems(table, head, mapping, settings)
            if len(records) == count or failure is not None:
                break
    except ParseFailed as error:
        failure = str(error)
    return Sample(records, None if len(records) == count else failure, mapping, problems)


def _problems(table: FeedTable, head: list[Row], mapping: HeaderMapping, settings: FeedSettings) -> list[Problem]:
    if mapping.missing:
        detail = "No column could be read as the item's key."
        return [Problem(name, ProblemKind.MISSING, detail, sheet=table.sheet) for name in mapping.missing]
    plan = ReadPlan(mapping, settings)
    key_of = plan.product_key if settings.stream == "catalogue" else plan.variant_key
    groups: dict[str, list[Row]] = {}
    problems: list[Problem] = []
    for line, cells in head:
        if (key := key_of(cells)) is None:
            detail = "The row names no item: no SKU, key, GTIN or MPN."
            problems.append(Problem("sku", ProblemKind.MISSING, detail, line=line, sheet=table.sheet))
        else:
            groups.setdefault(key, []).append((line, cells))
    for key, rows in groups.items():
        _, found = normalise(key, rows, plan, table.sheet)
        problems += [replace(problem, external_id=key) for problem in found]
    return problems
