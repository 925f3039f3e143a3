"""Reader of CSV and TSV files, which tolerates any delimiter and encoding, rows of different lengths and zero bytes."""

import codecs
import csv
import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice
from math import log
from pathlib import Path

from connectors.csv.sheets import Record, SheetFormat, read_sheet_tables
from connectors.sdk.context import MIB, Context
from connectors.sdk.errors import BadData
from connectors.sdk.tables import Report, Row, Table

DELIMITERS = ",;\t|"
_SAMPLE_LINES = 200
_SAMPLE_CHARS = MIB
_MAX_LINE_CHARS = 2 * MIB
_MAX_RECORD_CHARS = 4 * MIB
_MAX_RECORD_LINES = 1_000
_MAX_DELIMITERS = 50_000
"""Maximum number of delimiters in one line. More raise BadData, because values take more memory than file size."""
_MAX_REPORTS = 100
_END_MARK = "\x1eend of file\x1e"
_QUOTED = re.compile(r'(?<![^,;\t|\r\n])"(?:[^"]|"")*+"(?=[,;\t|\r\n]|\Z)')
_NO_DELIMITERS = str.maketrans(dict.fromkeys(f"{DELIMITERS}\r\n", " "))


def read_delimited_tables(ctx: Context, path: Path) -> Iterator[Table]:
    """Yield the tables of the file, whose rows are read from the file as they are iterated. Raises BadData."""
    # The default limit of 131,072 applies to the whole process; descriptions in feeds are longer than that.
    csv.field_size_limit(MIB)
    encoding = detect_encoding(path)
    if encoding.error_count:
        ctx.report(Report(f"{encoding.error_count} invalid UTF-8 sequences were replaced by U+FFFD"))
    if encoding.codec in _CODE_PAGES.values():
        ctx.report(Report(f"the file states no encoding and was read as {encoding.codec}; send it in UTF-8"))
    with closing(_open_lines(path, encoding)) as lines:
        sample_lines = list(_take_sample(lines))
    _check_width(sample_lines, DELIMITERS)
    stated_delimiter = _find_stated_delimiter(sample_lines)
    delimiter = stated_delimiter or _detect_delimiter(sample_lines, ctx)

    def open_records() -> Iterator[Record]:
        with closing(_open_lines(path, encoding)) as lines:
            stated = ["\n"] * len(list(islice(lines, 1 if stated_delimiter else 0)))
            yield from _iterate_records(_MeasuredLines(chain(stated, lines), delimiter), delimiter)

    found = False
    for table in read_sheet_tables(ctx, open_records, SheetFormat()):
        found = True
        yield replace(table, rows=_report_invalid_characters(table, ctx.report))
    if not found:
        raise BadData("the file has no rows")


