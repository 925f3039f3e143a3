"""What reading a worksheet would take, told by its XML while that passes by.

It is told as the library reads it, which asks for no well-formed XML: a row or a cell without a reference stands behind
the one before it, and end tags move on whether or not something began. Where in doubt, more is counted than is there.
"""

import re
from functools import reduce

from connectors.sdk.errors import BadData

_NAME = rb"(?:[^\s<>/!?\"'=:]*:)?"
_START = re.compile(rb"<" + _NAME + rb"sheetData[\s/>]")
_CELL = re.compile(rb"<" + _NAME + rb"c[\s/>]")
_OTHER_CELL = re.compile(rb"<c[\t\r\n/>]|:c[\s/>]")
_PLAIN_CELL = re.compile(rb'<c r="[A-Z]{1,3}[0-9]')
_COLUMN = re.compile(rb"""[\s"']r\s*=\s*["']\s*([A-Za-z]+)[0-9]""")
_LINE = re.compile(rb"""[\s"']r\s*=\s*["']\s*[A-Za-z]+([0-9]{4,})""")
_REFERENCE = re.compile(rb"""[\s"']r\s*=\s*["']\s*[A-Za-z]*([0-9]+)""")
_STEP = re.compile(rb"<(/?)" + _NAME + rb"(row|c)(?=[\s/>])([^<>]*)(>?)")
_ROW = re.compile(rb"<(/?)" + _NAME + rb"(row)(?=[\s/>])([^<>]*)(>?)")
_ATTRIBUTE = re.compile(rb"""\s*[^\s=<>"']+\s*=\s*(?:"[^"]*"|'[^']*')""")
_MERGED = re.compile(rb"<" + _NAME + rb"mergeCell[\s/>]")
_MOST_MERGED = 100_000
_FEWEST_ROWS = 1_000
_FARTHEST = 10**9
_ODD = "a worksheet is written in a way that no spreadsheet program uses; save it anew and send that"


class Worksheet:
    """The rectangle around a worksheet's cells, counted from A1: none for a part that is no worksheet.

    `shared` counts cells whose text may stand among the shared ones. Pieces end where no tag is open.
    """

    def __init__(self) -> None:
        self.shared = 0
        self._found = False
        self._columns: set[bytes] = set()
        self._rows = _FEWEST_ROWS
        self._row = 0
        self._loose = 0
        self._widest = 0
        self._merged = 0
        self._hidden = False

    def look(self, piece: bytes) -> None:
        """Take in the next piece. Raises BadData for what no spreadsheet program writes."""
        if not self._found:
            start = _START.search(piece) if b"sheetData" in piece else None
            if start is None:
                return
            self._found = True
            piece = piece[start.start() :]
        if piece.rfind(b"<") > piece.rfind(b">"):
            raise BadData(_ODD)
        self._columns.update(_COLUMN.findall(piece))
        if lines := _LINE.findall(piece):
            self._rows = max(self._rows, *map(_line, set(lines)))
        self._hidden = self._hidden or b"<!" in piece
        self._walk(piece, _ROW if self._is_plain(piece) else _STEP)
        self.shared += piece.count(b'"s"') + piece.count(b"'s'")
        self._merge(piece)

    def _is_plain(self, piece: bytes) -> bool:
        """Whether every cell begins with its reference, as spreadsheet programs write it."""
        plain = len(_PLAIN_CELL.findall(piece))
        return plain == piece.count(b"<c ") and (not _OTHER_CELL.search(piece) or plain == len(_CELL.findall(piece)))

    def _walk(self, piece: bytes, steps: re.Pattern[bytes]) -> None:
        """Follow the rows, and the cells where their references do not say it all."""
        for ending, name, attributes, closed in steps.findall(piece):
            if not closed:
                raise BadData(_ODD)
            if ending:
                if name == b"row":
                    self._next_row()
                continue
            lines = _references(attributes)
            if name == b"c":
                if not lines:
                    self._loose_cell()
                continue
            # Never back: a row that a comment hides, or one out of order, is no reason to count less.
            self._row = max(self._row, *(line - 1 for line in lines)) if lines else self._row
            if attributes.endswith(b"/"):
                self._next_row()

    def _next_row(self) -> None:
        self._row += 1
        if not self._hidden:
            self._loose = 0

    def _loose_cell(self) -> None:
        """A cell without a reference stands behind the one before it."""
        self._loose += 1
        self._widest = max(self._widest, self._loose)
        self._rows = max(self._rows, self._row + 1)

    def _merge(self, piece: bytes) -> None:
        if b"mergeCell" in piece:
            self._merged += len(_MERGED.findall(piece))
        if self._merged > _MOST_MERGED:
            raise BadData(f"a worksheet has more than {_MOST_MERGED:,} merged areas; save it as CSV and send that")

    @property
    def cells(self) -> int:
        """Rows times columns, counted from the first cell A1."""
        return self._rows * (max(map(_number, self._columns), default=0) + self._widest)


def _references(attributes: bytes) -> list[int]:
    """The rows that a tag's attributes refer to. Raises BadData for attributes that two readers may take differently."""
    if not attributes or attributes.isspace():
        return []
    if _ATTRIBUTE.sub(b"", attributes).strip(b" \t\r\n/"):
        raise BadData(_ODD)
    return [_line(digits) for digits in _REFERENCE.findall(attributes)]


def _line(digits: bytes) -> int:
    return int(digits) if len(digits) < 10 else _FARTHEST


def _number(letters: bytes) -> int:
    """The number of a column by its letters."""
    if len(letters) > 6:
        return _FARTHEST
    return reduce(lambda number, letter: number * 26 + letter - 64, letters.upper(), 0)
