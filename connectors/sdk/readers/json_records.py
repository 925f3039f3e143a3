"""Reader of records in JSON files: one document, one document per line, or one page of an API per line."""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from ..context import Limits
from ..errors import BadData
from ..notes import read_note
from ..tables import Report
from .json_stream import JsonStream, decode_json

ReportSink = Callable[[Report], None]
Record = tuple[int, dict[str, Any]]
"""Pair of the number of a record (or of its line) from 1, and the record."""

_USUAL_NAMES = (
    "products", "items", "data", "results", "records", "entries", "rows", "value", "content", "list", "@graph",
    "itemListElement", "offers", "inventory", "stock",
)  # fmt: skip
_EXCLUDED_NAMES = frozenset(
    {"errors", "error", "warnings", "messages", "links", "_links", "meta", "paging", "pagination"}
)
_MAX_DEPTH = 3
_MAX_WRAPPER_CHARS = 4096
"""Maximum number of characters by which a line may exceed `Limits.page_bytes`, for the members around its page."""


def _ignore_report(_: Report) -> None:
    """Ignore a report."""


def iterate_document(path: Path, records_path: str | None, limits: Limits) -> Iterator[Record]:
    """Yield the records of a file that is one JSON document, with their numbers from 1. Raises BadData.

    `records_path` is the dotted path of the array of records. If the path is None, the array is the document itself or
    else the first array of objects in the document. A document without such an array is one record, unless it contains
    an empty array with a usual name, such as `products`.
    """
    with _open_text(path) as file:
        stream = JsonStream(file, limits.record_bytes)
        found: Iterator[Any]
        if records_path:
            found = _iterate_at_path(stream, records_path.split("."))
        elif stream.peek() == "[":
            found = stream.iterate_elements()
        else:
            found = _iterate_first_array(path, limits)
        yield from _number_records(found)


def iterate_lines(
    path: Path, records_path: str | None, limits: Limits, report: ReportSink = _ignore_report
) -> Iterator[Record]:
    """Yield the records of a file with one JSON document per line, with their line numbers. Raises BadData.

    Notes in the file (connectors.sdk.notes) are reported.
    """
    for number, value in _decode_lines(path, limits, report):
        for record in select_records(value, records_path) if records_path else [value]:
            if isinstance(record, dict):
                yield number, record


def iterate_pages_file(
    path: Path, records_path: str | None, limits: Limits, report: ReportSink = _ignore_report
) -> Iterator[Record]:
    """Yield the records of a file with one API page per line, numbered from 1 across all pages. Raises BadData.

    Notes in the file (connectors.sdk.notes) are reported.
    """
    found = records_path
    number = 0
    for _, page in _decode_lines(path, limits, report):
        if found is None:
            found = find_records_path(page)
        for record in select_records(page, found):
            if isinstance(record, dict):
                number += 1
                yield number, record


def find_records_path(page: Any) -> str | None:
    """Return the dotted path of the array of records in a page.

    Arrays with a usual name, such as `products`, have priority. The path is empty if the page itself is the array, and
    None if there is no array.
    """
    if isinstance(page, list):
        return ""
    if not isinstance(page, dict):
        return None
    paths = list(_iterate_arrays(page, ()))
    for full in (True, False):
        for path, array in paths:
            if bool(array) == full and (full or path[-1] in _USUAL_NAMES):
                return ".".join(path)
    return None


