"""Finds the records in JSON: in one document, in lines, or in lines that are pages of an API."""

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
    """Where nobody asks for notes."""


def document(path: Path, records_path: str | None, limits: Limits) -> Iterator[Record]:
    """The records of one document, streaming, numbered from 1. `records_path` is dotted; None finds them.

    Found are: the elements of the array that the document is, else those of the first array of objects in it, else
    the document itself, unless it has an array of a usual name and nothing in it. Raises BadData.
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
    """The records of a file with one JSON document a line, numbered by line; notes in it are told. Raises BadData."""
    for number, value in _lines(path, limits, tell):
        for record in picked(value, records_path) if records_path else [value]:
            if isinstance(record, dict):
                yield number, record


def pages(path: Path, records_path: str | None, limits: Limits, tell: Tell = _nobody) -> Iterator[Record]:
    """The records of a file with one page of an API a line, numbered from 1 across pages; notes are told. Raises BadData."""
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
    """The dotted path of the array of objects in a page: a usual name first, else the first one.

    It is '' when the page is that array, None when the page holds no array at all to judge by.
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
    """Arrays that are empty or hold objects, usual names first."""
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
    """What stands at the dotted path: its elements, the one object itself, or nothing where there is no such path."""
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
    """The elements of the array at the path, walking only as far as it."""
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
    """The elements of the first array of objects in the object that begins here; nothing when there is none."""
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
    """The values, or None when there are none; then all of them were passed."""
    for first in values:
        return chain([first], values)
    return None


def _numbered(values: Iterator[Any]) -> Iterator[Record]:
    for number, value in enumerate(values, start=1):
        if isinstance(value, dict):
            yield number, value


def _open(path: Path) -> TextIO:
    """The file as text: UTF-8, or UTF-16 by its mark. What cannot be read in it becomes U+FFFD, to be reported later."""
    with path.open("rb") as file:
        wide = file.read(2) in {b"\xff\xfe", b"\xfe\xff"}
    return path.open(encoding="utf-16" if wide else "utf-8-sig", errors="replace")
