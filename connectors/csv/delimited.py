"""Reader of CSV and TSV in practice: any delimiter and encoding, ragged rows, zero bytes, unclosed quotes."""

import codecs
import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from itertools import chain, islice
from math import log
from pathlib import Path

from connectors.csv.headers import plan
from connectors.sdk.context import MIB, Context
from connectors.sdk.errors import BadData
from connectors.sdk.tables import Report, Row, Table

DELIMITERS = ",;\t|"
_LOOK = 200
_LOOK_CHARS = MIB
_LONGEST_LINE = 2 * MIB
_LONGEST_RECORD = 4 * MIB
_MOST_LINES = 1_000
_WIDEST = 50_000
"""Delimiters of one line. Each may add a value, which takes fifty times its size in the file."""
_REPORTED = 100
_END = "\x1eend of file\x1e"
_QUOTED = re.compile(r'(?<![^,;\t|\r\n])"(?:[^"]|"")*+"(?=[,;\t|\r\n]|\Z)')
_NO_DELIMITERS = str.maketrans(dict.fromkeys(f"{DELIMITERS}\r\n", " "))


def tables(ctx: Context, path: Path) -> Iterator[Table]:
    """Yield the file's one table. Rows are streamed; one buffer and the first 200 records are in memory. Raises BadData."""
    # The default limit of 131,072 applies to the whole process; descriptions in feeds are longer than that.
    csv.field_size_limit(MIB)
    encoding = detect(path)
    if encoding.broken:
        ctx.report(Report(f"{encoding.broken} places are not readable as UTF-8; they hold U+FFFD now"))
    raw = path.open("rb")
    raw.seek(encoding.skip)
    text = TextIOWrapper(raw, encoding=encoding.codec, errors="replace", newline="")
    try:
        table = _table(ctx, text)
    except BaseException:
        text.close()
        raise
    yield table


def _table(ctx: Context, text: TextIOWrapper) -> Table:
    lines = _lines(text)
    first = list(_sample(lines))
    _refuse_wide(first, DELIMITERS)
    announced = _announced(first)
    delimiter = announced or _delimiter(first, ctx)
    if announced:
        first[0] = "\n"
    gauge = _Gauge(chain(first, lines), delimiter)
    records = _records(gauge, delimiter)
    look = list(_first(records, gauge))
    found = plan([cells for _, cells in look], ctx.score_header)
    if found is None:
        raise BadData("the file has no rows")
    if len(found.headers) > ctx.limits.columns:
        raise BadData(f"the file has {len(found.headers)} columns; at most {ctx.limits.columns} are read")
    rows = _rows(chain(look[found.first :], records), found.headers, ctx.report)
    return Table(sheet=None, headers=found.headers, rows=rows)


def _sample(lines: Iterator[str]) -> Iterator[str]:
    """Yield the first lines, for delimiter detection: at most 200, and about 1 MiB."""
    remaining = _LOOK_CHARS
    for line in islice(lines, _LOOK):
        yield line
        remaining -= len(line)
        if remaining < 0:
            return


def _refuse_wide(lines: Sequence[str], delimiters: str) -> None:
    """Raise BadData for a line with more values than any table has columns."""
    for line in lines:
        if len(line) > _WIDEST and any(line.count(delimiter) > _WIDEST for delimiter in delimiters):
            raise BadData(f"a line has more than {_WIDEST:,} values: this is no table")


class _Gauge:
    """Iterator over lines that measures the current record."""

    def __init__(self, lines: Iterator[str], delimiter: str) -> None:
        self.taken = 0
        self.passed = 0
        self._lines = lines
        self._delimiter = delimiter

    def __iter__(self) -> Iterator[str]:
        for line in self._lines:
            size = len(line)
            self.taken += size
            if size > _WIDEST:
                _refuse_wide((line,), self._delimiter)
            if self.taken > _LONGEST_RECORD:
                raise BadData(f"one row is longer than {_LONGEST_RECORD // MIB} MiB: a quoted value is not closed")
            yield line

    def next_record(self) -> None:
        """Start the next record."""
        self.passed += self.taken
        self.taken = 0


def _first(records: Iterator[tuple[int, list[str]]], gauge: _Gauge) -> Iterator[tuple[int, list[str]]]:
    """Yield the first records, for header detection: at most 200, and about 4 MiB."""
    for record in islice(records, _LOOK):
        yield record
        if gauge.passed > _LONGEST_RECORD:
            return


def _lines(text: TextIOWrapper) -> Iterator[str]:
    """Yield the bounded lines without zero bytes, then a mark that reveals an open quote. Closes the file."""
    with text:
        for number, line in enumerate(iter(partial(text.readline, _LONGEST_LINE), ""), start=1):
            if len(line) >= _LONGEST_LINE:
                raise BadData(f"line {number} is longer than {_LONGEST_LINE // MIB} MiB: this is no table")
            yield line.replace("\0", "\ufffd") if "\0" in line else line
    yield _END


