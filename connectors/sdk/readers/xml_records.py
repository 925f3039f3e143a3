"""Streaming reader of records in XML feeds. Document types and entities are rejected, because attacks use them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.parsers import expat

from ..context import MIB, Limits
from ..errors import BadData

Record = tuple[int, dict[str, Any]]

_READ_BYTES = 64 * 1024
_SAMPLE_BYTES = 4 * MIB
_MAX_DEPTH = 64
_MAX_RECORD_NODES = 50_000
"""Maximum number of elements and attributes of one record."""
_MAX_NAMES = 20_000
"""Maximum number of different names of elements and attributes in one feed, all of which the parser stores."""
_MAX_TAG_BYTES = MIB
"""Maximum size of one tag or comment, which the parser buffers as a whole."""
_USUAL_NAMES = frozenset({"item", "entry", "product", "offer", "record", "row"})
_GOOGLE_NAMESPACE = "http://base.google.com/ns/1.0"


def iterate_xml_records(path: Path, records_path: str | None, limits: Limits) -> Iterator[Record]:
    """Yield the records of an XML file with their numbers, from 1. Raises BadData.

    The records are the elements whose name is the last part of `records_path`; without it, elements with a usual name,
    such as `item` or `product`. Child elements become keys by their local name, repeated children become a list, and
    attributes become keys of the form `@name`. In Google Merchant feeds, `g:title` has priority over `title`.
    """
    name = records_path.rsplit(".", 1)[-1] if records_path else _detect_record_name(path)
    builder = _RecordBuilder(name, limits.record_bytes)
    number = 0
    for _ in _parse_file(path, builder.parser):
        for record in builder.finished_records:
            number += 1
            yield number, record
        builder.finished_records.clear()


def read_root_attributes(path: Path) -> str:
    """Return the attributes of an XML document's root element, such as `currency EUR`, in separate lines. Raises BadData."""
    parser, roots = _create_parser(), list[dict[str, str]]()
    parser.StartElementHandler = lambda _, attributes: roots.append(attributes)
    next(_parse_file(path, parser))
    return "\n".join(f"{name} {value}" for name, value in roots[0].items()) if roots else ""


def _create_parser() -> expat.XMLParserType:
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = _reject_declaration
    parser.EntityDeclHandler = _reject_declaration
    return parser


def _reject_declaration(*_: object) -> None:
    raise BadData(
        "the XML contains a DOCTYPE or entity declaration, which is not supported; send it without the declaration"
    )


def _parse_file(path: Path, parser: expat.XMLParserType) -> Iterator[int]:
    """Pass the file to the parser in chunks; after each, yield the number of bytes read so far. Raises BadData."""
    size = 0
    with path.open("rb") as file:
        while True:
            data = file.read(_READ_BYTES)
            size += len(data)
            _parse_chunk(parser, data)
            if size - parser.CurrentByteIndex > _MAX_TAG_BYTES:
                raise BadData(f"one tag or comment of the XML is larger than {_MAX_TAG_BYTES // MIB} MiB")
            if len(parser.intern) > _MAX_NAMES:
                raise BadData(
                    f"the XML has more than {_MAX_NAMES:,} different element and attribute names; the file is not a feed"
                )
            yield size
            if not data:
                return


def _parse_chunk(parser: expat.XMLParserType, data: bytes) -> None:
    try:
        parser.Parse(data, not data)
    except expat.ExpatError as error:
        raise BadData(f"the text is not valid XML: {expat.ErrorString(error.code)} at line {error.lineno}") from None
    except (LookupError, ValueError):
        raise BadData("the encoding of the XML is not supported; send it as UTF-8") from None


def _detect_record_name(path: Path) -> str:
    """Return the name of the elements that are records: a usual name, else the first name that repeats at one path."""
    detector = _RecordDetector()
    for size in _parse_file(path, detector.parser):
        if detector.name is not None or size >= _SAMPLE_BYTES:
            break
    if detector.name is None:
        raise BadData("the XML has no repeated element; set config.records_path to the name of the record element")
    return detector.name


class _RecordDetector:
    """Parser handlers that detect the name of the elements that are records."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.parser = _create_parser()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self._open: list[str] = []
        self._parents: set[tuple[str, ...]] = set()

    def _start(self, tag: str, _: dict[str, str]) -> None:
        if len(self._open) >= _MAX_DEPTH:
            raise BadData("the XML is nested too deeply")
        local = tag.rsplit(" ", 1)[-1]
        if self._open and len(self._parents) < _MAX_NAMES:
            self._parents.add(tuple(self._open))
        self._open.append(local)
        usual = len(self._open) > 1 and local.lower() in _USUAL_NAMES
        if self.name is None and (usual or tuple(self._open) in self._parents):
            self.name = local

    def _end(self, _: str) -> None:
        self._open.pop()


class _RecordBuilder:
    """Parser handlers that build a record from each element called `name`.

    `max_chars` is the maximum number of characters of one record, in text and attributes.
    """

    def __init__(self, name: str, max_chars: int) -> None:
        self.finished_records: list[dict[str, Any]] = []
        self.parser = _create_parser()
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self._name = name
        self._max_chars = max_chars
        self._size = 0
        self._count = 0
        self._nodes: list[_OpenElement] = []

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        namespace, _, local = tag.rpartition(" ")
        if not self._nodes and local != self._name:
            return
        if len(self._nodes) >= _MAX_DEPTH:
            raise BadData("the XML is nested too deeply")
        self._count += 1 + len(attributes)
        if self._count > _MAX_RECORD_NODES:
            raise BadData(f"one record of the XML has more than {_MAX_RECORD_NODES:,} elements and attributes")
        fields: dict[str, Any] = {f"@{name.rsplit(' ', 1)[-1]}": value for name, value in attributes.items()}
        self._add_characters(sum(map(len, attributes.values())))
        self._nodes.append(_OpenElement(local, namespace == _GOOGLE_NAMESPACE, fields))

    def _add_characters(self, characters: int) -> None:
        self._size += characters
        if self._size > self._max_chars:
            raise BadData(f"one record of the XML is larger than {self._max_chars // MIB} MiB")

    def _characters(self, text: str) -> None:
        if not self._nodes:
            return
        self._add_characters(len(text))
        self._nodes[-1].text.append(text)

    def _end(self, _: str) -> None:
        if not self._nodes:
            return
        node = self._nodes.pop()
        if self._nodes:
            self._nodes[-1].add_child(node)
            return
        self._size = self._count = 0
        if node.fields:
            self.finished_records.append(node.fields)


class _OpenElement:
    """Element whose end tag has not been read yet, with its local name, and its fields and text so far.

    `is_google` states whether the element is in Google's namespace.
    """

    def __init__(self, name: str, is_google: bool, fields: dict[str, Any]) -> None:
        self.name = name
        self.is_google = is_google
        self.fields = fields
        self.text: list[str] = []
        self._prefixed: set[str] = set()

    def add_child(self, child: "_OpenElement") -> None:
        """Add a child element, whose end tag has been read, as a field."""
        value = child.build_value()
        if child.is_google and child.name not in self._prefixed:
            self._prefixed.add(child.name)
            self.fields[child.name] = value
        elif child.name in self._prefixed and not child.is_google:
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

    def build_value(self) -> Any:
        """Return the element's text or, if the element has fields, a dict of the fields with the text under `#text`."""
        text = "".join(self.text).strip()
        if not self.fields:
            return text
        return {**self.fields, "#text": text} if text else self.fields
