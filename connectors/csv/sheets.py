"""Division of a sheet into tables, which can stand one below another, beside each other, or transposed.

A sheet is read once, row by row. The rows of a table end where the header of another table begins. A table beside another
one is read from the sheet's records again.
"""

import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate, count, islice

from connectors.csv.headers import (
    MAX_SCORED_CELLS,
    HeaderLayout,
    MergedArea,
    count_numeric_cells,
    find_header,
    is_number,
    is_numeric,
)
from connectors.sdk.context import MIB, Context
from connectors.sdk.errors import BadData
from connectors.sdk.tables import MAX_NOTES_CHARS, Cell, Report, Row, Table

Record = tuple[int, list[str]]
"""Line number (from 1) and cells of a row that is not blank."""

_SAMPLE_ROWS = 200
_MAX_SAMPLE_CHARS = 4 * MIB
_MAX_REPORTS = 100
_MAX_TABLES = 200
_MAX_HEADER_CHARS = 60
_DIGIT = re.compile(r"\d")
_NUMERIC_SHARE = 0.6
_NUMERIC_SAMPLE_ROWS = 5
_MAX_NUMERIC_COLUMNS = 4
_KNOWN_SHARE = 0.6
_MIN_KNOWN = 2
_MIN_KNOWN_WITHOUT_GAP = 3
_MIN_LABELS = 3
_MAX_KNOWN_SHARE = 0.34
_REPEATED_SHARE = 0.8
_MAX_SIDE_SHARE = 0.8
_DENSE_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class SheetFormat:
    """Properties of a sheet that depend on the file's format.

    Attributes:
        name: Name of the worksheet; None for formats without worksheets.
        blank: Value of the cells that a short row lacks: None, or an empty text in workbooks.
        has_other_sheets: Whether the workbook has other sheets, so that one without a table is ignored.
        merged_areas: Merged areas by first line; lines are counted from 1, columns from 0.
    """

    name: str | None = None
    blank: str | None = None
    has_other_sheets: bool = False
    merged_areas: dict[int, list[MergedArea]] = field(default_factory=dict)


def read_sheet_tables(
    ctx: Context, open_records: Callable[[], Iterator[Record]], sheet_format: SheetFormat
) -> Iterator[Table]:
    """Yield the tables of a sheet in the order of their first rows, a table at the left before one at its right.

    The second table is named `Prices (table 2)`, or `Table 2` if sheets have no names. Rows of titles above a header, of
    units or descriptions below it, and repeated headers are reported. Raises BadData.

    Args:
        ctx: Environment of the connector.
        open_records: Returns the records of the sheet from its beginning; it is called again for a table beside another.
        sheet_format: Properties of the sheet.
    """
    return _SheetReader(ctx, open_records, sheet_format, count(1)).read_tables()


class _RecordBuffer:
    """Records that can be examined before they are read."""

    def __init__(self, records: Iterator[Record]) -> None:
        self._records = records
        self._next_records: deque[Record] = deque()

    def peek(self, number: int) -> list[Record]:
        """Return up to `number` of the next records; fewer at the end or if they exceed 4 MiB."""
        chars = sum(sum(map(len, cells)) for _, cells in self._next_records)
        while len(self._next_records) < number and chars <= _MAX_SAMPLE_CHARS:
            record = next(self._records, None)
            if record is None:
                break
            self._next_records.append(record)
            chars += sum(map(len, record[1]))
        return list(islice(self._next_records, number))

    def pop(self) -> Record | None:
        """Return the next record and advance; None at the end."""
        return self._next_records.popleft() if self._next_records else next(self._records, None)

    def push_back(self, record: Record) -> None:
        """Make a record the next one again."""
        self._next_records.appendleft(record)


