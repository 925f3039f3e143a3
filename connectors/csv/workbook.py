"""Reader of workbooks (XLSX, XLSB, XLS, ODS), which reads the values of cells, but no formulas and no linked files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from functools import partial
from itertools import islice
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
from connectors.csv.headers import MAX_SCORED_CELLS, MergedArea
from connectors.csv.sheets import Record, SheetFormat, read_sheet_tables
from connectors.csv.xls import check_xls
from connectors.sdk.context import Context, Limits
from connectors.sdk.errors import BadData
from connectors.sdk.tables import Table

_MAX_MERGED_AREAS = 100_000
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
            with _translate_errors(f'the worksheet "{name}"'):
                sheet = workbook.get_sheet_by_name(name)
            if sheet.start is None:
                continue
            sheet_format = SheetFormat(name, "", len(shown) > 1, _find_merged_areas(sheet))
            for table in read_sheet_tables(ctx, partial(_iterate_records, sheet), sheet_format):
                found = True
                yield table
    if not found:
        raise BadData("no visible worksheet of the workbook contains a table")


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


def _iterate_records(sheet: CalamineSheet) -> Iterator[Record]:
    """Yield the rows that are not blank, each as its row number (from 1) and the texts of its cells."""
    for line, row in enumerate(sheet.iter_rows(), start=1):
        cells = [cell if type(cell) is str else _format_cell(cell) for cell in row]
        if any(cells) and any(map(str.strip, cells)):
            yield line, cells


def _find_merged_areas(sheet: CalamineSheet) -> dict[int, list[MergedArea]]:
    """Return the first merged areas of a worksheet by first line, with lines counted from 1."""
    areas_by_line: dict[int, list[MergedArea]] = {}
    shift = sheet.start[1] if sheet.start else 0
    for (first, left), (last, right) in islice(sheet.merged_cell_ranges or (), _MAX_MERGED_AREAS):
        if left >= shift:
            area = (first + 1, left - shift, last + 1, min(right - shift, left - shift + MAX_SCORED_CELLS))
            areas_by_line.setdefault(first + 1, []).append(area)
    return areas_by_line


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
