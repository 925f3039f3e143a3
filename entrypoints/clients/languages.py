"""Types and documentation comments in Python and TypeScript."""

import json
import keyword
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from entrypoints.clients.description import Json, type_name

_WIDTH = 108


@dataclass(frozen=True, slots=True)
class Language:
    """A language's type syntax; `array`, `record` (by name) and `sequence` (any list argument) contain the inner type."""

    kinds: Mapping[str, str]
    unknown: str
    array: str
    record: str
    sequence: str
    moment: str
    literal: Callable[[Sequence[Any]], str]
    comment: Callable[[str, int], str]


@dataclass(frozen=True, slots=True)
class Types:
    """Types of the schemas. `prefix` precedes type names in other files."""

    language: Language
    schemas: Mapping[str, Json]
    prefix: str = ""

    def of(self, schema: Json) -> str:
        """Return the type of a schema. Raises ValueError for an unsupported one."""
        if "$ref" in schema:
            component = schema["$ref"].rpartition("/")[2]
            named, found = self.prefix + type_name(component), self.schemas[component]
            if not isinstance(found.get("type"), list) or "properties" not in found:
                return named
            # the named type is the object only, so its schema's other types are added
            return _union([named, *(self.language.kinds[kind] for kind in found["type"] if kind != "object")])
        if "const" in schema:
            return self.language.literal([schema["const"]])
        if "enum" in schema:
            return self.language.literal(schema["enum"])
        if "allOf" in schema:
            raise ValueError(f"no type for {schema}")
        if several := schema.get("anyOf") or schema.get("oneOf"):
            return _union(map(self.of, several))
        kinds = schema.get("type", [])
        return _union(self._of_kind(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)) or (
            self.language.unknown
        )

    def _of_kind(self, kind: str, schema: Json) -> str:
        if kind == "array":
            return self.language.array.format(self.of(schema.get("items", {})))
        if kind == "object":
            return self.language.record.format(self.of(schema.get("additionalProperties") or {}))
        return self.language.kinds[kind]

    def of_parameter(self, parameter: Json) -> str:
        """Return the type of a query parameter: any sequence for a list, and a datetime for a time."""
        schema = parameter["schema"]
        if schema.get("type") == "array":
            return self.language.sequence.format(self.of(schema["items"]))
        return self.of(schema) + (f" | {self.language.moment}" if schema.get("format") == "date-time" else "")


def _union(parts: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(parts))


def _lines(text: str) -> list[str]:
    wrapped = [textwrap.wrap(paragraph, _WIDTH) for paragraph in text.strip().split("\n\n")]
    return [line for paragraph in wrapped for line in ["", *paragraph]][1:]


def docstring(text: str, indent: int = 0) -> str:
    """Return a Python docstring, or an empty string."""
    if not text:
        return ""
    lines = _lines(text.replace("\\", "\\\\").replace('"""', "'''"))
    lines[-1] += " " if lines[-1].endswith('"') else ""  # avoids four quotes in a row
    body = "\n".join(lines) + ("\n" if len(lines) > 1 else "")
    return textwrap.indent(f'"""{body}"""\n', " " * indent)


def comment(text: str, indent: int = 0) -> str:
    """Return a TypeScript documentation comment, or an empty string."""
    lines = _lines(text.replace("*/", "* /"))
    if len(lines) > 1:
        whole = "".join(f" * {line}".rstrip() + "\n" for line in lines)
        return textwrap.indent(f"/**\n{whole} */\n", " " * indent)
    return " " * indent + f"/** {lines[0]} */\n" if lines else ""


def is_attribute(name: str) -> bool:
    """Return whether the name can be a field of a Python class."""
    return name.isidentifier() and not keyword.iskeyword(name)


_SIMPLE = ("string", "integer", "number", "boolean", "null")
PYTHON = Language(
    dict(zip(_SIMPLE, ("str", "int", "float", "bool", "None"), strict=True)),
    "Any",
    "list[{}]",
    "dict[str, {}]",
    "Sequence[{}]",
    "datetime",
    lambda values: f"Literal[{', '.join(map(repr, values))}]",
    docstring,
)
TYPESCRIPT = Language(
    dict(zip(_SIMPLE, ("string", "number", "number", "boolean", "null"), strict=True)),
    "unknown",
    "Array<{}>",
    "Record<string, {}>",
    "ReadonlyArray<{}>",
    "Date",
    lambda values: _union(map(json.dumps, values)),
    comment,
)
