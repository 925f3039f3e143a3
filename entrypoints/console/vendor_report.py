"""Spreadsheet with the problems of a run for the vendor: the rows as the vendor sent them, with the problem cells marked."""

from collections import defaultdict
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from adapters.files.workbooks import FORMULA_STARTS, XlsxWorkbook, clean_text
from domain.ingestion.snapshot_results import FeedExcerpt
from domain.kernel.problems import Problem
from entrypoints.console.rendering import find_label
from entrypoints.console.translation import N_, gettext, use_language

_WIDTHS = range(10, 45)
_MAX_COMMENT_CHARS = 1_000


class _ReportWorkbook(XlsxWorkbook):
    """Workbook of texts, some of which are marked."""

    def __init__(self, target: BytesIO) -> None:
        super().__init__(target, in_memory=True)
        self.formats = {
            (is_marked, is_quoted): self.book.add_format(
                {"text_wrap": True, "valign": "top", "quote_prefix": is_quoted}
                | ({"bg_color": "#FFC7CE", "font_color": "#9C0006"} if is_marked else {})
            )
            for is_marked in (False, True)
            for is_quoted in (False, True)
        }

    def write(self, sheet: Any, row: int, column: int, text: str, *, is_marked: bool = False) -> None:
        """Write a text into a cell."""
        cleaned = clean_text(text)
        style = self.formats[is_marked, cleaned.startswith(FORMULA_STARTS)]
        if cleaned:
            sheet.write_string(row, column, cleaned, style)
        elif is_marked:
            sheet.write_blank(row, column, None, style)


def build_vendor_report(tables: Sequence[FeedExcerpt], problems: Sequence[Problem], language: str) -> bytes:
    """Return an XLSX file with the rows of problems and a list of the problems. Blocks; call it in a thread.

    Args:
        tables: The rows as the vendor sent them.
        problems: The problems.
        language: The language of the texts for the vendor.
    """
    use_language(language)
    target = BytesIO()
    workbook = _ReportWorkbook(target)
    for table in tables:
        _add_table(workbook, table, problems)
    _add_list(workbook, problems)
    workbook.book.close()
    return target.getvalue()


def _add_table(workbook: _ReportWorkbook, table: FeedExcerpt, problems: Sequence[Problem]) -> None:
    """Add a worksheet with the rows of a table: problem cells are coloured and have a comment."""
    place_by_header = {header: place for place, header in reversed(list(enumerate(table.headers)))}
    details: defaultdict[tuple[int, int], dict[str, None]] = defaultdict(dict)
    for problem in problems:
        if problem.sheet == table.sheet and problem.line is not None:
            # A problem without a visible column is marked at the number of its line.
            details[problem.line, place_by_header.get(problem.column or "", -1)][_describe(problem)] = None
    longest = [max(len(header), *(len(row[place]) if place < len(row) else 0 for _, row in table.rows)) for place, header in enumerate(table.headers)]  # fmt: skip
    widths = [min(max(width, _WIDTHS.start), _WIDTHS.stop) for width in (0, *longest)]
    headers = [gettext("Line"), *table.headers]
    sheet = workbook.add_sheet(table.sheet or gettext("Rows with problems"), headers, widths)
    for number, (line, cells) in enumerate(table.rows, start=1):
        for place in range(-1, len(table.headers)):
            text = str(line) if place < 0 else cells[place] if place < len(cells) else ""
            notes = details.get((line, place), {})
            workbook.write(sheet, number, place + 1, text, is_marked=bool(notes))
            if notes:
                comment = clean_text("\n".join(notes))[:_MAX_COMMENT_CHARS]
                sheet.write_comment(number, place + 1, comment, {"author": "Joinery", "x_scale": 2})


def _describe(problem: Problem) -> str:
    """Return the sentence for the vendor about a problem in the current language."""
    return find_label(problem.problem, "vendor_problems")


def _add_list(workbook: _ReportWorkbook, problems: Sequence[Problem]) -> None:
    """Add a worksheet that lists the problems with their places."""
    titles = map(
        gettext, (N_("Sheet"), N_("Line"), N_("Column"), N_("Item"), N_("Value"), N_("Problem"), N_("Details"))
    )
    sheet = workbook.add_sheet(gettext("Problems"), [*titles], [14, 10, 24, 18, 30, 44, 44])
    for number, problem in enumerate(problems, start=1):
        place = (problem.sheet or "", str(problem.line or ""), problem.column or "", problem.external_id or "")
        for column, text in enumerate((*place, problem.value or "", _describe(problem), problem.detail)):
            workbook.write(sheet, number, column, text)
