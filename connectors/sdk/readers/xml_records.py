"""Streaming reader of records in XML feeds; document types and entities, a means of attacks, are refused."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ..context import MIB, Limits
from ..errors import BadData

Record = tuple[int, dict[str, Any]]

_READ = 64 * 1024
_LOOK = 4 * MIB
_DEPTH = 64
_MOST_PARTS = 50_000
"""Elements and attributes of one record."""
_MOST_NAMES = 20_000
"""Names of elements and attributes in one feed; the parser keeps each for as long as it works."""
_LONGEST_TAG = MIB
"""Bytes of one tag or comment, which the parser holds whole."""
_USUAL = frozenset({"item", "entry", "product", "offer", "record", "row"})
_GOOGLE = "http://base.google.com/ns/1.0"


def records(path: Path, records_path: str | None, limits: Limits) -> Iterator[Record]:
    """Yield the records, numbered from 1: elements named by the last part of `records_path`, else item, entry, product.

    An element's children become keys by their local name; a repeated child becomes a list, attributes become `@name`.
    In Google Merchant feeds a child with the `g:` prefix takes precedence over one of the same name without. Raises
    BadData.
    """
    name = records_path.rsplit(".", 1)[-1] if records_path else _record_name(path)
    builder = _Builder(name, limits.record_bytes)
    number = 0
    for _ in _parsed(path, builder.parser):
        for record in builder.done:
            number += 1
            yield number, record
        builder.done.clear()


def _parser() -> expat.XMLParserType:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    return parser


def _refuse(*_: object) -> None:
    raise BadData("the XML declares a document type or entities, which are not read; send it without")


def _parsed(path: Path, parser: expat.XMLParserType) -> Iterator[int]:
    """Feed the file to the parser in pieces and yield the bytes read so far after each. Raises BadData."""
    size = 0
    with path.open("rb") as file:
        while True:
            data = file.read(_READ)
            size += len(data)
            _parse(parser, data)
            if size - parser.CurrentByteIndex > _LONGEST_TAG:
                raise BadData(f"one tag or comment of the XML is larger than {_LONGEST_TAG // MIB} MiB")
            if len(parser.intern) > _MOST_NAMES:
                raise BadData(
                    f"the XML has more than {_MOST_NAMES:,} names of elements and attributes: this is no feed"
                )
            yield size
            if not data:
                return


def _parse(parser: expat.XMLParserType, data: bytes) -> None:
    try:
        parser.Parse(data, not data)
    except expat.ExpatError as error:
        raise BadData(f"this is not valid XML: {expat.ErrorString(error.code)} at line {error.lineno}") from None
    except (LookupError, ValueError):
        raise BadData("the XML is in an encoding that is not read; send it as UTF-8") from None


def _record_name(path: Path) -> str:
    """Return the name of the repeated element: a usual one, else the first that repeats under the same parents."""
    detector = _RecordDetector()
    for size in _parsed(path, detector.parser):
        if detector.name is not None or size >= _LOOK:
            break
    if detector.name is None:
        raise BadData("the XML holds no repeated element to be read as records; name it in config.records_path")
    return detector.name


class _RecordDetector:
    """Parser handlers that find the name of the record element."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.parser = _parser()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self._open: list[str] = []
        self._parents: set[tuple[str, ...]] = set()

    def _start(self, tag: str, _: dict[str, str]) -> None:
        if len(self._open) >= _DEPTH:
            raise BadData("the XML is nested too deeply")
        local = tag.rsplit(" ", 1)[-1]
        if self._open and len(self._parents) < _MOST_NAMES:
            self._parents.add(tuple(self._open))
        self._open.append(local)
        usual = len(self._open) > 1 and local.lower() in _USUAL
        if self.name is None and (usual or tuple(self._open) in self._parents):
            self.name = local

    def _end(self, _: str) -> None:
        self._open.pop()


class _Builder:
    """Parser handlers that build the records of one element name.

    `limit` bounds the characters of one record, in text and attributes.
    """

    def __init__(self, name: str, limit: int) -> None:
        self.done: list[dict[str, Any]] = []
        self.parser = _parser()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self._name = name
        self._limit = limit
        self._size = 0
        self._count = 0
        self._nodes: list[_Node] = []

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        namespace, _, local = tag.rpartition(" ")
        if not self._nodes and local != self._name:
            return
        if len(self._nodes) >= _DEPTH:
            raise BadData("the XML is nested too deeply")
        self._count += 1 + len(attributes)
        if self._count > _MOST_PARTS:
            raise BadData(f"one record of the XML has more than {_MOST_PARTS:,} elements and attributes")
        fields: dict[str, Any] = {f"@{name.rsplit(' ', 1)[-1]}": value for name, value in attributes.items()}
        self._grow(sum(map(len, attributes.values())))
        self._nodes.append(_Node(local, namespace == _GOOGLE, fields))

    def _grow(self, characters: int) -> None:
        self._size += characters
        if self._size > self._limit:
            raise BadData(f"one record of the XML is larger than {self._limit // MIB} MiB")

    def _characters(self, text: str) -> None:
        if not self._nodes:
            return
        self._grow(len(text))
        self._nodes[-1].text.append(text)

    def _end(self, _: str) -> None:
        if not self._nodes:
            return
        node = self._nodes.pop()
        if self._nodes:
            self._nodes[-1].add(node)
            return
        self._size = self._count = 0
        if node.fields:
            self.done.append(node.fields)


class _Node:
    """Open element: its local name, its fields so far and its text."""

    def __init__(self, name: str, google: bool, fields: dict[str, Any]) -> None:
        self.name = name
        self.google = google
        self.fields = fields
        self.text: list[str] = []
        self._prefixed: set[str] = set()

    def add(self, child: "_Node") -> None:
        """Add a closed child element as a field."""
        value = child.value()
        if child.google and child.name not in self._prefixed:
            self._prefixed.add(child.name)
            self.fields[child.name] = value
        elif child.name in self._prefixed and not child.google:
            return
        elif child.name in self.fields:
            previous = self.fields[child.name]
            if isinstance(previous, list):
                # A list here always holds repeated children: a child's own value is text or an object.
                previous.append(value)
            else:
                self.fields[child.name] = [previous, value]
        else:
            self.fields[child.name] = value

    def value(self) -> Any:
        """Return the text, or the fields as an object with the element's own text under `#text`."""
        text = "".join(self.text).strip()
        if not self.fields:
            return text
        return {**self.fields, "#text": text} if text else self.fields