def _iterate_arrays(value: dict[str, Any], parents: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield the path and the value of each array that is empty or contains objects, arrays with usual names first."""
    names = sorted(value, key=lambda name: _USUAL_NAMES.index(name) if name in _USUAL_NAMES else len(_USUAL_NAMES))
    for name in names:
        inner = value[name]
        if name in _EXCLUDED_NAMES:
            continue
        if isinstance(inner, list) and (not inner or isinstance(inner[0], dict)):
            yield (*parents, name), inner
        elif isinstance(inner, dict) and len(parents) + 1 < _MAX_DEPTH:
            yield from _iterate_arrays(inner, (*parents, name))


def select_records(page: Any, path: str | None) -> list[Any]:
    """Return the elements of the array at the dotted path; for an object, a list with it; else an empty list."""
    value = page
    for name in path.split(".") if path else ():
        if not isinstance(value, dict) or name not in value:
            return []
        value = value[name]
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, dict) else []


def _decode_lines(path: Path, limits: Limits, report: ReportSink) -> Iterator[tuple[int, Any]]:
    with _open_text(path) as file:
        number = 0
        while line := file.readline(limits.page_bytes + _MAX_WRAPPER_CHARS + 1):
            number += 1
            if len(line) > limits.page_bytes + _MAX_WRAPPER_CHARS:
                raise BadData(f"line {number} is larger than {limits.page_bytes // (1024 * 1024)} MiB")
            if line.strip("\ufeff \t\r\n"):
                value = _decode_line(number, line.lstrip("\ufeff"))
                if (detail := read_note(value)) is None:
                    yield number, value
                else:
                    report(Report(detail))


def _decode_line(number: int, line: str) -> Any:
    try:
        return decode_json(line)
    except BadData as error:
        raise BadData(f"line {number}: {error}") from None


def _iterate_at_path(stream: JsonStream, path: list[str]) -> Iterator[Any]:
    """Yield the elements of the array at the path, or the one value at the path; do not read what follows."""
    if stream.peek() != "{":
        raise BadData(f"the document has no value at config.records_path: the key {path[0]} is missing")
    for key in stream.iterate_keys():
        if key != path[0]:
            stream.read_value()
        elif len(path) > 1:
            yield from _iterate_at_path(stream, path[1:])
            return
        elif stream.peek() == "[":
            yield from stream.iterate_elements()
            return
        else:
            yield stream.read_value()
            return
    raise BadData(f"the document has no value at config.records_path: the key {path[0]} is missing")


def _iterate_first_array(path: Path, limits: Limits) -> Iterator[Any]:
    with _open_text(path) as file:
        stream = JsonStream(file, limits.record_bytes)
        if stream.peek() != "{":
            raise BadData("the document contains no records: it is neither an array nor an object")
        found = _iterator_or_none(_iterate_nested_array(stream, 1))
        if found is not None:
            yield from found
            return
    with _open_text(path) as file:
        whole = JsonStream(file, limits.record_bytes).read_value()
    yield from select_records(whole, find_records_path(whole))


def _iterate_nested_array(stream: JsonStream, depth: int) -> Iterator[Any]:
    """Yield the elements of the first array of objects inside the object at the stream's position.

    `depth` is the level of this object, from 1. Objects below the third level are not searched.
    """
    for key in stream.iterate_keys():
        ahead = stream.peek()
        if key in _EXCLUDED_NAMES or ahead not in "[{" or depth > _MAX_DEPTH:
            stream.read_value()
            continue
        inner = _iterate_nested_array(stream, depth + 1) if ahead == "{" else stream.iterate_elements()
        found = _iterator_or_none(element for element in inner if isinstance(element, dict))
        if found is not None:
            yield from found
            return


def _iterator_or_none(values: Iterator[Any]) -> Iterator[Any] | None:
    """Return an iterator over the values, or None if there are no values. The argument must not be used afterwards."""
    for first in values:
        return chain([first], values)
    return None


def _number_records(values: Iterator[Any]) -> Iterator[Record]:
    for number, value in enumerate(values, start=1):
        if isinstance(value, dict):
            yield number, value


def _open_text(path: Path) -> TextIO:
    """Open a file as UTF-16 text if it starts with a byte order mark of UTF-16, else as UTF-8 text.

    Bytes that cannot be decoded are replaced by U+FFFD, which is reported when the cells are read.
    """
    with path.open("rb") as file:
        wide = file.read(2) in {b"\xff\xfe", b"\xfe\xff"}
    return path.open(encoding="utf-16" if wide else "utf-8-sig", errors="replace")
