"""Reader of records in JSON: in one document, in lines, or in lines that are pages of an API."""

from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, TextIO

from ..context import Limits
from ..errors import BadData
from ..notes import noted
from ..tables import Report
from .json_stream import JsonStream, decoded

Tell = Callable[[Report], None]
Record = tuple[int, dict[str, Any]]
"""The record's number (or line) from 1, and the record."""

_USUAL = (
    "products", "items", "data", "results", "records", "entries", "rows", "value", "content", "list", "@graph",
    "itemListElement", "offers", "inventory", "stock",
)  # fmt: skip
_NEVER = frozenset({"errors", "error", "warnings", "messages", "links", "_links", "meta", "paging", "pagination"})
_DEPTH = 3
_WRAPPING = 4096
"""Characters that a connector may write around a page on its line."""


def _nobody(_: Report) -> None:
    """Ignore a note."""


def document(path: Path, records_path: str | None, limits: Limits) -> Iterator[Record]:
    """Yield the records of one document, streaming, numbered from 1. Raises BadData.

    `records_path` is the dotted path of the records. With None, they are the elements of a document that is an array,
    else those of the first array of objects in it. Without such an array, the document is the record, unless it has an
    empty array of a usual name.
    """
    with _open(path) as file:
        stream = JsonStream(file, limits.record_bytes)
        found: Iterator[Any]
        if records_path:
            found = _at(stream, records_path.split("."))
        elif stream.peek() == "[":
            found = stream.elements()
        else:
            found = _first_array(path, limits)
        yield from _numbered(found)


def lines(path: Path, records_path: str | None, limits: Limits, tell: Tell = _nobody) -> Iterator[Record]:
    """Yield the records of a file with one JSON document a line, numbered by line, and report its notes. Raises BadData."""
    for number, value in _lines(path, limits, tell):
        for record in picked(value, records_path) if records_path else [value]:
            if isinstance(record, dict):
                yield number, record


def pages(path: Path, records_path: str | None, limits: Limits, tell: Tell = _nobody) -> Iterator[Record]:
    """Yield the records of a file with one API page a line, numbered across pages, and report its notes. Raises BadData."""
    found = records_path
    number = 0
    for _, page in _lines(path, limits, tell):
        if found is None:
            found = where(page)
        for record in picked(page, found):
            if isinstance(record, dict):
                number += 1
                yield number, record


def where(page: Any) -> str | None:
    """Return the dotted path of the array of objects in a page: a usual name first, else the first one.

    The path is '' if the page is that array, None if the page has no such array.
    """
    if isinstance(page, list):
        return ""
    if not isinstance(page, dict):
        return None
    paths = list(_arrays(page, ()))
    for full in (True, False):
        for path, array in paths:
            if bool(array) == full and (full or path[-1] in _USUAL):
                return ".".join(path)
    return None


def _arrays(value: dict[str, Any], above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yield path and value of the arrays that are empty or hold objects, usual names first."""
    names = sorted(value, key=lambda name: _USUAL.index(name) if name in _USUAL else len(_USUAL))
    for name in names:
        inner = value[name]
        if name in _NEVER:
            continue
        if isinstance(inner, list) and (not inner or isinstance(inner[0], dict)):
            yield (*above, name), inner
        elif isinstance(inner, dict) and len(above) + 1 < _DEPTH:
            yield from _arrays(inner, (*above, name))


def picked(page: Any, path: str | None) -> list[Any]:
    """Return the elements at the dotted path, a single object as a list of one; empty without such a path."""
    value = page
    for name in path.split(".") if path else ():
        if not isinstance(value, dict) or name not in value:
            return []
        value = value[name]
    if isinstance(value, list):
        return value
    return [value] if isinstance(value, dict) else []


def _lines(path: Path, limits: Limits, tell: Tell) -> Iterator[tuple[int, Any]]:
    with _open(path) as file:
        number = 0
        while line := file.readline(limits.page_bytes + _WRAPPING + 1):
            number += 1
            if len(line) > limits.page_bytes + _WRAPPING:
                raise BadData(f"line {number} is larger than {limits.page_bytes // (1024 * 1024)} MiB")
            if line.strip("\ufeff \t\r\n"):
                value = _line(number, line.lstrip("\ufeff"))
                if (detail := noted(value)) is None:
                    yield number, value
                else:
                    tell(Report(detail))


def _line(number: int, line: str) -> Any:
    try:
        return decoded(line)
    except BadData as error:
        raise BadData(f"line {number}: {error}") from None


def _at(stream: JsonStream, path: list[str]) -> Iterator[Any]:
    """Yield the elements of the array at the path, reading no further than its end."""
    if stream.peek() != "{":
        raise BadData(f"the document has no {path[0]} where config.records_path looks for the records")
    for key in stream.members():
        if key != path[0]:
            stream.value()
        elif len(path) > 1:
            yield from _at(stream, path[1:])
            return
        elif stream.peek() == "[":
            yield from stream.elements()
            return
        else:
            yield stream.value()
            return
    raise BadData(f"the document has no {path[0]} where config.records_path looks for the records")


def _first_array(path: Path, limits: Limits) -> Iterator[Any]:
    with _open(path) as file:
        stream = JsonStream(file, limits.record_bytes)
        if stream.peek() != "{":
            raise BadData("the document holds no records: it is neither an array nor an object")
        found = _some(_descend(stream, 1))
        if found is not None:
            yield from found
            return
    with _open(path) as file:
        whole = JsonStream(file, limits.record_bytes).value()
    yield from picked(whole, where(whole))


def _descend(stream: JsonStream, depth: int) -> Iterator[Any]:
    """Yield the elements of the first array of objects in the object that begins here."""
    for key in stream.members():
        ahead = stream.peek()
        if key in _NEVER or ahead not in "[{" or depth > _DEPTH:
            stream.value()
            continue
        inner = _descend(stream, depth + 1) if ahead == "{" else stream.elements()
        found = _some(element for element in inner if isinstance(element, dict))
        if found is not None:
            yield from found
            return


def _some(values: Iterator[Any]) -> Iterator[Any] | None:
    """Return the values, or None if there are none; then the iterator is used up."""
    for first in values:
        return chain([first], values)
    return None


def _numbered(values: Iterator[Any]) -> Iterator[Record]:
    for number, value in enumerate(values, start=1):
        if isinstance(value, dict):
            yield number, value


def _open(path: Path) -> TextIO:
    """Open the file as text: UTF-8, or UTF-16 by its mark. Undecodable bytes become U+FFFD and are reported later."""
    with path.open("rb") as file:
        wide = file.read(2) in {b"\xff\xfe", b"\xfe\xff"}
    return path.open(encoding="utf-16" if wide else "utf-8-sig", errors="replace")
