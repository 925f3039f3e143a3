"""Excerpts of a snapshot for users: lines with their neighbours, rows that contain a text, and the first records."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from domain.catalogue.model import Stream
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.columns.row_keys import RowKeys
from domain.ingestion.mapping.columns import complete_settings
from domain.ingestion.model import FeedSettings, FeedTable, HeaderMapping, Row
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.ports import FeedLine, ParseFailed
from domain.ingestion.records import parse_record
from domain.ingestion.snapshot_results import FeedExcerpt, FeedRow, RowSearchResult, SnapshotSample
from domain.ingestion.values.text import ParseFault, replace_text_surrogates
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.sheets import MISSING_DATA_DETAILS
from domain.runs.usecases.spool import SAMPLE_ROWS, propose_mapping

_MAX_ROWS = 1_000
"""Maximum number of rows of one table in an excerpt; several rows may have the same line number."""
_MAX_CELL_CHARS = 120
"""Maximum characters of a cell in an excerpt."""
_MAX_COMPLETE_CELL_CHARS = 2_000
"""Maximum characters of a cell if only the lines themselves are requested, without neighbours."""
_MAX_TOTAL_CHARS = 8 << 20
"""Maximum characters of all cells in excerpts; further lines are omitted."""
_MAX_CELLS = 200
"""Maximum number of cells of a row in an excerpt."""


def read_excerpts(tables: Iterator[FeedTable], lines: Collection[FeedLine], context_rows: int) -> list[FeedExcerpt]:
    """Return the lines at these positions in the tables, with `context_rows` lines before and after each.

    Long cells are truncated. Without neighbours, cells may be longer.
    """
    max_chars = _MAX_CELL_CHARS if context_rows else _MAX_COMPLETE_CELL_CHARS
    wanted: dict[str | None, set[int]] = {}
    for sheet, line in lines:
        wanted.setdefault(sheet, set()).update(range(line - context_rows, line + context_rows + 1))
    found, remaining = [], _MAX_TOTAL_CHARS
    for table in tables:
        numbers = wanted.pop(table.sheet, None)
        if numbers:
            headers = tuple(_shorten(header, _MAX_CELL_CHARS) for header in table.headers[:_MAX_CELLS])
            rows = tuple(_select_rows(table, numbers, max_chars, remaining))
            found.append(FeedExcerpt(table.sheet, headers, rows))
            remaining -= sum(len(text) for _, texts in rows for text in texts)
        if not wanted or remaining < 0:
            break
    return found


def _select_rows(
    table: FeedTable, numbers: set[int], max_chars: int, max_total_chars: int
) -> Iterator[tuple[int, tuple[str, ...]]]:
    last_number, count, size = max(numbers), 0, 0
    for line, cells in table.rows:
        if line in numbers:
            texts = tuple(_shorten(cell, max_chars) for cell in cells[:_MAX_CELLS])
            yield line, texts
            count, size = count + 1, size + sum(map(len, texts))
        if line > last_number or count == _MAX_ROWS or size > max_total_chars:
            return


def _shorten(cell: Any, max_chars: int) -> str:
    text = "" if cell is None else replace_text_surrogates(str(cell))
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"


MAX_FOUND_CELL_CHARS = 2_000
"""Maximum characters of a cell in a found row."""
MAX_FOUND_COLUMNS = 300
"""Maximum number of columns in a found row."""


def find_in_tables(
    tables: Iterator[FeedTable], texts: Collection[str], max_rows: int, max_searched: int | None
) -> RowSearchResult:
    """Return the first rows with a cell that equals one of the texts.

    Args:
        tables: The tables.
        texts: The texts.
        max_rows: Maximum number of rows to return.
        max_searched: Maximum number of rows to search; None for all.
    """
    wanted_texts = frozenset(texts)

    def find_row(table: FeedTable, line: int, cells: Sequence[Any]) -> FeedRow | None:
        if not any(_to_text(cell) in wanted_texts for cell in cells if cell is not None):
            return None
        named_cells = islice(zip(table.headers, cells, strict=False), MAX_FOUND_COLUMNS)
        return FeedRow(
            table.sheet, line, tuple((header, _to_text(cell)[:MAX_FOUND_CELL_CHARS]) for header, cell in named_cells)
        )

    return _collect_found(
        (find_row(table, line, cells) for table in tables for line, cells in table.rows), max_rows, max_searched
    )


def find_in_records(
    records: Iterable[Mapping[str, Any]], texts: Collection[str], max_records: int, max_searched: int | None
) -> RowSearchResult:
    """Return the first pushed records with a product or variant whose external ID or SKU is one of the texts.

    Args:
        records: The records.
        texts: The texts.
        max_records: Maximum number of records to return.
        max_searched: Maximum number of records to search; None for all.
    """
    wanted_texts = frozenset(texts)

    def find_row(number: int, record: Mapping[str, Any]) -> FeedRow | None:
        objects = [record["product"], *record.get("variants", ())]
        if not any(str(object_.get(name)) in wanted_texts for object_ in objects for name in ("external_id", "sku")):
            return None
        return FeedRow(None, number, tuple(islice(_flatten(record, ""), MAX_FOUND_COLUMNS)))

    return _collect_found(
        (find_row(number, record) for number, record in enumerate(records, start=1)), max_records, max_searched
    )


def _collect_found(rows: Iterable[FeedRow | None], max_rows: int, max_searched: int | None) -> RowSearchResult:
    """Return the first rows that are not None.

    Args:
        rows: A FeedRow for each row that matches, and None for each other row.
        max_rows: Maximum number of rows to return.
        max_searched: Maximum number of rows to search; None for all.
    """
    found: list[FeedRow] = []
    searched = 0
    for searched, row in enumerate(islice(rows, max_searched), start=1):
        if row is not None:
            found.append(row)
            if len(found) >= max_rows:
                return RowSearchResult(found, searched, is_complete=False)
    return RowSearchResult(found, searched, is_complete=max_searched is None or searched < max_searched)


def _to_text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _flatten(value: Any, path: str) -> Iterator[tuple[str, str]]:
    """Yield a dotted path and a text for each value of a record, including nested ones."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _flatten(item, f"{path}.{name}" if path else name)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for number, item in enumerate(value):
            yield from _flatten(item, f"{path}.{number}")
    else:
        yield path, _to_text(value)[:MAX_FOUND_CELL_CHARS]