def _records(lines: _Gauge, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the records that are not blank, with their first line. Raises BadData for a quote that is never closed."""
    reader = csv.reader(lines, delimiter=delimiter)
    line = 1
    try:
        for cells in reader:
            lines.next_record()
            if cells and (cells[0].strip() or any(map(str.strip, cells))):
                if cells[-1].endswith(_END) or reader.line_num - line > _MOST_LINES:
                    break
                yield line, cells
            line = reader.line_num + 1
        else:
            return
    except csv.Error:
        raise BadData(f"line {line}: a quoted value is not closed, or a value is longer than 1 MiB") from None
    if cells != [_END]:
        raise BadData(f"line {line}: a quoted value is not closed")


def _rows(
    records: Iterator[tuple[int, list[str]]], headers: Sequence[str], report: Callable[[Report], None]
) -> Iterator[Row]:
    """Yield one cell a header: pad short rows with None, truncate and report longer ones, skip repeated headers."""
    width, again = len(headers), list(headers)
    cut = lost = _REPORTED
    for line, cells in records:
        if lost and "\ufffd" in "".join(cells):
            lost -= 1
            column = next(at for at, cell in enumerate(cells) if "\ufffd" in cell)
            header = headers[column] if column < width else None
            report(
                Report(
                    "some characters of the value are invalid in the file's encoding and were replaced", line, header
                )
            )
        if len(cells) != width:
            if cut and (extra := sum(1 for cell in cells[width:] if cell.strip())):
                cut -= 1
                report(Report(f"the row has {extra} more values than there are columns; they are left out", line=line))
            yield line, [*cells[:width], *([None] * (width - len(cells)))]
        elif cells != again:
            yield line, cells  # type: ignore[misc]  # a list of text is one of cells; copying it would take time


def _announced(lines: Sequence[str]) -> str | None:
    """Return the delimiter that a first line `sep=;` of a spreadsheet program states, or None."""
    line = lines[0].strip().strip('"') if lines else ""
    return line[4] if len(line) == 5 and line.lower().startswith("sep=") else None


def _delimiter(lines: Sequence[str], ctx: Context) -> str:
    """Return the delimiter that gives the most rows of one width; greater width and known header words count, too."""
    if ctx.config.get("format") == "tsv" and any("\t" in line for line in lines):
        return "\t"
    text = "".join(line for line in lines if line.strip() and line != _END)
    sample = _QUOTED.sub(lambda quoted: quoted[0].translate(_NO_DELIMITERS), text).splitlines(keepends=True)
    return max(DELIMITERS, key=lambda delimiter: _evidence(list(_tried(sample, delimiter)), ctx.score_header))


def _evidence(rows: list[list[str]], score: Callable[[Sequence[str]], int]) -> float:
    """Score rows as a table: the share of rows of the usual width, that width, and known words."""
    widths = [len(row) for row in rows if len(row) > 1]
    if not widths:
        return 0.0
    usual = max(set(widths), key=lambda width: (widths.count(width), width))
    first = next(row for row in rows if len(row) == usual)
    return widths.count(usual) / len(rows) * log(usual) + 0.5 * min(score(first), 4)


def _tried(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """Yield the records of a sample up to the first error."""
    with suppress(csv.Error):
        yield from csv.reader(lines, delimiter=delimiter)


# Encoding detection reads the whole file, as the first undecodable byte may be in the last row.


_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Encoding:
    """Encoding of a file.

    `codec` is Python's name, `skip` the bytes of the byte order mark, `broken` the number of errors.
    """

    codec: str
    skip: int = 0
    broken: int = 0


def detect(path: Path) -> Encoding:
    """Return UTF-16 by its mark or zero bytes, UTF-8 if it decodes, or mostly does, else Windows-1252."""
    with path.open("rb") as file:
        head = file.read(4096)
    wide = _wide(head)
    if wide is not None:
        return wide
    skip = 3 if head.startswith(codecs.BOM_UTF8) else 0
    good, broken = _count(path)
    if not broken or good > broken or skip:
        return Encoding("utf-8", skip, broken)
    return Encoding("cp1252", skip)


def _wide(head: bytes) -> Encoding | None:
    if head.startswith(codecs.BOM_UTF16_LE):
        return Encoding("utf-16-le", 2)
    if head.startswith(codecs.BOM_UTF16_BE):
        return Encoding("utf-16-be", 2)
    half = max(len(head) // 2, 1)
    if head[1::2].count(0) > half * 0.6 and head[0::2].count(0) < half * 0.1:
        return Encoding("utf-16-le")
    if head[0::2].count(0) > half * 0.6 and head[1::2].count(0) < half * 0.1:
        return Encoding("utf-16-be")
    return None


def _count(path: Path) -> tuple[int, int]:
    """Count the non-ASCII characters that decode as UTF-8, and the decoding errors."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    good = broken = 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            if chunk.isascii() and not decoder.getstate()[0]:
                continue
            text = decoder.decode(chunk)
            replaced = text.count("\ufffd") - chunk.count(b"\xef\xbf\xbd")
            broken += replaced
            good += len(text) - replaced - len(text.encode("ascii", errors="ignore"))
    tail = decoder.decode(b"", final=True)
    return good, broken + tail.count("\ufffd")