class _SheetReader:
    """Reader of the tables of a sheet, or of some of its columns."""

    def __init__(
        self,
        ctx: Context,
        open_records: Callable[[], Iterator[Record]],
        sheet_format: SheetFormat,
        numbers: "count[int]",
    ) -> None:
        self._ctx, self._open_records, self._format, self._numbers = ctx, open_records, sheet_format, numbers
        self._notes = ""

    def read_tables(self) -> Iterator[Table]:
        buffer = _RecordBuffer(self._open_records())
        sample = buffer.peek(_SAMPLE_ROWS)
        if len(sample) < _SAMPLE_ROWS and (transposed := _transpose(sample, self._ctx.score_header)) is not None:
            name = self._name_next_table()
            self._report("the table lists one item per column; lines in reports are numbers of columns", name, None)
            headers, rows = transposed
            yield Table(name, headers, iter(rows))
            return
        while sample:
            layout = find_header([cells for _, cells in sample], self._ctx.score_header, self._select_areas(sample))
            if layout is None:
                return
            if not self._format.has_other_sheets or _is_table(layout, sample):
                yield from self._read_region(buffer, sample, layout)
            else:
                self._report("the worksheet contains no table and is ignored", self._format.name, None)
                return
            sample = buffer.peek(_SAMPLE_ROWS)

    def _read_region(self, buffer: _RecordBuffer, sample: list[Record], layout: HeaderLayout) -> Iterator[Table]:
        """Yield the table with the layout, then the tables beside it, and leave the record after them in the buffer."""
        name = self._name_next_table()
        self._report_layout(sample, layout, name)
        # The first notes of a sheet apply to all its tables.
        above = (cell.strip() for _, cells in sample[: layout.header_row] for cell in cells)
        self._notes = "\n".join(filter(None, (self._notes, *above)))[:MAX_NOTES_CHARS]
        if len(layout.headers) > self._ctx.limits.columns:
            detail = f"the table has {len(layout.headers)} columns; at most {self._ctx.limits.columns} are supported"
            raise BadData(detail)
        data = [cells for _, cells in sample[layout.first_data_row :]]
        first_columns, *other_columns = _find_column_ranges(layout, data)
        region = _Region(self._ctx, buffer, sample, layout, first_columns, self._format, name)
        for _ in range(layout.first_data_row):
            buffer.pop()
        yield Table(name, region.headers, region.iterate_rows(), notes=self._notes)
        region.skip_remaining_rows()
        lines = range(sample[0][0], region.last_line + 1)
        if other_columns:
            # Values beyond the headers are reported by the last table.
            other_columns[-1] = range(other_columns[-1].start, sys.maxsize)
        for columns in other_columns:
            open_columns = partial(_select_cells, self._open_records, lines, columns)
            columns_format = replace(self._format, merged_areas=_select_areas(self._format.merged_areas, columns))
            yield from _SheetReader(self._ctx, open_columns, columns_format, self._numbers).read_tables()

    def _name_next_table(self) -> str | None:
        number = next(self._numbers)
        if number > _MAX_TABLES:
            raise BadData(f"the sheet contains more than {_MAX_TABLES} tables")
        if number == 1:
            return self._format.name
        return f"{self._format.name} (table {number})" if self._format.name else f"Table {number}"

    def _select_areas(self, sample: list[Record]) -> list[MergedArea]:
        """Return the merged areas that begin in the sample, with indexes in the sample instead of lines."""
        if not self._format.merged_areas:
            return []
        index_by_line = {line: index for index, (line, _) in enumerate(sample)}
        return [
            (index, left, index_by_line.get(last, index), right)
            for line, index in index_by_line.items()
            for _, left, last, right in self._format.merged_areas.get(line, ())
        ]

    def _report_layout(self, sample: list[Record], layout: HeaderLayout, name: str | None) -> None:
        """Report the rows around the header that are not read, with their roles."""
        if layout.header_row:
            lines = _format_lines([line for line, _ in sample[: layout.header_row]])
            self._report(f"{lines} above the header contain titles or notes and were not read", name, sample[0][0])
        for index, role in layout.other_rows:
            self._report(f"the row contains {role} and was not read as an item", name, sample[index][0])

    def _report(self, detail: str, name: str | None, line: int | None) -> None:
        self._ctx.report(Report(detail, line=line, sheet=name))


