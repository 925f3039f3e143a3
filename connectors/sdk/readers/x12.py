"""Reader of X12 interchanges (EDI): separators from the first segment, checked envelopes, segments by transaction."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ..context import MIB
from ..errors import BadData
from ..tables import Report

Tell = Callable[[Report], None]

_READ = 64 * 1024
_LONGEST_SEGMENT = MIB
_ISA_ELEMENTS = 16
_BLANK = b" \t\r\n\x00\x1a"
_MOST_ELEMENTS = 1_000
_HEAD = re.compile(rb"(?:\xef\xbb\xbf)?[\s\x00]{0,64}ISA([^A-Za-z0-9\s])[^\r\n]{2}\1")
_NUMBER = re.compile(r"0*(\d{1,9})")
_CUT_OFF = "the interchange does not end with IEA: the file is cut off"


@dataclass(frozen=True, slots=True)
class Segment:
    """Segment: its number in the file from 1, its name, its elements (`at(1)` is the first)."""

    number: int
    name: str
    elements: tuple[str, ...]
    component: str

    def at(self, place: int) -> str:
        """Return the element with this number in the standard, stripped, or '' if it is absent."""
        return self.elements[place - 1].strip() if place <= len(self.elements) else ""

    def first(self, place: int) -> str:
        """Return the first component of a composite element."""
        return self.at(place).split(self.component, 1)[0].strip()


@dataclass(slots=True)
class Envelope:
    """State of the open envelopes: control numbers, the transaction's kind, and counts."""

    interchange: str = ""
    group: str = ""
    transaction: str = ""
    kind: str = ""
    segments: int = 0
    transactions: int = 0
    groups: int = 0
    open: list[str] = field(default_factory=list)


def is_x12(head: bytes) -> bool:
    """Return whether a file begins as an X12 interchange."""
    return _HEAD.match(head) is not None


def transactions(path: Path, tell: Tell) -> Iterator[tuple[str, Segment]]:
    """Yield every segment inside a transaction, ST and SE included, with the transaction's kind (`846`).

    Differences between the envelopes' counts and numbers and the segments are reported. Raises BadData for a file that
    is cut off, or with a misplaced envelope.
    """
    envelope = Envelope()
    for segment in segments(path):
        if segment.name in _ENDS:
            _close(envelope, segment, tell)
            if segment.name == "SE":
                yield envelope.kind, segment
                envelope.kind = ""
        elif segment.name in _BEGINS:
            _begin(envelope, segment)
            if segment.name == "ST":
                yield envelope.kind, segment
        elif envelope.kind:
            envelope.segments += 1
            yield envelope.kind, segment
    if envelope.open:
        raise BadData(_CUT_OFF)


_BEGINS = {"ISA": (), "GS": ("ISA",), "ST": ("ISA", "GS")}
_ENDS = {"IEA": "ISA", "GE": "GS", "SE": "ST"}


def _begin(envelope: Envelope, segment: Segment) -> None:
    if tuple(envelope.open) != _BEGINS[segment.name]:
        inside = "inside " + envelope.open[-1] if envelope.open else "outside of any envelope"
        raise BadData(f"segment {segment.number}: {segment.name} is {inside}, whose end is missing")
    envelope.open.append(segment.name)
    if segment.name == "ISA":
        envelope.interchange, envelope.groups = segment.at(13), 0
    elif segment.name == "GS":
        envelope.group, envelope.transactions = segment.at(6), 0
        envelope.groups += 1
    else:
        envelope.kind, envelope.transaction, envelope.segments = segment.at(1), segment.at(2), 1
        envelope.transactions += 1


