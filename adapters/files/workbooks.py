"""XLSX workbooks of product files and of reports for vendors. Texts are never interpreted as formulas, links or numbers."""

import re
from collections.abc import Sequence
from io import BytesIO
from typing import Any, Final

from xlsxwriter import Workbook

XLSX_TYPE: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
"""Characters with which a text begins that some programs would read as a formula."""
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffe\uffff]")
_FORBIDDEN_IN_NAMES = re.compile(r"[\[\]:*?/\\]")
_MAX_NAME_CHARS = 31


class XlsxWorkbook:
    """Workbook whose worksheets have unique names and a heading that stays visible when the rows are scrolled.

    Args:
        target: Path or buffer of the file.
        **options: Further options of the library.
    """

    def __init__(self, target: str | BytesIO, **options: Any) -> None:
        self.book = Workbook(target, options | {"strings_to_formulas": False, "strings_to_urls": False})
        self._heading = self.book.add_format({"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"})
        self._names: set[str] = {"history"}  # a reserved name

    def add_sheet(self, name: str, headings: Sequence[str], widths: Sequence[int]) -> Any:
        """Add a worksheet with a heading; characters that names of worksheets cannot have are replaced in the name."""
        sheet = self.book.add_worksheet(self._choose_name(name))
        sheet.freeze_panes(1, 0)
        for column, (heading, width) in enumerate(zip(headings, widths, strict=True)):
            sheet.set_column(column, column, width)
            sheet.write_string(0, column, clean_text(heading), self._heading)
        return sheet

    def _choose_name(self, name: str) -> str:
        """Return a valid name of a worksheet that no other one has."""
        plain = _FORBIDDEN_IN_NAMES.sub(" ", clean_text(name)).strip(" '")[:_MAX_NAME_CHARS].strip(" '") or "1"
        chosen, number = plain, 2
        while chosen.casefold() in self._names:
            suffix = f" {number}"
            chosen, number = f"{plain[: _MAX_NAME_CHARS - len(suffix)]}{suffix}", number + 1
        self._names.add(chosen.casefold())
        return chosen


def clean_text(text: str) -> str:
    """Return a text without characters that XML does not permit."""
    return _CONTROL_CHARACTERS.sub(" ", text)