class _Region:
    """Table within a sheet whose rows are being read.

    Attributes:
        headers: Names of the table's columns.
        width: Number of columns of the table.
        last_line: Line of the last record that was read.
    """

    def __init__(
        self,
        ctx: Context,
        buffer: _RecordBuffer,
        sample: list[Record],
        layout: HeaderLayout,
        columns: range,
        sheet_format: SheetFormat,
        name: str | None,
    ) -> None:
        self.headers = layout.headers[columns.start : columns.stop]
        self.width = len(columns)
        self.last_line = sample[layout.first_data_row - 1][0]
        self._ctx, self._buffer, self._columns, self._format, self._name = ctx, buffer, columns, sheet_format, name
        self._is_whole = columns == range(len(layout.headers))
        header_rows = (_fold(cells) for _, cells in sample[layout.header_row : layout.first_data_row])
        self._header_rows = [header for header in header_rows if sum(map(bool, header)) >= _MIN_KNOWN]
        self._numeric_columns = _find_numeric_columns(sample[layout.first_data_row :], columns)
        self._merged_values: dict[int, tuple[int, str]] = {}
        self._repeated_lines: list[int] = []
        self._reports_left = _MAX_REPORTS

    def iterate_rows(self) -> Iterator[Row]:
        """Yield the rows of data, with one cell per column."""
        width, stop = self.width, self._columns.stop
        start = self._columns.start
        for line, cells in self._iterate_records():
            if self._format.merged_areas:
                cells = self._fill_merged_cells(line, cells)
            if len(cells) > stop and self._is_whole:
                self._report_extra_values(line, cells[stop:])
            row: list[Cell] = list(cells[start:stop])
            if len(row) < width:
                row.extend([self._format.blank] * (width - len(row)))
            if self._is_whole or any(row):
                yield line, row

    def skip_remaining_rows(self) -> None:
        """Advance to the end of the table, and report its repeated headers."""
        for _ in self._iterate_records():
            pass
        if self._repeated_lines:
            detail = f"{_format_lines(self._repeated_lines)} repeat the header and were not read"
            self._ctx.report(Report(detail, line=self._repeated_lines[0], sheet=self._name))

    def _iterate_records(self) -> Iterator[Record]:
        """Yield the records up to the header of another table, without those that repeat this table's header."""
        while (record := self._buffer.pop()) is not None:
            line, cells = record
            begins_like_header = self._begins_like_header(cells)
            if begins_like_header and self._repeats_header(cells):
                self._repeated_lines.append(line)
                continue
            if begins_like_header or (not self._has_number(cells) and self._starts_table(line, cells)):
                self._buffer.push_back(record)
                return
            self.last_line = line
            yield record

    def _begins_like_header(self, cells: list[str]) -> bool:
        """Return whether at least half of the values, and at least two, are names of the same columns."""
        for header in self._header_rows:
            first = next(column for column, name in enumerate(header) if name)
            # Most rows are distinguished by their first value.
            if first < len(cells) and cells[first].strip().casefold() == header[first]:
                folded = _fold(cells)
                same = sum(1 for cell, name in zip(folded, header, strict=False) if cell and cell == name)
                if same >= max(_MIN_KNOWN, sum(map(bool, folded)) / 2):
                    return True
        return False

    def _has_number(self, cells: list[str]) -> bool:
        """Return whether a cell of a numeric column is numeric, as in most rows of data."""
        return any(column < len(cells) and is_numeric(cells[column]) for column in self._numeric_columns)

    def _repeats_header(self, cells: list[str]) -> bool:
        """Return whether most names of a header row are repeated, and no column has another name."""
        folded = _fold(cells)
        for header in self._header_rows:
            pairs = [(cell, name) for cell, name in zip(folded, header, strict=False) if cell and name]
            has_others = len(pairs) < sum(map(bool, folded)) or any(cell != name for cell, name in pairs)
            if not has_others and len(pairs) >= _REPEATED_SHARE * sum(map(bool, header)):
                return True
        return False

    def _starts_table(self, line: int, cells: list[str]) -> bool:
        """Return whether a record is the header of another table: known headers without numbers, above data.

        Without a blank row before it, it must contain three known headers, and the columns above must be numeric.
        """
        filled = [cell for cell in cells if cell.strip()]
        if len(filled) < _MIN_KNOWN or any(len(cell) > _MAX_HEADER_CHARS or is_number(cell) for cell in filled):
            return False
        follows_gap = line > self.last_line + 1
        if not follows_gap and not self._numeric_columns:
            return False
        names = [column for column, cell in enumerate(cells) if cell.strip() and not _DIGIT.search(cell)]
        following = [other for _, other in self._buffer.peek(3)]
        if len(names) < len(filled) / 2 or not any(
            column < len(other) and _DIGIT.search(other[column]) for other in following for column in names
        ):
            return False
        # Most rows are distinguished before; the comparison with known headers takes much more time.
        known = self._ctx.score_header(filled[:MAX_SCORED_CELLS])
        return known >= max(_MIN_KNOWN if follows_gap else _MIN_KNOWN_WITHOUT_GAP, _KNOWN_SHARE * len(filled))

    def _fill_merged_cells(self, line: int, cells: list[str]) -> list[str]:
        """Return the cells with the values of areas that are merged over several rows."""
        # One area per column, because the areas of a damaged workbook can overlap.
        self._merged_values = {column: merged for column, merged in self._merged_values.items() if merged[0] >= line}
        if self._merged_values:
            cells = cells + [""] * (max(self._merged_values) + 1 - len(cells))
            for column, (_, value) in self._merged_values.items():
                cells[column] = cells[column] or value
        for _, left, last, _ in self._format.merged_areas.get(line, ()):
            if last > line and left < len(cells) and cells[left]:
                self._merged_values[left] = last, cells[left]
        return cells

    def _report_extra_values(self, line: int, extra: list[str]) -> None:
        if self._reports_left and (number := sum(1 for cell in extra if cell.strip())):
            self._reports_left -= 1
            detail = f"the row has {number} more values than there are columns; the extra values are ignored"
            self._ctx.report(Report(detail, line=line, sheet=self._name))