def sample_records(records: Iterable[Mapping[str, Any]], count: int, settings: FeedSettings) -> SnapshotSample:
    """Return the first `count` pushed records, and the problems of the first SAMPLE_ROWS records."""
    head = list(islice(records, SAMPLE_ROWS))
    found = [parse_record(record, settings, line)[1] for line, record in enumerate(head, start=1)]
    return SnapshotSample(head[:count], problems=[problem for problems in found for problem in problems])


def sample_tables(tables: Iterator[FeedTable], count: int, settings: FeedSettings) -> SnapshotSample:
    """Return the first `count` rows of the tables, and the column mapping and problems of the first table."""
    records: list[Mapping[str, Any]] = []
    mapping: HeaderMapping | None = None
    problems: list[Problem] = []
    failure: str | None = None
    try:
        for table in tables:
            head: list[Row] = []
            try:
                head.extend(islice(table.rows, SAMPLE_ROWS if mapping is None else count))
            except ParseFailed as error:
                failure = str(error)
            named = (
                {h: cell for h, cell in zip(table.headers, cells, strict=False) if cell is not None}
                for _, cells in head
            )
            records += islice(named, count - len(records))
            if mapping is None:
                completed = complete_settings(settings, table.notes)
                mapping = propose_mapping(table, head, completed)
                problems = _find_problems(table, head, mapping, completed)
            if len(records) == count or failure is not None:
                break
    except ParseFailed as error:
        failure = str(error)
    return SnapshotSample(records, None if len(records) == count else failure, mapping, problems)


def _find_problems(table: FeedTable, head: list[Row], mapping: HeaderMapping, settings: FeedSettings) -> list[Problem]:
    if mapping.missing:
        return [
            Problem(name, ProblemKind.MISSING, MISSING_DATA_DETAILS[name], sheet=table.sheet)
            for name in mapping.missing
        ]
    plan = ReadPlan(mapping, settings)
    keys = RowKeys(plan, Stream(settings.stream), head)
    groups: dict[str, list[Row]] = {}
    problems: list[Problem] = []
    for line, cells in head:
        key = keys.read_key(cells)
        if isinstance(key, ParseFault):
            problems.append(Problem("sku", key.problem, key.detail, line=line, sheet=table.sheet))
        else:
            groups.setdefault(key, []).append((line, cells))
    for key, rows in groups.items():
        _, found = normalise_rows(key, rows, plan, table.sheet)
        problems += [replace(problem, external_id=key) for problem in found]
    return problems
