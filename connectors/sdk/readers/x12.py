"""Reader of the segments of X12 interchanges (EDI), which also checks the envelopes of transaction sets."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from ..context import MIB
from ..errors import BadData
from ..tables import Report

X12ReportSink = Callable[[Report], None]

_READ_BYTES = 64 * 1024
_MAX_SEGMENT_BYTES = MIB
_ISA_ELEMENTS = 16
_BLANK_BYTES = b" \t\r\n\x00\x1a"
_MAX_ELEMENTS = 1_000
_FILE_START = re.compile(rb"(?:\xef\xbb\xbf)?[\s\x00]{0,64}ISA([^A-Za-z0-9\s])[^\r\n]{2}\1")
_NUMBER = re.compile(r"0*(\d{1,9})")
_INCOMPLETE = "the interchange does not end with IEA: the file is incomplete"


@dataclass(frozen=True, slots=True)
class Segment:
    """Segment of an X12 interchange.

    Attributes:
        number: Number of the segment in the file, from 1.
        name: Segment identifier, such as `LIN`.
        elements: Data elements after the identifier.
        component_separator: Character that separates the components of a composite element.
    """

    number: int
    name: str
    elements: tuple[str, ...]
    component_separator: str

    def get_element(self, position: int) -> str:
        """Return the element at a position (from 1, as in the standard) without outer spaces, or an empty text."""
        return self.elements[position - 1].strip() if position <= len(self.elements) else ""

    def get_first_component(self, position: int) -> str:
        """Return the first component of the composite element at a position, or an empty text."""
        return self.get_element(position).split(self.component_separator, 1)[0].strip()


@dataclass(slots=True)
class OpenEnvelopes:
    """Envelopes (interchange, functional group and transaction set) that are open at the current segment.

    Attributes:
        interchange: Control number of the interchange.
        group: Control number of the functional group.
        transaction: Control number of the transaction set.
        kind: Code of the transaction set, such as `846`; empty outside of a transaction set.
        segment_count: Number of segments of the transaction set so far.
        transaction_count: Number of transaction sets of the group so far.
        group_count: Number of groups of the interchange so far.
        open: Identifiers of the segments that opened the envelopes, such as `ISA`, from the outermost.
    """

    interchange: str = ""
    group: str = ""
    transaction: str = ""
    kind: str = ""
    segment_count: int = 0
    transaction_count: int = 0
    group_count: int = 0
    open: list[str] = field(default_factory=list)


def is_x12(head: bytes) -> bool:
    """Return whether a file that begins with the bytes `head` is an X12 interchange."""
    return _FILE_START.match(head) is not None


def iterate_transaction_segments(path: Path, report: X12ReportSink) -> Iterator[tuple[str, Segment]]:
    """Yield the segments of all transaction sets, from ST to SE, each with the code of its set such as `846`.

    Counts and control numbers of envelopes that do not match the segments are reported.

    Raises:
        BadData: If the file is incomplete, or an envelope starts or ends at a wrong position.
    """
    envelope = OpenEnvelopes()
    for segment in iterate_segments(path):
        if segment.name in _OPENING_BY_CLOSING:
            _close_envelope(envelope, segment, report)
            if segment.name == "SE":
                yield envelope.kind, segment
                envelope.kind = ""
        elif segment.name in _PARENTS_BY_OPENING:
            _open_envelope(envelope, segment)
            if segment.name == "ST":
                yield envelope.kind, segment
        elif envelope.kind:
            envelope.segment_count += 1
            yield envelope.kind, segment
    if envelope.open:
        raise BadData(_INCOMPLETE)


_PARENTS_BY_OPENING = {"ISA": (), "GS": ("ISA",), "ST": ("ISA", "GS")}
_OPENING_BY_CLOSING = {"IEA": "ISA", "GE": "GS", "SE": "ST"}


def _open_envelope(envelope: OpenEnvelopes, segment: Segment) -> None:
    parents = _PARENTS_BY_OPENING[segment.name]
    if tuple(envelope.open) != parents:
        if len(envelope.open) < len(parents):
            raise BadData(f"segment {segment.number}: {segment.name} must follow {parents[-1]}, which is missing")
        raise BadData(
            f"segment {segment.number}: {segment.name} is inside {envelope.open[-1]}, whose trailer is missing"
        )
    envelope.open.append(segment.name)
    if segment.name == "ISA":
        envelope.interchange, envelope.group_count = segment.get_element(13), 0
    elif segment.name == "GS":
        envelope.group, envelope.transaction_count = segment.get_element(6), 0
        envelope.group_count += 1
    else:
        envelope.kind, envelope.transaction, envelope.segment_count = segment.get_element(1), segment.get_element(2), 1
        envelope.transaction_count += 1


def _close_envelope(envelope: OpenEnvelopes, segment: Segment, report: X12ReportSink) -> None:
    if not envelope.open or envelope.open[-1] != _OPENING_BY_CLOSING[segment.name]:
        innermost = envelope.open[-1] if envelope.open else "none"
        raise BadData(f"segment {segment.number}: {segment.name} does not match the open envelope ({innermost})")
    envelope.open.pop()
    envelope.segment_count += 1
    counted, number, unit = {
        "SE": (envelope.segment_count, envelope.transaction, "segments"),
        "GE": (envelope.transaction_count, envelope.group, "transactions"),
        "IEA": (envelope.group_count, envelope.interchange, "groups"),
    }[segment.name]
    if _parse_count(segment.get_element(1)) != counted:
        report(
            Report(
                f"{segment.name} states {segment.get_element(1)[:20]} {unit}, but {counted} were received",
                segment.number,
            )
        )
    if segment.get_element(2) != number and _parse_count(segment.get_element(2)) != (_parse_count(number) or -1):
        fault = f"{segment.name} has the control number {segment.get_element(2)[:20]}, but its header has {number[:20]}"
        report(Report(fault, segment.number))


def _parse_count(text: str) -> int | None:
    found = _NUMBER.fullmatch(text)
    return int(found[1]) if found else None


def iterate_segments(path: Path) -> Iterator[Segment]:
    """Yield the segments of all interchanges in a file. Raises BadData."""
    with path.open("rb") as file:
        reader = _SegmentReader(file)
        number = 0
        while separators := reader.read_separators():
            element, component, terminator = separators
            ended = False
            while not ended:
                raw = reader.read_until(terminator)
                number += 1
                segment = _parse_segment(raw, number, element, component)
                ended = segment.name == "IEA"
                if segment.name:
                    yield segment
                else:
                    number -= 1


def _parse_segment(raw: bytes, number: int, element: bytes, component: bytes) -> Segment:
    if raw.count(element) > _MAX_ELEMENTS:
        raise BadData(f"segment {number} has more than {_MAX_ELEMENTS:,} elements")
    name, *elements = _decode_text(raw.strip(b"\r\n")).split(element.decode("latin-1"))
    return Segment(number, name.strip().upper(), tuple(elements), component.decode("latin-1"))


def _decode_text(raw: bytes) -> str:
    """Decode bytes as UTF-8 or, if they are not valid UTF-8, as Latin-1."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        return raw.decode("latin-1")


