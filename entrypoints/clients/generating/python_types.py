"""Writes `types.py`: a TypedDict or a Literal for every named schema."""

import keyword
from collections.abc import Mapping
from typing import Any, Final

from entrypoints.clients.generating.model import Json, schemas_of, text_of
from entrypoints.clients.generating.naming import type_name

_HEAD: Final = '''"""The types of everything that the API takes and answers. Generated from its description; do not edit."""

from typing import Any, Literal, NotRequired, TypedDict, Union

'''
_SIMPLE: Final[Mapping[str, str]] = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
}


class PythonTypes:
    """The types of one description. `prefix` stands before every name when another module writes them."""

    def __init__(self, document: Json, prefix: str = "") -> None:
        self._schemas, self._prefix = schemas_of(document), prefix

    def of(self, schema: Json) -> str:
        """The type expression of a schema. Raises ValueError for what has none."""
        if "$ref" in schema:
            return self._reference(schema["$ref"].rpartition("/")[2])
        if "const" in schema:
            return f"Literal[{schema['const']!r}]"
        if "enum" in schema:
            return _literal(schema["enum"])
        if "allOf" in schema:
            raise ValueError(f"no type for {schema}")
        for several in ("anyOf", "oneOf"):
            if several in schema:
                return _union(self.of(one) for one in schema[several])
        return self._of_types(schema)

    def _reference(self, component: str) -> str:
        """A TypedDict is an object only: what else its schema allows stands beside it."""
        named = self._prefix + type_name(component)
        kinds = self._schemas[component].get("type")
        if not isinstance(kinds, list) or "properties" not in self._schemas[component]:
            return named
        return _union([named, *(_SIMPLE[kind] for kind in kinds if kind != "object")])

    def _of_types(self, schema: Json) -> str:
        kinds = schema.get("type")
        if kinds is None:
            return "Any"
        return _union(self._of_type(kind, schema) for kind in (kinds if isinstance(kinds, list) else [kinds]))

    def _of_type(self, kind: str, schema: Json) -> str:
        if kind == "array":
            return f"list[{self.of(schema.get('items', {}))}]"
        if kind == "object":
            values = schema.get("additionalProperties")
            return f"dict[str, {self.of(values)}]" if values else "dict[str, Any]"
        return _SIMPLE[kind]

    def definition(self, component: str) -> str:
        """The definition of a named schema."""
        schema, name = self._schemas[component], type_name(component)
        if "properties" not in schema:
            return f"{name} = {self._alias(schema)}\n" + _doc(schema, "")
        if all(field.isidentifier() and not keyword.iskeyword(field) for field in schema["properties"]):
            return self._class(name, schema)
        fields = "".join(f"        {field!r}: {self._field(field, schema)},\n" for field in schema["properties"])
        return f"{name} = TypedDict(\n    {name!r},\n    {{\n{fields}    }},\n)\n" + _doc(schema, "")

    def _alias(self, schema: Json) -> str:
        if "oneOf" not in schema:
            return self.of(schema)
        return "Union[\n" + "".join(f"    {self.of(one)},\n" for one in schema["oneOf"]) + "]"

    def _class(self, name: str, schema: Json) -> str:
        lines = [f"class {name}(TypedDict):\n", _doc(schema, "    ") or f'    """{schema["title"]}"""\n']
        for field, described in schema["properties"].items():
            lines += [f"    {field}: {self._field(field, schema)}\n", _doc(described, "    ")]
        return "".join(lines)

    def _field(self, field: str, schema: Json) -> str:
        """Names are quoted, as they may come later; whether a field may be absent is not, so that it is known when it runs."""
        found = self.of(schema["properties"][field])
        quoted = f'"{found}"' if '"' not in found else found
        return quoted if field in schema.get("required", ()) else f"NotRequired[{quoted}]"


def _literal(values: list[Any]) -> str:
    return f"Literal[{', '.join(map(repr, values))}]"


def _union(parts: Any) -> str:
    return " | ".join(dict.fromkeys(parts))


def _doc(schema: Json, indent: str) -> str:
    return docstring(schema.get("description", ""), indent)


def docstring(description: str, indent: str) -> str:
    """A docstring of that text, or nothing."""
    if not description:
        return ""
    plain = description.replace("\\", "\\\\").replace('"""', "'''")
    lines = text_of(plain)
    if lines[-1].endswith('"'):
        lines[-1] += " "  # no fourth quote in a row
    body = f"\n{indent}".join(lines).replace(f"\n{indent}\n", "\n\n")
    return f'{indent}"""{body}"""\n' if len(lines) == 1 else f'{indent}"""{body}\n{indent}"""\n'


def python_types(document: Json) -> str:
    """The whole module."""
    types, schemas = PythonTypes(document), schemas_of(document)
    names = [type_name(component) for component in schemas]
    if len(set(names)) != len(names):
        raise ValueError(f"two components have one name: {sorted(name for name in names if names.count(name) > 1)}")
    unions = [component for component in schemas if "oneOf" in schemas[component]]
    ordered = [*(component for component in schemas if component not in unions), *unions]
    listed = "\n__all__ = [\n" + "".join(f'    "{name}",\n' for name in sorted(names)) + "]\n"
    return _HEAD + "\n\n".join(types.definition(component) for component in ordered) + listed
