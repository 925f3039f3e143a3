"""Checks that reject workbooks which would exhaust memory, because of zip bombs, distant cells or repeated long texts.

The memory for reading a worksheet is estimated from a stream of its XML, as the spreadsheet library would read the XML.
The library accepts malformed XML: a row or a cell without a reference follows the previous one, and end tags advance
the position without a start tag. In doubt, the estimate is too high. A part of a workbook is a file in its zip archive.
"""

import re
import zipfile
from array import array
from collections import deque
from collections.abc import Iterator
from functools import reduce
from itertools import pairwise
from pathlib import Path
from xml.parsers import expat

from connectors.csv.archives import inflate_entry, open_archive
from connectors.sdk.context import MIB, Limits
from connectors.sdk.errors import BadData

# Number and length of the shared strings, to which cells refer by index, from a stream of their XML.


_PREFIX = rb"(?:[^\s<>/!?\"'=:]*:)?"
_SHARED_STRINGS_TAG = re.compile(b"<" + _PREFIX + rb"sst[\s/>]")
_TEXT_TAG = re.compile(b"<" + _PREFIX + rb"si[\s/>]")
_TEXT_CONTENT_TAG = re.compile(b"<" + _PREFIX + rb"[tr][\s/>]")
_UNIQUE_COUNT = re.compile(rb"""[\s"']uniqueCount\s*=\s*["']\s*\+?0*([0-9]{1,12})""")
_CELL_VALUE = re.compile(rb"""<(?:[^\s<>/!?"'=:]*:)?(?:(c)[\s/>]|v(?:\s[^<>]*)?>([^<]*))|=\s*["'](s)["']""")


class SharedStrings:
    """Lengths of a workbook's shared strings, to which cells refer by index.

    Args:
        max_strings: Maximum number of shared strings; more raise BadData.

    Attributes:
        max_length: Length of the longest shared string in bytes of XML.
    """

    def __init__(self, max_strings: int) -> None:
        self.max_length = 0
        self._max_texts = max_strings
        self._lengths = array("I")
        self._has_certain_indices = True
        self._part_count = 0
        self._has_begun = False
        self._unfinished_entry = bytearray()

    def process_chunk(self, chunk: bytes) -> None:
        """Process the next chunk of XML, which ends outside of a tag. Raises BadData for too many shared strings."""
        if not self._has_begun:
            start = _SHARED_STRINGS_TAG.search(chunk) if b"sst" in chunk else None
            if start is None:
                return
            self._has_begun = True
            self._part_count += 1
            chunk = chunk[start.start() :]
            # The reader allocates memory for the stated number before it reads a text.
            if max(map(int, _UNIQUE_COUNT.findall(chunk)), default=0) > self._max_texts:
                raise BadData(
                    f"the workbook declares more than {self._max_texts:,} shared strings (texts of cells); "
                    "save it as CSV and send that file"
                )
        # A comment may contain what looks like a text, which makes the indices uncertain.
        self._has_certain_indices = self._has_certain_indices and b"<!" not in chunk and self._part_count == 1
        starts = [found.start() for found in _TEXT_TAG.finditer(chunk)]
        self._unfinished_entry += chunk[: starts[0]] if starts else chunk
        if starts:
            self._finish_entry()
            for start_at, end_at in pairwise(starts):
                self._count_entry(chunk[start_at:end_at])
            self._unfinished_entry = bytearray(chunk[starts[-1] :])
        if len(self._lengths) > self._max_texts:
            raise BadData(
                f"the workbook has more than {self._max_texts:,} shared strings (texts of cells); "
                "save it as CSV and send that file"
            )

    def finish_part(self) -> None:
        """Finish the current part of the workbook, before chunks of another part are processed."""
        self._finish_entry()
        self._has_begun = False

    def _finish_entry(self) -> None:
        if self._unfinished_entry:
            self._count_entry(bytes(self._unfinished_entry))
            self._unfinished_entry.clear()

    def _count_entry(self, entry: bytes) -> None:
        """Record the length of an entry of the table of shared strings, unless the entry has no text."""
        # The library gives an entry without text no index.
        if entry.find(b"<t>") >= 0 or _TEXT_CONTENT_TAG.search(entry):
            self._lengths.append(len(entry))
            self.max_length = max(self.max_length, len(entry))

    def measure_referenced_bytes(self, chunk: bytes) -> int:
        """Return the total length in bytes of the shared strings to which the cells in a chunk of XML refer.

        A reference whose target is uncertain counts as one to the longest shared string.
        """
        size, is_shared, count = 0, False, len(self._lengths)
        certain = self._has_certain_indices and b"<!" not in chunk
        for cell, value, shared in _CELL_VALUE.findall(chunk):
            if cell:
                is_shared = False
            elif shared:
                is_shared = True
            elif is_shared:
                index = int(value) if value.isdigit() and len(value) < 10 else count
                size += self._lengths[index] if certain and index < count else self.max_length
        return size