def _take_sample(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines for the detection of the delimiter: the first 200, or fewer if they exceed 1 MiB."""
    remaining = _SAMPLE_CHARS
    for line in islice(lines, _SAMPLE_LINES):
        yield line
        remaining -= len(line)
        if remaining < 0:
            return


def _check_width(lines: Sequence[str], delimiters: str) -> None:
    """Raise BadData if a line contains more than 50,000 of one of the delimiters."""
    for line in lines:
        if len(line) > _MAX_DELIMITERS and any(line.count(delimiter) > _MAX_DELIMITERS for delimiter in delimiters):
            raise BadData(f"a line has more than {_MAX_DELIMITERS:,} values; the file is not a table")


class _MeasuredLines:
    """Iterable of lines that counts the characters of the current record and raises BadData for a record too large."""

    def __init__(self, lines: Iterator[str], delimiter: str) -> None:
        self._record_chars = 0
        self._lines = lines
        self._delimiter = delimiter

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            size = len(line)
            self._record_chars += size
            if size > _MAX_DELIMITERS:
                _check_width((line,), self._delimiter)
            if self._record_chars > _MAX_RECORD_CHARS:
                raise BadData(f"one row is longer than {_MAX_RECORD_CHARS // MIB} MiB: a quoted value is not closed")
            yield line

    def finish_record(self) -> None:
        """Start the next record with 0 characters."""
        self._record_chars = 0


def _open_lines(path: Path, encoding: "FileEncoding") -> Generator[str]:
    """Yield the lines of a file with zero bytes replaced, then an end mark that reveals an unclosed quote.

    Raises BadData for a line that is too long.
    """
    with path.open("rb") as raw:
        raw.seek(encoding.mark_length)
        text = TextIOWrapper(raw, encoding=encoding.codec, errors="replace", newline="")
        for number, line in enumerate(iter(partial(text.readline, _MAX_LINE_CHARS), ""), start=1):
            if len(line) >= _MAX_LINE_CHARS:
                raise BadData(f"line {number} is longer than {_MAX_LINE_CHARS // MIB} MiB; the file is not a table")
            yield line.replace("\0", "\ufffd") if "\0" in line else line
    yield _END_MARK


def _iterate_records(lines: _MeasuredLines, delimiter: str) -> Iterator[Record]:
    """Yield the records that are not blank, each with the number of its first line.

    Raises BadData for a quoted value that is not closed.
    """
    reader = csv.reader(lines, delimiter=delimiter)
    line = 1
    try:
        for cells in reader:
            lines.finish_record()
            if cells and (cells[0].strip() or any(map(str.strip, cells))):
                if cells[-1].endswith(_END_MARK) or reader.line_num - line > _MAX_RECORD_LINES:
                    break
                yield line, cells
            line = reader.line_num + 1
        else:
            return
    except csv.Error:
        raise BadData(f"line {line}: a quoted value is not closed, or a value is longer than 1 MiB") from None
    if cells != [_END_MARK]:
        raise BadData(f"line {line}: a quoted value is not closed")


def _report_invalid_characters(table: Table, report: Callable[[Report], None]) -> Iterator[Row]:
    """Yield the rows of the table, and report the first 100 with characters that were replaced."""
    reports_left = _MAX_REPORTS
    for line, cells in table.rows:
        if reports_left:
            column = next((at for at, cell in enumerate(cells) if isinstance(cell, str) and "\ufffd" in cell), None)
            if column is not None:
                reports_left -= 1
                detail = "some characters of the value are invalid in the file's encoding and were replaced"
                report(Report(detail, line, table.headers[column], table.sheet))
        yield line, cells


def _find_stated_delimiter(lines: Sequence[str]) -> str | None:
    """Return the delimiter from a first line such as `sep=;`, which some spreadsheet programs write, or None."""
    line = lines[0].strip().strip('"') if lines else ""
    return line[4] if len(line) == 5 and line.lower().startswith("sep=") else None


def _detect_delimiter(lines: Sequence[str], ctx: Context) -> str:
    """Return the delimiter with which the lines have the highest score as a table."""
    if ctx.config.get("format") == "tsv" and any("\t" in line for line in lines):
        return "\t"
    text = "".join(line for line in lines if line.strip() and line != _END_MARK)
    sample = _QUOTED.sub(lambda quoted: quoted[0].translate(_NO_DELIMITERS), text).splitlines(keepends=True)
    return max(DELIMITERS, key=lambda delimiter: _score_table(list(_parse_sample(sample, delimiter)), ctx.score_header))


def _score_table(rows: list[list[str]], count_known_words: Callable[[Sequence[str]], int]) -> float:
    """Return a score of how much rows resemble a table; 0 if no row has two values.

    The score increases with the most frequent width, with the proportion of rows of this width, and with the known
    words in the first of these rows, which `count_known_words` counts.
    """
    widths = [len(row) for row in rows if len(row) > 1]
    if not widths:
        return 0.0
    usual = max(set(widths), key=lambda width: (widths.count(width), width))
    first = next(row for row in rows if len(row) == usual)
    return widths.count(usual) / len(rows) * log(usual) + 0.5 * min(count_known_words(first), 4)


def _parse_sample(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the records in the lines up to the first syntax error."""
    with suppress(csv.Error):
        yield from csv.reader(lines, delimiter=delimiter)


# The detection of the encoding reads the whole file, because the first undecodable byte may be in the last row.


_CHUNK = 1024 * 1024
_CODE_PAGES = {
    "windows-1250": "cp1250", "iso-8859-2": "iso8859-2", "windows-1251": "cp1251", "koi8-r": "koi8-r",
    "windows-1253": "cp1253", "windows-1254": "cp1254", "iso-8859-9": "cp1254",
}  # fmt: skip
"""Code pages that are distinguished from Windows-1252, by the name that chardet gives them."""
_CODE_PAGE_LINES = 300
_MAX_CODE_PAGE_LINE = 4096
_MIN_ACCENTED = 20
_SIGN_IN_WORD = re.compile(r"[^\W\d_][¡-©«-´¶-¹»-¿×÷€†‡‰‹›][^\W\d_]|[¹³¯][^\W\d_]{2}")


@dataclass(frozen=True, slots=True)
class FileEncoding:
    """Encoding of a file.

    Attributes:
        codec: Python's name of the encoding.
        mark_length: Length of the byte order mark in bytes.
        error_count: Number of bytes or sequences in the file that cannot be decoded.
    """

    codec: str
    mark_length: int = 0
    error_count: int = 0


def detect_encoding(path: Path) -> FileEncoding:
    """Return the encoding of a file: UTF-16, UTF-8, or a code page such as Windows-1252.

    UTF-16 is recognised by a byte order mark or zero bytes, UTF-8 by a byte order mark or more valid than invalid
    sequences.
    """
    with path.open("rb") as file:
        head = file.read(4096)
    wide = _detect_utf16(head)
    if wide is not None:
        return wide
    skip = 3 if head.startswith(codecs.BOM_UTF8) else 0
    valid_count, broken = _count_utf8_characters(path)
    if not broken or valid_count > broken or skip:
        return FileEncoding("utf-8", skip, broken)
    return FileEncoding(_detect_code_page(path), skip)


def _detect_code_page(path: Path) -> str:
    """Return the code page of a file that is not in Unicode: Windows-1252 unless another one is clearly better.

    Another one is considered only if the first lines with such characters are no plausible text in Windows-1252, because it
    has signs within words (`D¹b`) or more letters with accents than without, or if they contain at least 20 of them.
    """
    with path.open("rb") as file:
        lines = (line for line in iter(partial(file.readline, _MAX_CODE_PAGE_LINE), b"") if not line.isascii())
        sample = b"".join(islice(lines, _CODE_PAGE_LINES))
    western = sample.decode("cp1252", errors="replace")
    letters = [char for char in western if char.isalpha()]
    accented = sum(not char.isascii() for char in letters)
    signs = sum(not char.isascii() and not char.isalpha() for char in western)
    is_implausible = _SIGN_IN_WORD.search(western) is not None or accented * 2 > len(letters)
    if not is_implausible and (accented < _MIN_ACCENTED or signs > accented):
        return "cp1252"
    from chardet import detect  # noqa: PLC0415  its models are large, and few files need them

    found = str(detect(sample)["encoding"]).lower()
    codec = _CODE_PAGES.get(found, "cp1252")
    text = sample.decode(codec, errors="replace")
    if codec == "iso8859-2" and any("\x80" <= char < "\xa0" for char in text):
        codec, text = "cp1250", sample.decode("cp1250", errors="replace")
    return codec if not _SIGN_IN_WORD.search(text) else "cp1252"


def _detect_utf16(head: bytes) -> FileEncoding | None:
    if head.startswith(codecs.BOM_UTF16_LE):
        return FileEncoding("utf-16-le", 2)
    if head.startswith(codecs.BOM_UTF16_BE):
        return FileEncoding("utf-16-be", 2)
    half = max(len(head) // 2, 1)
    if head[1::2].count(0) > half * 0.6 and head[0::2].count(0) < half * 0.1:
        return FileEncoding("utf-16-le")
    if head[0::2].count(0) > half * 0.6 and head[1::2].count(0) < half * 0.1:
        return FileEncoding("utf-16-be")
    return None


def _count_utf8_characters(path: Path) -> tuple[int, int]:
    """Return the number of valid non-ASCII characters and of invalid sequences in a file that is decoded as UTF-8."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    valid_count = broken = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if chunk.isascii() and not decoder.getstate()[0]:
                continue
            text = decoder.decode(chunk)
            replaced = text.count("\ufffd") - chunk.count(b"\xef\xbf\xbd")
            broken += replaced
            valid_count += len(text) - replaced - len(text.encode("ascii", errors="ignore"))
    tail = decoder.decode(b"", final=True)
    return valid_count, broken + tail.count("\ufffd")
