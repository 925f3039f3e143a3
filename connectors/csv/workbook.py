"""Reader of workbooks (XLSX, XLSB, XLS, ODS), which reads the values of cells, but no formulas and no linked files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from itertools import chain, islice
from pathlib import Path
from typing import Any

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
)

from connectors.csv.bounds import check_ods, check_xlsb, check_xlsx
from connectors.csv.headers import MAX_SCORED_CELLS, MAX_SEARCHED_ROWS, HeaderLayout, MergedArea, find_header
from connectors.csv.xls import check_xls
from connectors.sdk.context import Context, Limits
from connectors.sdk.errors import BadData
from connectors.sdk.tables import Cell, Report, Row, Table

_SAMPLE_ROWS = 200
_MAX_MERGED_AREAS = 2_000
_MAX_WHOLE_NUMBER = 1e15


_CHECK_BY_FORMAT: dict[str, Callable[[Path, Limits], None]] = {
    "xlsx": check_xlsx,
    "xlsb": check_xlsb,
    "ods": check_ods,
    "xls": check_xls,
}
"""Function that checks the size of a workbook before it is opened, by format."""


def read_workbook_tables(ctx: Context, path: Path, workbook_format: str = "xlsx") -> Iterator[Table]:
    """Yield one table for each visible worksheet that contains a table, in the workbook's order. Raises BadData.

    One worksheet at a time is in memory, with at most `limits.sheet_cells` cells. Cells are text: whole numbers without
    a fraction (`101`), dates in ISO format, and TRUE and FALSE. `workbook_format` is the format of the workbook.
    """
    _CHECK_BY_FORMAT[workbook_format](path, ctx.limits)
    with _translate_errors("the workbook"):
        workbook = CalamineWorkbook.from_path(path)
    with workbook:
        shown = [
            sheet.name
            for sheet in workbook.sheets_metadata
            if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible
        ]
        found = False
        for name in shown:
            table = _build_table(ctx, workbook, name, is_only_sheet=len(shown) == 1)
            if table is not None:
                found = True
                yield table
    if not found:
        raise BadData("no visible worksheet of the workbook contains a table")


def _build_table(ctx: Context, workbook: CalamineWorkbook, name: str, *, is_only_sheet: bool) -> Table | None:
    with _translate_errors(f'the worksheet "{name}"'):
        sheet = workbook.get_sheet_by_name(name)
    if sheet.start is None:
        return None
    records = _iterate_records(sheet)
    sample = list(islice(records, _SAMPLE_ROWS))
    found = find_header([cells for _, cells in sample], ctx.score_header, _find_merged_areas(sheet, sample))
    if found is None:
        return None
    if not is_only_sheet and not _is_table(found, sample):
        ctx.report(Report("the worksheet contains no table and is ignored", sheet=name))
        return None
    if len(found.headers) > ctx.limits.columns:
        raise BadData(f"the worksheet has {len(found.headers)} columns; at most {ctx.limits.columns} are supported")
    rows = _iterate_rows(chain(sample[found.first_data_row :], records), found.headers)
    return Table(sheet=name, headers=found.headers, rows=rows)


@contextmanager
def _translate_errors(subject: str) -> Iterator[None]:
    """Convert errors of the spreadsheet library to BadData, whose message begins with `subject`."""
    # The library is written in Rust; its panics are not subclasses of Exception.
    try:
        yield
    except PasswordError:
        raise BadData("the file is password-protected; send it without a password") from None
    except BaseException as error:
        if isinstance(error, (CalamineError, OSError, ValueError)) or type(error).__name__ == "PanicException":
            raise BadData(f"{subject} is damaged: it cannot be read") from None
        raise


def _is_table(layout: HeaderLayout, sample: list[tuple[int, list[str]]]) -> bool:
    """Return whether a worksheet contains a table: a row of data, and known headers or at least three columns."""
    return layout.first_data_row < len(sample) and (layout.known_words > 0 or len(layout.headers) > 2)


def _iterate_records(sheet: CalamineSheet) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, each as its row number (from 1) and the texts of its cells."""
    for line, row in enumerate(sheet.iter_rows(), start=1):
        cells = [cell if type(cell) is str else _format_cell(cell) for cell in row]
        if any(cells) and any(map(str.strip, cells)):
            yield line, cells


def _iterate_rows(records: Iterator[tuple[int, list[str]]], headers: tuple[str, ...]) -> Iterator[Row]:
    width = len(headers)
    header_row = list(headers)
    for line, cells in records:
        row: list[Cell] = list(cells[:width])
        if len(row) < width:
            row.extend([""] * (width - len(row)))
        if row[0] == header_row[0] and row == header_row:
            continue
        yield line, row


def _find_merged_areas(sheet: CalamineSheet, sample: list[tuple[int, list[str]]]) -> list[MergedArea]:
    """Return the merged areas near the top of a worksheet, with positions in `sample`, which has no blank rows."""
    at = {line - 1: index for index, (line, _) in enumerate(sample)}
    shift = sheet.start[1] if sheet.start else 0
    merged_areas = (
        (at[first], left - shift, at.get(last, at[first]), min(right - shift, left - shift + MAX_SCORED_CELLS))
        for (first, left), (last, right) in sheet.merged_cell_ranges or ()
        if at.get(first, _SAMPLE_ROWS) <= MAX_SEARCHED_ROWS and left >= shift
    )
    return list(islice(merged_areas, _MAX_MERGED_AREAS))


def _format_cell(value: Any) -> str:
    """Return the value of a cell as text, with numbers as they were entered, without artefacts of binary floats."""
    return _TEXT_BY_TYPE.get(type(value), str)(value)


def _format_number(value: float) -> str:
    if value.is_integer() and abs(value) < _MAX_WHOLE_NUMBER:
        return str(int(value))
    return format(Decimal(repr(value)), "f")


def _format_date(value: datetime) -> str:
    return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ", timespec="seconds")


_TEXT_BY_TYPE: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "TRUE" if value else "FALSE",
    float: _format_number,
    datetime: _format_date,
    date: date.isoformat,
    time: time.isoformat,
}
