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
_PLAIN_CELL = re.compile(rb'<c r="([A-Z]{1,3}[0-9]{1,7})"(?: (?:[st]|[cv]m|ph)="[^"<>]*")*/?>')
_REFERENCE = re.compile(rb"""[\s"']r\s*=\s*["']\s*([A-Za-z]+[0-9]+)""")
_STEP = re.compile(rb"<(/?)" + _NAME + rb"(row|c)(?=[\s/>])([^<>]*)(>?)")
_ROW = re.compile(rb"row(?=[\s/>])([^<>]*)(>?)")
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = re.compile(rb"[0-9]+")
_ATTRIBUTE = re.compile(rb"""\s*([^\s=<>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
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
        self._hidden = self._hidden or b"<!" in piece
        plain = _PLAIN_CELL.findall(piece)
        if len(plain) == _cells_in(piece):
            self._refer(plain)
            self._walk_rows(piece)
        else:
            self._refer(_REFERENCE.findall(piece))
            self._walk(piece)
        self.shared += piece.count(b'"s"') + piece.count(b"'s'")
        self._merge(piece)

    def _refer(self, references: list[bytes]) -> None:
        """Take in references such as `AB12`."""
        if references:
            listed = b" ".join(references)
            self._columns.update(listed.translate(None, b"0123456789").upper().split())
            self._rows = max(self._rows, *map(_line, set(listed.translate(None, _LETTERS).split())))

    def _walk_rows(self, piece: bytes) -> None:
        """Follow the rows alone, where each cell says where it stands."""
        for found in _ROW.finditer(piece):
            start = found.start()
            before = piece[start - 1 : start]
            if before == b":":
                before = piece[piece.rfind(b"<", 0, start) :][:2][-1:]
            if before == b"/":
                self._next_row()
            elif before == b"<" or piece[start - 1 : start] == b":":
                self._row_begins(found[1], found[2])

    def _walk(self, piece: bytes) -> None:
        """Follow the rows and the cells."""
        for ending, name, attributes, closed in _STEP.findall(piece):
            if name == b"row":
                if ending:
                    self._next_row()
                else:
                    self._row_begins(attributes, closed)
            elif not closed:
                raise BadData(_ODD)
            elif not ending and not _references(attributes):
                self._loose_cell()

    def _row_begins(self, attributes: bytes, closed: bytes) -> None:
        if not closed:
            raise BadData(_ODD)
        # Never back: a row that a comment hides, or one out of order, is no reason to count less.
        self._row = max([self._row, *(line - 1 for line in _references(attributes))])
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


def _cells_in(piece: bytes) -> int:
    """How many cells begin in a piece, however they are written."""
    plain = piece.count(b"<c ")
    if b":c" in piece or piece.count(b"<c") != plain:
        return len(_CELL.findall(piece))
    return plain


def _references(attributes: bytes) -> list[int]:
    """The rows that a tag's attributes refer to. Raises BadData for attributes that two readers may take differently."""
    if not attributes or attributes.isspace():
        return []
    if _ATTRIBUTE.sub(b"", attributes).strip(b" \t\r\n/"):
        raise BadData(_ODD)
    given = [one or other for name, one, other in _ATTRIBUTE.findall(attributes) if name == b"r"]
    return [_line(found[0]) for value in given if (found := _DIGITS.search(value))]


def _line(digits: bytes) -> int:
    return int(digits) if len(digits) < 10 else _FARTHEST


def _number(letters: bytes) -> int:
    """The number of a column by its letters."""
    if len(letters) > 6:
        return _FARTHEST
    return reduce(lambda number, letter: number * 26 + letter - 64, letters, 0)
