"""Keys of the rows of a table, and rows that are no items: headings, notes and totals."""

import re
from collections.abc import Sequence
from typing import Final

from domain.catalogue.model import Stream
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.data import load_patterns
from domain.ingestion.model import Cell, Row
from domain.ingestion.values.text import ParseFault, convert_to_text, quote_text
from domain.kernel.problems import ProblemKind

_MAX_TOTAL_CHARS = 60
_MIN_USUAL_VALUES = 3
_HEADING_PART = 3
_LETTERS = re.compile(r"[^\W\d_]+")
_DIGITS = re.compile(r"\d+")
_NO_KEY: Final = ParseFault(ProblemKind.MISSING, "The row has no SKU, key, GTIN or MPN.")


def is_total_label(key: str) -> bool:
    """Return whether a key is the label of a row of totals (`Subtotal`, `Grand Total:`) instead of the key of an item."""
    # Keys of items have digits, as a rule at their end.
    is_short = not key[-1:].isdecimal() and len(key) <= _MAX_TOTAL_CHARS
    return is_short and load_patterns("rows")["sum"].fullmatch(key.strip(" :*=-")) is not None


class RowKeys:
    """Reader of the keys of a table's rows.

    In a table whose fuller rows have three or more values, a row with a single value is a heading or a note, unless the
    value is a code in the form of the table's other keys. In a table with a column of keys, so is a row with at most a third
    of the usual number of values whose key consists of several words.
    """

    def __init__(self, plan: ReadPlan, stream: Stream, first_rows: Sequence[Row]) -> None:
        self._read_key = plan.read_product_key if stream == Stream.CATALOGUE else plan.read_variant_key
        counts = [_count_values(cells) for _, cells in first_rows]
        # Up to three quarters of the first rows can be headings.
        usual = sorted(counts)[len(counts) * 3 // 4] if counts else 0
        part = usual // _HEADING_PART if plan.has_key_column else 1
        self._max_heading_values = max(part, 1) if usual >= _MIN_USUAL_VALUES else 0
        rows = [cells for (_, cells), count in zip(first_rows, counts, strict=True) if count > self._max_heading_values]
        self._forms = {_find_form(key) for cells in rows if (key := self._read_key(cells)) is not None}

    def read_key(self, cells: Sequence[Cell]) -> str | ParseFault:
        """Return the key of a row, or the reason why the row is no item."""
        key = self._read_key(cells)
        count = _count_values(cells) if self._max_heading_values else 0
        has_few_values = self._max_heading_values > 0 and count <= self._max_heading_values
        if key is not None and not has_few_values and not is_total_label(key):
            return key
        if (total := next(filter(is_total_label, map(convert_to_text, cells)), None)) is not None:
            detail = f"The row of {quote_text(total)} is a total of other rows, not an item."
            return ParseFault(ProblemKind.UNREADABLE, detail)
        if not has_few_values:
            return _NO_KEY
        if key is not None and self._is_code(key, is_alone=count == 1):
            return key
        text = " ".join(filter(None, map(convert_to_text, cells)))
        detail = f"The row with only {quote_text(text)} is a heading or a note, not an item."
        return ParseFault(ProblemKind.UNREADABLE, detail)

    def _is_code(self, key: str, *, is_alone: bool) -> bool:
        """Return whether a key is a code rather than words; `is_alone` states whether it is the only value of its row."""
        if is_alone:
            return _DIGITS.search(key) is not None and _find_form(key) in self._forms
        return " " not in key or _find_form(key) in self._forms


def _count_values(cells: Sequence[Cell]) -> int:
    return sum(1 for cell in cells if cell is not None and cell != "" and str(cell).strip())


def _find_form(key: str) -> str:
    """Return the form of a key, in which each group of letters is `A` and each group of digits is `0`."""
    return _DIGITS.sub("0", _LETTERS.sub("A", key))