def _close(envelope: Envelope, segment: Segment, tell: Tell) -> None:
    if not envelope.open or envelope.open[-1] != _ENDS[segment.name]:
        raise BadData(f"segment {segment.number}: {segment.name} has no matching start")
    envelope.open.pop()
    envelope.segments += 1
    counted, number, unit = {
        "SE": (envelope.segments, envelope.transaction, "segments"),
        "GE": (envelope.transactions, envelope.group, "transactions"),
        "IEA": (envelope.groups, envelope.interchange, "groups"),
    }[segment.name]
    if _count(segment.at(1)) != counted:
        tell(Report(f"{segment.name} states {segment.at(1)[:20]} {unit}, {counted} were received", segment.number))
    if segment.at(2) != number and _count(segment.at(2)) != (_count(number) or -1):
        fault = f"{segment.name} has the control number {segment.at(2)[:20]}, but what it ends began with {number[:20]}"
        tell(Report(fault, segment.number))


def _count(text: str) -> int | None:
    found = _NUMBER.fullmatch(text)
    return int(found[1]) if found else None


def segments(path: Path) -> Iterator[Segment]:
    """Yield the segments of all interchanges in a file, each interchange by its own separators. Raises BadData."""
    with path.open("rb") as file:
        pieces = _Pieces(file)
        number = 0
        while head := pieces.interchange():
            element, component, terminator = head
            ended = False
            while not ended:
                raw = pieces.until(terminator)
                number += 1
                segment = _segment(raw, number, element, component)
                ended = segment.name == "IEA"
                if segment.name:
                    yield segment
                else:
                    number -= 1


def _segment(raw: bytes, number: int, element: bytes, component: bytes) -> Segment:
    if raw.count(element) > _MOST_ELEMENTS:
        raise BadData(f"segment {number} has more than {_MOST_ELEMENTS:,} elements")
    name, *elements = _text(raw.strip(b"\r\n")).split(element.decode("latin-1"))
    return Segment(number, name.strip().upper(), tuple(elements), component.decode("latin-1"))


def _text(raw: bytes) -> str:
    """Decode UTF-8, else Latin-1, in which every byte is valid."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


class _Pieces:
    """Buffered reader of a file from one separator to the next; it buffers at most one segment."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._buffer = b""
        self._at = 0

    def interchange(self) -> tuple[bytes, bytes, bytes] | None:
        """Return the separators of elements, components and segments by the ISA that begins here, or None at the end.

        The separators have fixed positions, but are found by counting elements, as some partners omit the padding.
        """
        while not (left := self._buffer[self._at :].lstrip(_BLANK)):
            self._at = len(self._buffer)
            if not self._more():
                return None
        self._buffer, self._at = left.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK), 0
        while len(self._buffer) < 512 and self._more():
            pass
        if not self._buffer.startswith(b"ISA"):
            raise BadData("what follows the interchange is none: ISA is missing")
        element = self._buffer[3:4]
        at = 3
        for _ in range(_ISA_ELEMENTS - 1):
            at = self._buffer.find(element, at + 1, 512)
            if at < 0:
                raise BadData("the interchange's first segment (ISA) is damaged")
        component, terminator = self._buffer[at + 1 : at + 2], self._buffer[at + 2 : at + 3]
        if terminator == b"\r" and self._buffer[at + 3 : at + 4] == b"\n":
            terminator = b"\n"
        if not terminator or terminator.isalnum() or terminator in {element, component}:
            raise BadData("the interchange's first segment (ISA) is damaged")
        return element, component, terminator

    def until(self, terminator: bytes) -> bytes:
        """Return the bytes before the next terminator, and consume it. Raises BadData if none follows."""
        looked = self._at
        while (at := self._buffer.find(terminator, looked)) < 0:
            looked = len(self._buffer) - self._at
            if looked > _LONGEST_SEGMENT:
                raise BadData(f"a segment is longer than {_LONGEST_SEGMENT // MIB} MiB")
            if not self._more():
                raise BadData(_CUT_OFF)
        found = self._buffer[self._at : at]
        self._at = at + 1
        return found

    def _more(self) -> bool:
        """Read more bytes and drop the consumed ones."""
        piece = self._file.read(_READ)
        self._buffer = self._buffer[self._at :] + piece
        self._at = 0
        return bool(piece)
