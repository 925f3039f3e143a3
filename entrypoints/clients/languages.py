"""Syntax of types and documentation comments in Python and TypeScript."""

import json
import keyword
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from entrypoints.clients.description import Json, format_type_name

_WIDTH = 108


@dataclass(frozen=True, slots=True)
class Language:
    """Syntax of types and comments in a programming language.

    Attributes:
        scalar_types: Types of texts, numbers, booleans and null by their names in JSON Schema.
        any_type: Type of any value.
        array_template: Type of a list; `{}` stands for the type of the items.
        record_template: Type of an object with arbitrary field names; `{}` stands for the type of the values.
        sequence_template: Type of an argument that accepts any list or sequence; `{}` stands for the type of the items.
        datetime_type: Type of a time.
        format_literal: Returns the literal type for a list of constants, which are its only values.
        format_comment: Returns a documentation comment with a text, indented by a number of spaces.
    """

    scalar_types: Mapping[str, str]
    any_type: str
    array_template: str
    record_template: str
    sequence_template: str
    datetime_type: str
    format_literal: Callable[[Sequence[Any]], str]
    format_comment: Callable[[str, int], str]


@dataclass(frozen=True, slots=True)
class TypeConverter:
    """Converter of JSON schemas to types of a programming language.

    Attributes:
        language: The language.
        schemas: Schemas by component name.
        prefix: Prefix of the names of generated types that another module defines, such as `t.`.
    """

    language: Language
    schemas: Mapping[str, Json]
    prefix: str = ""

    def type_of(self, schema: Json) -> str:
        """Return the type for a schema, as source text. Raises ValueError for a schema with `allOf`."""
        if "$ref" in schema:
            component = schema["$ref"].rpartition("/")[2]
            qualified_name, schema_of_component = self.prefix + format_type_name(component), self.schemas[component]
            if not isinstance(schema_of_component.get("type"), list) or "properties" not in schema_of_component:
                return qualified_name
            # the named type is the object only, so its schema's other types are added
            return _join_types(
                [
                    qualified_name,
                    *(self.language.scalar_types[kind] for kind in schema_of_component["type"] if kind != "object"),
                ]
            )
        if "const" in schema:
            return self.language.format_literal([schema["const"]])
        if "enum" in schema:
            return self.language.format_literal(schema["enum"])
        if "allOf" in schema:
            raise ValueError(f"schemas with `allOf` are not supported: {schema}")
        if alternatives := schema.get("anyOf") or schema.get("oneOf"):
            return _join_types(map(self.type_of, alternatives))
        kinds = schema.get("type", [])
        return _join_types(
            self._convert_type_name(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)
        ) or (self.language.any_type)

    def _convert_type_name(self, kind: str, schema: Json) -> str:
        if kind == "array":
            return self.language.array_template.format(self.type_of(schema.get("items", {})))
        if kind == "object":
            return self.language.record_template.format(self.type_of(schema.get("additionalProperties") or {}))
        return self.language.scalar_types[kind]

    def parameter_type(self, parameter: Json) -> str:
        """Return the type of a method's argument for a query parameter: any sequence for a list, or a datetime for a time."""
        schema = parameter["schema"]
        if schema.get("type") == "array":
            return self.language.sequence_template.format(self.type_of(schema["items"]))
        return self.type_of(schema) + (
            f" | {self.language.datetime_type}" if schema.get("format") == "date-time" else ""
        )


def _join_types(parts: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(parts))


def _wrap_text(text: str) -> list[str]:
    wrapped = [textwrap.wrap(paragraph, _WIDTH) for paragraph in text.strip().split("\n\n")]
    return [line for paragraph in wrapped for line in ["", *paragraph]][1:]


def format_docstring(text: str, indent: int = 0) -> str:
    """Return a Python docstring with the text, indented by `indent` spaces; an empty text for an empty text."""
    if not text:
        return ""
    lines = _wrap_text(text.replace("\\", "\\\\").replace('"""', "'''"))
    lines[-1] += " " if lines[-1].endswith('"') else ""  # avoids four quotes in a row
    body = "\n".join(lines) + ("\n" if len(lines) > 1 else "")
    return textwrap.indent(f'"""{body}"""\n', " " * indent)


def format_comment(text: str, indent: int = 0) -> str:
    """Return a TypeScript documentation comment with the text, indented by `indent` spaces."""
    lines = _wrap_text(text.replace("*/", "* /"))
    if len(lines) > 1:
        body = "".join(f" * {line}".rstrip() + "\n" for line in lines)
        return textwrap.indent(f"/**\n{body} */\n", " " * indent)
    return " " * indent + f"/** {lines[0]} */\n" if lines else ""


def is_attribute_name(name: str) -> bool:
    """Return whether the name can be the name of an attribute in Python."""
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
    format_docstring,
)
TYPESCRIPT = Language(
    dict(zip(_SIMPLE, ("string", "number", "number", "boolean", "null"), strict=True)),
    "unknown",
    "Array<{}>",
    "Record<string, {}>",
    "ReadonlyArray<{}>",
    "Date",
    lambda values: _join_types(map(json.dumps, values)),
    format_comment,
)