# Number of cells of a worksheet, estimated from a stream of its XML.


_SHEET_DATA_TAG = re.compile(b"<" + _PREFIX + rb"sheetData[\s/>]")
_CELL = re.compile(b"<" + _PREFIX + rb"c[\s/>]")
_PLAIN_CELL = re.compile(rb'<c r="([A-Z]{1,3}[0-9]{1,7})"(?: (?:[st]|[cv]m|ph)="[^"<>]*")*/?>')
_REFERENCE = re.compile(rb"""[\s"']r\s*=\s*["']\s*([A-Za-z]+[0-9]+)""")
_ROW_OR_CELL_TAG = re.compile(rb"<(/?)" + _PREFIX + rb"(row|c)(?=[\s/>])([^<>]*)(>?)")
_ROW = re.compile(rb"row(?=[\s/>])([^<>]*)(>?)")
_LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_DIGITS = re.compile(rb"[0-9]+")
_ATTRIBUTE = re.compile(rb"""\s*([^\s=<>"']+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
_MERGED_CELL_TAG = re.compile(b"<" + _PREFIX + rb"mergeCell[\s/>]")
_MAX_MERGED_CELLS = 100_000
_MIN_ROWS = 1_000
_MAX_POSITION = 10**9
_UNSUPPORTED = "a worksheet has an unsupported structure; save it again in a spreadsheet program and send that file"


class WorksheetExtent:
    """Counter of the cells in the rectangle from A1 to a worksheet's last row and column.

    Attributes:
        shared_string_cells: Number of cells that may refer to a shared string.
    """

    def __init__(self) -> None:
        self.shared_string_cells = 0
        self._has_sheet_data = False
        self._columns: set[bytes] = set()
        self._rows = _MIN_ROWS
        self._row = 0
        self._cells_without_reference = 0
        self._max_cells_without_reference = 0
        self._merged_cell_count = 0
        self._has_comments = False

    def process_chunk(self, chunk: bytes) -> None:
        """Process the next chunk of XML, which ends outside of a tag. Raises BadData for an unsupported structure."""
        if not self._has_sheet_data:
            start = _SHEET_DATA_TAG.search(chunk) if b"sheetData" in chunk else None
            if start is None:
                return
            self._has_sheet_data = True
            chunk = chunk[start.start() :]
        if chunk.rfind(b"<") > chunk.rfind(b">"):
            raise BadData(_UNSUPPORTED)
        self._has_comments = self._has_comments or b"<!" in chunk
        plain = _PLAIN_CELL.findall(chunk)
        if len(plain) == _count_cells(chunk):
            self._extend(plain)
            self._track_rows(chunk)
        else:
            self._extend(_REFERENCE.findall(chunk))
            self._track_rows_and_cells(chunk)
        self.shared_string_cells += chunk.count(b'"s"') + chunk.count(b"'s'")
        self._count_merged_cells(chunk)

    def _extend(self, references: list[bytes]) -> None:
        """Extend the rectangle so that it contains cells with these references, such as `AB12`."""
        if references:
            joined = b" ".join(references)
            self._columns.update(joined.translate(None, b"0123456789").upper().split())
            self._rows = max(self._rows, *map(_parse_row_number, set(joined.translate(None, _LETTERS).split())))

    def _track_rows(self, chunk: bytes) -> None:
        """Update the number of the current row from a chunk in which every cell has a reference."""
        for found in _ROW.finditer(chunk):
            start = found.start()
            before = chunk[start - 1 : start]
            if before == b":":
                before = chunk[chunk.rfind(b"<", 0, start) :][:2][-1:]
            if before == b"/":
                self._advance_row()
            elif before == b"<" or chunk[start - 1 : start] == b":":
                self._begin_row(found[1], found[2])

    def _track_rows_and_cells(self, chunk: bytes) -> None:
        """Update the number of the current row, and count the cells without a reference in a chunk."""
        for ending, name, attributes, closed in _ROW_OR_CELL_TAG.findall(chunk):
            if name == b"row":
                if ending:
                    self._advance_row()
                else:
                    self._begin_row(attributes, closed)
            elif not closed:
                raise BadData(_UNSUPPORTED)
            elif not ending and not _read_row_numbers(attributes):
                self._count_cell_without_reference()

    def _begin_row(self, attributes: bytes, closed: bytes) -> None:
        if not closed:
            raise BadData(_UNSUPPORTED)
        # Never decreased: a row in a comment, or one out of order, must not reduce the count.
        self._row = max([self._row, *(line - 1 for line in _read_row_numbers(attributes))])
        if attributes.endswith(b"/"):
            self._advance_row()

    def _advance_row(self) -> None:
        self._row += 1
        if not self._has_comments:
            self._cells_without_reference = 0

    def _count_cell_without_reference(self) -> None:
        """Count a cell without a reference, which follows the previous cell of its row."""
        self._cells_without_reference += 1
        self._max_cells_without_reference = max(self._max_cells_without_reference, self._cells_without_reference)
        self._rows = max(self._rows, self._row + 1)

    def _count_merged_cells(self, chunk: bytes) -> None:
        if b"mergeCell" in chunk:
            self._merged_cell_count += len(_MERGED_CELL_TAG.findall(chunk))
        if self._merged_cell_count > _MAX_MERGED_CELLS:
            raise BadData(
                f"a worksheet has more than {_MAX_MERGED_CELLS:,} merged areas; save it as CSV and send that file"
            )

    @property
    def cell_count(self) -> int:
        """Number of cells in the rectangle, which is rows times columns."""
        return self._rows * (
            max(map(_parse_column_letters, self._columns), default=0) + self._max_cells_without_reference
        )


def _count_cells(chunk: bytes) -> int:
    """Return the number of start tags of cells in a chunk of XML, with or without references."""
    plain = chunk.count(b"<c ")
    if b":c" in chunk or chunk.count(b"<c") != plain:
        return len(_CELL.findall(chunk))
    return plain


def _read_row_numbers(attributes: bytes) -> list[int]:
    """Return the row numbers in a tag's attributes `r`. Raises BadData for malformed attributes."""
    if not attributes or attributes.isspace():
        return []
    if _ATTRIBUTE.sub(b"", attributes).strip(b" \t\r\n/"):
        raise BadData(_UNSUPPORTED)
    references = [one or other for name, one, other in _ATTRIBUTE.findall(attributes) if name == b"r"]
    return [_parse_row_number(found[0]) for reference in references if (found := _DIGITS.search(reference))]


def _parse_row_number(digits: bytes) -> int:
    return int(digits) if len(digits) < 10 else _MAX_POSITION


def _parse_column_letters(letters: bytes) -> int:
    """Return the number of a column from its letters, such as 28 for `AB`."""
    if len(letters) > 6:
        return _MAX_POSITION
    return reduce(lambda number, letter: number * 26 + letter - 64, letters, 0)


# Number of cells of a binary (XLSB) or OpenDocument (ODS) workbook, checked before the workbook is opened.


DAMAGED_WORKBOOK = "the workbook is damaged: it cannot be read"
_ROW_RECORD = 0
"""Kind of the record of a row in a binary worksheet (MS-XLSB 2.3.1)."""
_CELL_RECORDS = range(1, 12)
"""Kinds of the records of cells in a binary worksheet, one for each type of value."""
_SHEET_DATA_RECORD = 145
"""Kind of the record that starts the rows of a binary worksheet."""
_ODS_TABLE = "urn:oasis:names:tc:opendocument:xmlns:table:1.0 "
_ODS_CELLS = frozenset({f"{_ODS_TABLE}table-cell", f"{_ODS_TABLE}covered-table-cell"})
_MAX_XML_TAG_BYTES = MIB


def check_xlsb(path: Path, limits: Limits) -> None:
    """Check an XLSB workbook before it is opened. Raises BadData if it would take too much memory or time to read."""
    for entry, chunks in _iterate_parts(path, limits):
        if entry.filename.lower().endswith(".bin"):
            _check_cell_count(_measure_binary_sheet(chunks), limits)
        deque(chunks, maxlen=0)


def check_ods(path: Path, limits: Limits) -> None:
    """Check an ODS workbook before it is opened. Raises BadData if it would take too much memory or time to read."""
    for entry, chunks in _iterate_parts(path, limits):
        if entry.filename.lower() == "content.xml":
            _OdsCellCounter(limits).check_content(chunks)
        deque(chunks, maxlen=0)


def _iterate_parts(path: Path, limits: Limits) -> Iterator[tuple[zipfile.ZipInfo, Iterator[bytes]]]:
    """Yield the parts of a workbook, each with its unpacked bytes in chunks.

    Raises BadData if all parts together have more than `limits.unpacked_bytes`.
    """
    remaining = limits.unpacked_bytes

    def count_bytes(chunks: Iterator[bytes]) -> Iterator[bytes]:
        nonlocal remaining
        for chunk in chunks:
            remaining -= len(chunk)
            yield chunk

    with path.open("rb") as file, open_archive(path) as archive:
        for entry in archive.infolist():
            yield entry, count_bytes(inflate_entry(file, entry, remaining))


def _check_cell_count(cells: int, limits: Limits) -> None:
    if cells > limits.sheet_cells:
        fault = f"a worksheet spans {cells:,} cells; at most {limits.sheet_cells:,} are supported"
        raise BadData(f"{fault}; save it as CSV and send that file")


def _measure_binary_sheet(chunks: Iterator[bytes]) -> int:
    """Return the number of rows times columns of a binary worksheet; 0 for a part that is not a worksheet."""
    rows = columns = 0
    is_sheet = False
    for kind, start in _iterate_records(chunks):
        if kind == _SHEET_DATA_RECORD:
            is_sheet = True
        elif kind == _ROW_RECORD and len(start) == 4:
            rows = max(rows, int.from_bytes(start, "little") + 1)
        elif kind in _CELL_RECORDS and len(start) == 4:
            columns = max(columns, int.from_bytes(start, "little") + 1)
    return rows * columns if is_sheet else 0


def _iterate_records(chunks: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the kind of each record of a binary worksheet, and the first four bytes of the record's content."""
    buffer, skip = b"", 0
    for chunk in chunks:
        buffer, at = buffer + chunk[skip:], 0
        skip = max(0, skip - len(chunk))
        while len(buffer) - at >= 10:
            kind, size, begin = _parse_record_header(buffer, at)
            yield kind, buffer[begin : begin + min(size, 4)]
            at = begin + size
        if at > len(buffer):
            skip += at - len(buffer)
        buffer = buffer[at:]
    while buffer:
        kind, size, begin = _parse_record_header(buffer + b"\0" * 8, 0)
        yield kind, buffer[begin : begin + min(size, 4)]
        buffer = buffer[begin + size :]


def _parse_record_header(data: bytes, at: int) -> tuple[int, int, int]:
    """Return the kind, the size and the content's offset of the record that starts at the offset `at`."""
    # Kind and size are encoded in bytes of seven bits each.
    kind, at = data[at] & 0x7F | (data[at + 1] & 0x7F) << 7 if data[at] & 0x80 else data[at], at + 1 + (data[at] >> 7)
    size = 0
    for index in range(4):
        byte = data[at]
        at += 1
        size |= (byte & 0x7F) << 7 * index
        if not byte & 0x80:
            break
    return kind, size, at


class _OdsCellCounter:
    """Parser handlers that count the cells and characters of an ODS workbook and reject one with too many.

    A cell or row with a repetition counts as many times as it is repeated. Blank cells at the end of a row, and blank
    rows at the end of a worksheet, do not count.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._text_left = limits.unpacked_bytes
        self._rows = self._row = self._width = self._column = self._last_filled_column = 0
        self._row_repeats = self._cell_repeats = 1
        self._in_cell = False
        self._text = 0
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.StartDoctypeDeclHandler = _reject_doctype

    def check_content(self, chunks: Iterator[bytes]) -> None:
        """Parse the whole content of the workbook. Raises BadData for too many cells or characters."""
        size = 0
        try:
            for chunk in chunks:
                size += len(chunk)
                self._parser.Parse(chunk, False)
                if size - self._parser.CurrentByteIndex > _MAX_XML_TAG_BYTES:
                    raise BadData(DAMAGED_WORKBOOK)
            self._parser.Parse(b"", True)
        except (expat.ExpatError, LookupError, ValueError):
            raise BadData(DAMAGED_WORKBOOK) from None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _ODS_CELLS:
            self._cell_repeats = _parse_repetition(attributes, "number-columns-repeated")
            self._in_cell = True
            # A value may be in an attribute only.
            self._text = sum(map(len, attributes.values())) if len(attributes) > 1 else 0
        elif tag == f"{_ODS_TABLE}table-row":
            self._row_repeats = _parse_repetition(attributes, "number-rows-repeated")
            self._column = self._last_filled_column = 0
        elif tag == f"{_ODS_TABLE}table":
            self._rows = self._row = self._width = 0

    def _characters(self, text: str) -> None:
        if self._in_cell:
            self._text += len(text)

    def _end(self, tag: str) -> None:
        if tag in _ODS_CELLS:
            self._in_cell = False
            self._column += self._cell_repeats
            if self._text:
                self._last_filled_column = self._column
                self._text_left -= self._text * self._cell_repeats * self._row_repeats
        elif tag == f"{_ODS_TABLE}table-row":
            self._row += self._row_repeats
            if self._last_filled_column:
                self._rows, self._width = self._row, max(self._width, self._last_filled_column)
            _check_cell_count(self._rows * self._width, self._limits)
            if self._text_left < 0:
                raise BadData("the texts of the cells are too long in total; save it as CSV and send that file")


def _parse_repetition(attributes: dict[str, str], name: str) -> int:
    """Return the number of repetitions of a row or cell from the attribute `name`. Raises ValueError if below 1."""
    count = int(attributes.get(f"{_ODS_TABLE}{name}", "1")[:10])
    if count < 1:
        raise ValueError(name)
    return count


def _reject_doctype(*_: object) -> None:
    raise BadData(
        "the workbook contains a DOCTYPE declaration, which is not supported; "
        "save it again in a spreadsheet program and send that file"
    )


_MAX_TAG_BYTES = 2 * MIB


def check_xlsx(path: Path, limits: Limits) -> None:
    """Check an XLSX workbook before it is opened. Raises BadData if it would take too much memory or time to read.

    All cells in the rectangle from A1 to a worksheet's last row and column count. A shared string counts once for each
    cell that refers to it.
    """
    # Every part is checked, because a workbook may declare any part to be a worksheet.
    texts = SharedStrings(limits.sheet_cells)
    max_shared = 0
    for _, chunks in _iterate_parts(path, limits):
        sheet = WorksheetExtent()
        for chunk in _split_outside_tags(chunks):
            sheet.process_chunk(chunk)
            texts.process_chunk(chunk)
        texts.finish_part()
        _check_cell_count(sheet.cell_count, limits)
        max_shared = max(max_shared, sheet.shared_string_cells)
    if max_shared * texts.max_length <= limits.unpacked_bytes:
        return
    for _, chunks in _iterate_parts(path, limits):
        remaining = limits.unpacked_bytes
        for chunk in _split_outside_tags(chunks):
            remaining -= texts.measure_referenced_bytes(chunk)
            if remaining < 0:
                fault = "the texts of a worksheet's cells are too long in total"
                raise BadData(f"{fault}; save it as CSV and send that file")


def _split_outside_tags(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the same bytes of XML in chunks that end outside of tags, except inside of tags longer than 2 MiB."""
    pending = b""
    for chunk in chunks:
        text = pending + chunk
        end = text.rfind(b"<")
        if end < 0 or text.find(b">", end) >= 0 or len(text) - end > _MAX_TAG_BYTES:
            end = len(text)
        pending = text[end:]
        if end:
            yield text[:end]
    if pending:
        yield pending
