"""The texts that a workbook keeps once and its cells name by number: how many and how long, told while their XML passes by."""

import re
from array import array
from itertools import pairwise

from connectors.sdk.errors import BadData

_NAME = rb"(?:[^\s<>/!?\"'=:]*:)?"
_TEXTS = re.compile(rb"<" + _NAME + rb"sst[\s/>]")
_ENTRY = re.compile(rb"<" + _NAME + rb"si[\s/>]")
_HELD = re.compile(rb"<" + _NAME + rb"[tr][\s/>]")
_UNIQUE = re.compile(rb"""[\s"']uniqueCount\s*=\s*["']\s*\+?0*([0-9]{1,12})""")
_SHOWN = re.compile(rb"""<(?:[^\s<>/!?"'=:]*:)?(?:(c)[\s/>]|v(?:\s[^<>]*)?>([^<]*))|=\s*["'](s)["']""")


class SharedTexts:
    """The shared texts of a workbook: `longest` in bytes of XML. At most `most` are let through.

    Pieces end where no tag is open.
    """

    def __init__(self, most: int) -> None:
        self.longest = 0
        self._most = most
        self._lengths = array("I")
        self._certain = True
        self._parts = 0
        self._found = False
        self._open = bytearray()

    def look(self, piece: bytes) -> None:
        """Take in the next piece of a part. Raises BadData for more texts than a worksheet could show."""
        if not self._found:
            start = _TEXTS.search(piece) if b"sst" in piece else None
            if start is None:
                return
            self._found = True
            self._parts += 1
            piece = piece[start.start() :]
            # The reader makes room for as many as are stated, before it has seen one.
            if max(map(int, _UNIQUE.findall(piece)), default=0) > self._most:
                raise BadData(f"the workbook states more than {self._most:,} texts; save it as CSV and send that")
        # A comment may hold what looks like a text, and hide which number each of them has.
        self._certain = self._certain and b"<!" not in piece and self._parts == 1
        starts = [found.start() for found in _ENTRY.finditer(piece)]
        self._open += piece[: starts[0]] if starts else piece
        if starts:
            self._close()
            for begun, over in pairwise(starts):
                self._note(piece[begun:over])
            self._open = bytearray(piece[starts[-1] :])
        if len(self._lengths) > self._most:
            raise BadData(f"the workbook has more than {self._most:,} texts; save it as CSV and send that")

    def end(self) -> None:
        """The part is over."""
        self._close()
        self._found = False

    def _close(self) -> None:
        if self._open:
            self._note(bytes(self._open))
            self._open.clear()

    def _note(self, entry: bytes) -> None:
        """Count a text; one without anything in it has no number."""
        if entry.find(b"<t>") >= 0 or _HELD.search(entry):
            self._lengths.append(len(entry))
            self.longest = max(self.longest, len(entry))

    def shown_in(self, piece: bytes) -> int:
        """The bytes of the texts that the cells in a piece of a worksheet show. Where in doubt, each shows the longest."""
        size, shares, most = 0, False, len(self._lengths)
        certain = self._certain and b"<!" not in piece
        for cell, value, shared in _SHOWN.findall(piece):
            if cell:
                shares = False
            elif shared:
                shares = True
            elif shares:
                place = int(value) if value.isdigit() and len(value) < 10 else most
                size += self._lengths[place] if certain and place < most else self.longest
        return size
