"""Reads CSV and TSV as they really come: any delimiter and encoding, ragged rows, zero bytes, quotes left open."""

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
"""Delimiters of one line. Each may make a value, which takes fifty times the room that it has in the file."""
_REPORTED = 100
_END = "\x1eend of file\x1e"
_QUOTED = re.compile(r'(?<![^,;\t|\r\n])"(?:[^"]|"")*+"(?=[,;\t|\r\n]|\Z)')
_NO_DELIMITERS = str.maketrans(dict.fromkeys(f"{DELIMITERS}\r\n", " "))


def tables(ctx: Context, path: Path) -> Iterator[Table]:
    """The file's one table. Rows stream; what is held is one buffer and the first 200 records. Raises BadData."""
    # The module's own bound is 131,072 and is one for the whole process; descriptions in feeds are longer than that.
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
    """The first lines, to tell the delimiter by: at most 200, and at most 1 MiB and a line."""
    left = _LOOK_CHARS
    for line in islice(lines, _LOOK):
        yield line
        left -= len(line)
        if left < 0:
            return


def _refuse_wide(lines: Sequence[str], delimiters: str) -> None:
    """Raise BadData for a line of more values than any table has columns."""
    for line in lines:
        if len(line) > _WIDEST and any(line.count(delimiter) > _WIDEST for delimiter in delimiters):
            raise BadData(f"a line has more than {_WIDEST:,} values: this is no table")


class _Gauge:
    """The lines on their way to be parsed, and how much of them the record being read has taken."""

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
        """What comes now belongs to another record."""
        self.passed += self.taken
        self.taken = 0


def _first(records: Iterator[tuple[int, list[str]]], gauge: _Gauge) -> Iterator[tuple[int, list[str]]]:
    """The first records, to find the header in: at most 200, and at most 4 MiB and a record."""
    for record in islice(records, _LOOK):
        yield record
        if gauge.passed > _LONGEST_RECORD:
            return


def _lines(text: TextIOWrapper) -> Iterator[str]:
    """The lines, without zero bytes, each bounded; then the mark by which an open quote is seen. Closes the file."""
    with text:
        for number, line in enumerate(iter(partial(text.readline, _LONGEST_LINE), ""), start=1):
            if len(line) >= _LONGEST_LINE:
                raise BadData(f"line {number} is longer than {_LONGEST_LINE // MIB} MiB: this is no table")
            yield line.replace("\0", "\ufffd") if "\0" in line else line
    yield _END


def _records(lines: _Gauge, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Records that are not blank, with the line they begin on. Raises BadData at a quote that is never closed."""
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
    """One cell a header: short rows are filled up with None, longer ones cut and reported; repeated header rows are left out."""
    width, again = len(headers), list(headers)
    cut = lost = _REPORTED
    for line, cells in records:
        if lost and "\ufffd" in "".join(cells):
            lost -= 1
            column = next(at for at, cell in enumerate(cells) if "\ufffd" in cell)
            header = headers[column] if column < width else None
            report(Report("characters of the value are lost: they were not in the file's encoding", line, header))
        if len(cells) != width:
            if cut and (extra := sum(1 for cell in cells[width:] if cell.strip())):
                cut -= 1
                report(Report(f"the row has {extra} more values than there are columns; they are left out", line=line))
            yield line, [*cells[:width], *([None] * (width - len(cells)))]
        elif cells != again:
            yield line, cells  # type: ignore[misc]  # a list of text is one of cells; copying it would take time


def _announced(lines: Sequence[str]) -> str | None:
    """The delimiter that spreadsheet programs announce in a first line `sep=;`."""
    line = lines[0].strip().strip('"') if lines else ""
    return line[4] if len(line) == 5 and line.lower().startswith("sep=") else None


def _delimiter(lines: Sequence[str], ctx: Context) -> str:
    """The delimiter by which most rows are of one width, and the wider the better; known header words count as well."""
    if ctx.config.get("format") == "tsv" and any("\t" in line for line in lines):
        return "\t"
    text = "".join(line for line in lines if line.strip() and line != _END)
    sample = _QUOTED.sub(lambda quoted: quoted[0].translate(_NO_DELIMITERS), text).splitlines(keepends=True)
    return max(DELIMITERS, key=lambda delimiter: _evidence(list(_tried(sample, delimiter)), ctx.score_header))


def _evidence(rows: list[list[str]], score: Callable[[Sequence[str]], int]) -> float:
    """How far these rows look like a table: the share of rows of the usual width, that width, and known words."""
    widths = [len(row) for row in rows if len(row) > 1]
    if not widths:
        return 0.0
    usual = max(set(widths), key=lambda width: (widths.count(width), width))
    first = next(row for row in rows if len(row) == usual)
    return widths.count(usual) / len(rows) * log(usual) + 0.5 * min(score(first), 4)


def _tried(lines: Sequence[str], delimiter: str) -> Iterator[list[str]]:
    """The records of a sample as far as they can be read."""
    with suppress(csv.Error):
        yield from csv.reader(lines, delimiter=delimiter)


# Finds a text file's encoding by reading all of it once: the first odd byte may stand in the last row.


_CHUNK = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Encoding:
    """`codec` is Python's name; `skip` are the bytes of the byte order mark; `broken` counts unreadable places."""

    codec: str
    skip: int = 0
    broken: int = 0


def detect(path: Path) -> Encoding:
    """UTF-16 by its mark or zero bytes, UTF-8 when it reads, mostly-UTF-8 with its broken places, else Windows-1252."""
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
    """How many characters beyond ASCII read as UTF-8, and how many places do not."""
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