def _is_table(layout: HeaderLayout, sample: list[Record]) -> bool:
    """Return whether a worksheet contains a table: a row of data, and known headers or at least three columns."""
    return layout.first_data_row < len(sample) and (layout.known_words > 0 or len(layout.headers) > 2)


def _fold(cells: Iterable[str]) -> list[str]:
    """Return the cells in the form in which headers are compared: regardless of case and white space."""
    return [" ".join(cell.split()).casefold() for cell in cells]


def _format_lines(lines: Sequence[int]) -> str:
    """Return a text such as `line 4`, `lines 1 to 3` or `12 lines from line 40`."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    if lines[-1] - lines[0] == len(lines) - 1:
        return f"lines {lines[0]} to {lines[-1]}"
    return f"{len(lines)} lines from line {lines[0]}"


def _select_cells(open_records: Callable[[], Iterator[Record]], lines: range, columns: range) -> Iterator[Record]:
    """Yield the cells of some columns in the records of some lines, without blank records."""
    for line, cells in open_records():
        if line >= lines.stop:
            return
        selected = cells[columns.start : columns.stop]
        if line in lines and any(map(str.strip, selected)):
            yield line, selected


def _select_areas(areas_by_line: dict[int, list[MergedArea]], columns: range) -> dict[int, list[MergedArea]]:
    """Return the merged areas within some columns, with indexes in these columns."""
    return {
        line: [
            (first, left - columns.start, last, right - columns.start)
            for first, left, last, right in areas
            if left in columns and right in columns
        ]
        for line, areas in areas_by_line.items()
    }


def _find_numeric_columns(records: Sequence[Record], columns: range) -> list[int]:
    """Return up to four columns that are numeric in most of the first five records with several values."""
    several = (cells for _, cells in records if sum(map(bool, cells)) >= _MIN_KNOWN)
    examined = list(islice(several, _NUMERIC_SAMPLE_ROWS))
    least = max(_NUMERIC_SHARE * len(examined), 1)
    found = (column for column in columns if count_numeric_cells(examined, column) >= least)
    return list(islice(found, _MAX_NUMERIC_COLUMNS))


def _find_column_ranges(layout: HeaderLayout, rows: Sequence[Sequence[str]]) -> list[range]:
    """Return the columns of each table that begins in the header row: one range, unless tables stand side by side.

    Columns belong to separate tables if all headers are repeated, or if a blank column separates them and they either begin
    with the same header or one of them ends earlier.
    """
    width = len(layout.headers)
    names = _fold(layout.names)
    for size in range(2, width // 2 + 1):
        is_repeated = names == names[:size] * (width // size)
        if is_repeated and all(names[:size]) and len(set(names[:size])) == size:
            return [range(start, start + size) for start in range(0, width, size)]
    filled = [[column < len(row) and bool(row[column].strip()) for column in range(width)] for row in rows]
    gaps = [at for at in range(1, width - 1) if not names[at] and not any(row[at] for row in filled)]
    # Sums up to each column, because there can be as many ranges as gaps, and each spans many columns.
    sums = [list(accumulate(row, initial=0)) for row in filled] if gaps else []
    ranges = [range(width)]
    for gap in gaps:
        left, right = range(ranges[-1].start, gap), range(gap + 1, width)
        if len(left) > 1 and len(right) > 1 and _are_separate(names, sums, left, right, gaps):
            ranges[-1:] = [left, right]
    return ranges


def _are_separate(
    names: Sequence[str], sums: Sequence[Sequence[int]], left: range, right: range, gaps: Sequence[int]
) -> bool:
    """Return whether the columns on both sides of a gap are separate tables; `sums` are those of `_ends_earlier`."""
    right = range(right.start, next((gap for gap in gaps if gap > right.start), right.stop))
    named = [column for column in right if names[column]]
    if len(named) < _MIN_KNOWN:
        return not named and _ends_earlier(sums, right, left)
    return (
        names[left.start] == names[right.start] or _ends_earlier(sums, right, left) or _ends_earlier(sums, left, right)
    )


def _ends_earlier(sums: Sequence[Sequence[int]], columns: range, other: range) -> bool:
    """Return whether some columns are filled only in the first rows, without gaps, and others continue below.

    `sums` are the numbers of filled cells before each column, by row.
    """
    rows = [row[columns.stop] - row[columns.start] for row in sums]
    other_rows = [at for at, row in enumerate(sums) if row[other.stop] > row[other.start]]
    height = next((at for at, number in enumerate(rows) if not number), len(rows))
    is_dense = height > 0 and sum(rows) >= _DENSE_SHARE * height * len(columns) and not any(rows[height:])
    return (
        is_dense
        and len(other_rows) > height
        and height <= _MAX_SIDE_SHARE * (other_rows[-1] + 1)
        and other_rows[-1] >= height + 1
    )


def _transpose(
    sample: list[Record], score_header: Callable[[Sequence[str]], int]
) -> tuple[tuple[str, ...], list[Row]] | None:
    """Return headers and rows of a table with one item per column; None if the sheet is no such table.

    The first column of such a table contains known headers, and other columns do not. Rows with one value are titles.
    """
    rows = [cells for _, cells in sample if sum(1 for cell in cells if cell.strip()) > 1]
    labels = [cells[0].strip() for cells in rows]
    if len(labels) < _MIN_LABELS or not all(labels) or any(map(is_numeric, labels)):
        return None
    if score_header(labels) < _KNOWN_SHARE * len(labels):
        return None
    # In other tables, the first row contains the headers, and names of furniture in the first column may be known words.
    values = (cell for cells in rows for cell in cells[1:] if cell.strip())
    examined = (rows[0][1 : MAX_SCORED_CELLS + 1], list(islice(values, MAX_SCORED_CELLS)))
    if any(score_header(cells) > _MAX_KNOWN_SHARE * len(cells) for cells in examined):
        return None
    width = max(map(len, rows))
    items = [[cells[column] if column < len(cells) else "" for cells in rows] for column in range(1, width)]
    return tuple(labels), [
        (column, list(item)) for column, item in enumerate(items, start=2) if any(map(str.strip, item))
    ]