class _SegmentReader:
    """Buffered reader of the raw segments of a file; at most one segment is in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._buffer = b""
        self._at = 0

    def read_separators(self) -> tuple[bytes, bytes, bytes] | None:
        """Return the separators of elements, components and segments from the next ISA segment; None at the end."""
        # The separators have fixed positions, but are found by counting elements, because some partners omit padding.
        while not (left := self._buffer[self._at :].lstrip(_BLANK_BYTES)):
            self._at = len(self._buffer)
            if not self._read_more():
                return None
        self._buffer, self._at = left.removeprefix(b"\xef\xbb\xbf").lstrip(_BLANK_BYTES), 0
        while len(self._buffer) < 512 and self._read_more():
            pass
        if not self._buffer.startswith(b"ISA"):
            raise BadData("the data after the interchange is invalid: ISA is missing")
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

    def read_until(self, terminator: bytes) -> bytes:
        """Return the bytes before the next terminator, and consume both. Raises BadData if no terminator follows."""
        looked = self._at
        while (at := self._buffer.find(terminator, looked)) < 0:
            looked = len(self._buffer) - self._at
            if looked > _MAX_SEGMENT_BYTES:
                raise BadData(f"a segment is longer than {_MAX_SEGMENT_BYTES // MIB} MiB")
            if not self._read_more():
                raise BadData(_INCOMPLETE)
        found = self._buffer[self._at : at]
        self._at = at + 1
        return found

    def _read_more(self) -> bool:
        """Read more bytes into the buffer and remove the consumed bytes; return False at the end of the file."""
        chunk = self._file.read(_READ_BYTES)
        self._buffer = self._buffer[self._at :] + chunk
        self._at = 0
        return bool(chunk)
