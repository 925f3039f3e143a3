"""Reader of workbooks (XLSX, XLSB, XLS, ODS): displayed values only, never the targets of formulas or links."""

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

from connectors.csv.bounds import inspect, inspect_binary, inspect_open
from connectors.csv.headers import SCORED, SEARCHED, Plan, Span, plan
from connectors.csv.xls import inspect_old
from connectors.sdk.context import Context, Limits
from connectors.sdk.errors import BadData
from connectors.sdk.tables import Cell, Report, Row, Table

_LOOK = 200
_MOST_SPANS = 2_000
_WHOLE = 1e15


_INSPECT: dict[str, Callable[[Path, Limits], None]] = {
    "xlsx": inspect,
    "xlsb": inspect_binary,
    "ods": inspect_open,
    "xls": inspect_old,
}
"""Check of a workbook before it is opened, by format."""


def tables(ctx: Context, path: Path, kind: str = "xlsx") -> Iterator[Table]:
    """Yield one table for each visible worksheet with a table, in the workbook's order. Raises BadData.

    One worksheet at a time is in memory, bounded by limits.sheet_cells. Cells are text: whole numbers without a
    fraction (`101`), dates as ISO text, TRUE and FALSE as spreadsheets show them.
    """
    _INSPECT[kind](path, ctx.limits)
    with _readable("the workbook"):
        workbook = CalamineWorkbook.from_path(path)
    with workbook:
        shown = [
            sheet.name
            for sheet in workbook.sheets_metadata
            if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible
        ]
        found = False
        for name in shown:
            table = _table(ctx, workbook, name, alone=len(shown) == 1)
            if table is not None:
                found = True
                yield table
    if not found:
        raise BadData("no visible worksheet of the workbook holds a table")


def _table(ctx: Context, workbook: CalamineWorkbook, name: str, *, alone: bool) -> Table | None:
    with _readable(f'the worksheet "{name}"'):
        sheet = workbook.get_sheet_by_name(name)
    if sheet.start is None:
        return None
    records = _records(sheet)
    look = list(islice(records, _LOOK))
    found = plan([cells for _, cells in look], ctx.score_header, _spans(sheet, look))
    if found is None:
        return None
    if not alone and not _is_table(found, look):
        ctx.report(Report("the worksheet holds no table and is left out", sheet=name))
        return None
    if len(found.headers) > ctx.limits.columns:
        raise BadData(f"the worksheet has {len(found.headers)} columns; at most {ctx.limits.columns} are read")
    rows = _rows(chain(look[found.first :], records), found.headers)
    return Table(sheet=name, headers=found.headers, rows=rows)


@contextmanager
def _readable(part: str) -> Iterator[None]:
    """Convert the library's errors to BadData, including panics of its Rust code, which are not an Exception."""
    try:
        yield
    except PasswordError:
        raise BadData("the workbook is locked with a password; save it without one and send that") from None
    except BaseException as error:
        if isinstance(error, (CalamineError, OSError, ValueError)) or type(error).__name__ == "PanicException":
            raise BadData(f"{part} is damaged: it cannot be read") from None
        raise


def _is_table(found: Plan, look: list[tuple[int, list[str]]]) -> bool:
    """Return whether one of several worksheets is a table: a known header word, or three columns, and a row of data."""
    return found.first < len(look) and (found.known > 0 or len(found.headers) > 2)


def _records(sheet: CalamineSheet) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not blank, as text, with their number in the worksheet."""
    for line, row in enumerate(sheet.iter_rows(), start=1):
        cells = [cell if type(cell) is str else _text(cell) for cell in row]
        if any(cells) and any(map(str.strip, cells)):
            yield line, cells


def _rows(records: Iterator[tuple[int, list[str]]], headers: tuple[str, ...]) -> Iterator[Row]:
    width = len(headers)
    again = list(headers)
    for line, cells in records:
        row: list[Cell] = list(cells[:width])
        if len(row) < width:
            row.extend([""] * (width - len(row)))
        if row[0] == again[0] and row == again:
            continue
        yield line, row


def _spans(sheet: CalamineSheet, look: list[tuple[int, list[str]]]) -> list[Span]:
    """Return the merged areas in coordinates of `look`, which lacks blank rows and leading blank columns."""
    at = {line - 1: index for index, (line, _) in enumerate(look)}
    shift = sheet.start[1] if sheet.start else 0
    spans = (
        (at[first], left - shift, at.get(last, at[first]), min(right - shift, left - shift + SCORED))
        for (first, left), (last, right) in sheet.merged_cell_ranges or ()
        if at.get(first, _LOOK) <= SEARCHED and left >= shift
    )
    return list(islice(spans, _MOST_SPANS))


def _text(value: Any) -> str:
    """Convert a cell to exact text, without artefacts of binary floats."""
    return _TEXTS.get(type(value), str)(value)


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < _WHOLE:
        return str(int(value))
    return format(Decimal(repr(value)), "f")


def _moment(value: datetime) -> str:
    return value.date().isoformat() if value.time() == time() else value.isoformat(sep=" ", timespec="seconds")


_TEXTS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "TRUE" if value else "FALSE",
    float: _number,
    datetime: _moment,
    date: date.isoformat,
    time: time.isoformat,
}
