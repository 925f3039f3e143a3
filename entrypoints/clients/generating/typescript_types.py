"""Writes `types.d.ts`: an interface or a union for every named schema."""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final

from entrypoints.clients.generating.model import Json, schemas_of, text_of
from entrypoints.clients.generating.naming import type_name

_HEAD: Final = (
    "// The types of everything that the API takes and answers. Generated from its description; do not edit.\n\n"
)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_$][\w$]*")
_SIMPLE: Final[Mapping[str, str]] = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}


class TypeScriptTypes:
    """The types of one description. `prefix` stands before every name when another file writes them."""

    def __init__(self, document: Json, prefix: str = "") -> None:
        self._schemas, self._prefix = schemas_of(document), prefix

    def of(self, schema: Json) -> str:
        """The type expression of a schema. Raises ValueError for what has none."""
        if "$ref" in schema:
            return self._reference(schema["$ref"].rpartition("/")[2])
        if "const" in schema:
            return json.dumps(schema["const"])
        if "enum" in schema:
            return _union(json.dumps(value) for value in schema["enum"])
        if "allOf" in schema:
            raise ValueError(f"no type for {schema}")
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return _union(self.of(one) for one in schema[several])
        kinds = schema.get("type", ())
        return (
            _union(self._of_type(kind, schema) for kind in ([kinds] if isinstance(kinds, str) else kinds)) or "unknown"
        )

    def _reference(self, component: str) -> str:
        """An interface is an object only: what else its schema allows stands beside it."""
        named = self._prefix + type_name(component)
        kinds = self._schemas[component].get("type")
        if not isinstance(kinds, list) or "properties" not in self._schemas[component]:
            return named
        return _union([named, *(_SIMPLE[kind] for kind in kinds if kind != "object")])

    def _of_type(self, kind: str, schema: Json) -> str:
        if kind == "array":
            return f"Array<{self.of(schema.get('items', {}))}>"
        if kind == "object":
            return f"Record<string, {self.of(schema.get('additionalProperties') or {})}>"
        return _SIMPLE[kind]

    def definition(self, component: str) -> str:
        """The definition of a named schema."""
        schema, name = self._schemas[component], type_name(component)
        if "properties" not in schema:
            return comment(schema.get("description", ""), "") + f"export type {name} = {self.of(schema)}\n"
        lines = [comment(schema.get("description", ""), ""), f"export interface {name} {{\n"]
        for field, described in schema["properties"].items():
            mark = "" if field in schema.get("required", ()) else "?"
            shown = field if _PLAIN_NAME.fullmatch(field) else json.dumps(field)
            lines += [comment(described.get("description", ""), "  "), f"  {shown}{mark}: {self.of(described)}\n"]
        return "".join(lines) + "}\n"


def _union(parts: Iterable[str]) -> str:
    return " | ".join(dict.fromkeys(parts))


def comment(description: str, indent: str) -> str:
    """A documentation comment of that text, or nothing."""
    lines = text_of(description.replace("*/", "* /"))
    if not lines:
        return ""
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    body = "".join(f"{indent} * {line}".rstrip() + "\n" for line in lines)
    return f"{indent}/**\n{body}{indent} */\n"


def typescript_types(document: Json) -> str:
    """The whole file."""
    types = TypeScriptTypes(document)
    return _HEAD + "\n".join(types.definition(component) for component in schemas_of(document))
