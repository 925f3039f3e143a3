"""The named schemas of the API's description: each thing described once, so that a generated client has one type for it."""

import json
from collections.abc import Mapping
from typing import Any, Final

Json = dict[str, Any]

_NOTES: Final = ("description", "examples", "default")
"""What may differ where one schema is used in several places: it stands beside the reference."""
_AS_THEY_ARE: Final = frozenset({"examples", "enum", "const", "default", "required", "discriminator"})


def _content(schema: Mapping[str, Any]) -> str:
    """What makes two schemas the same thing: all but their own notes, and examples wherever they stand."""
    own = {key: value for key, value in schema.items() if key not in _NOTES}
    return json.dumps(_without_examples(own), sort_keys=True, default=str)


def _without_examples(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_examples(part) for key, part in value.items() if key != "examples"}
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return sorted(value)  # choices, required names: their order says nothing
    return [_without_examples(part) for part in value] if isinstance(value, (list, tuple)) else value


def _is_named(schema: Mapping[str, Any]) -> bool:
    """Whether clients get a type for it: objects with fields, choices, and whatever has a title."""
    return "title" in schema or "properties" in schema or len(schema.get("enum", ())) > 1


def _one_of(name: str) -> str:
    """What one of several is called: `columns` are each a `column`; what has no plural is an `item`."""
    if name.endswith("ies"):
        return name[:-3] + "y"
    if name.endswith("s") and not name.endswith("ss"):
        return name[:-1]
    return f"{name}_item"


class ComponentSchemas:
    """Collects `#/components/schemas`.

    A schema is named by its `title`; one without is named after where it was first met, and met again it is the same.
    """

    def __init__(self) -> None:
        self.named: dict[str, Json] = {}
        self._content: dict[str, str] = {}
        self._names: dict[str, str] = {}

    def of(self, schema: Any, name: str) -> Any:
        """The schema with every thing in it replaced by a reference; `name` is for what has no title.

        Raises ValueError when one name would stand for two things.
        """
        if not isinstance(schema, Mapping):
            return schema
        if not _is_named(schema):
            return self._inside(schema, name)
        content = _content(schema)
        known = schema.get("title") or self._names.get(content) or name
        if self._content.setdefault(known, content) != content:
            raise ValueError(f"{known} is the name of two schemas: {content} and {self._content[known]}")
        self._names.setdefault(content, known)
        if known not in self.named:
            self.named[known] = {}
            self.named[known] = {"title": known} | self._inside(schema, known)
        return {"$ref": f"#/components/schemas/{known}"} | self._note(schema, known)

    def _note(self, schema: Mapping[str, Any], known: str) -> Json:
        """The description, where it is another than the one that stands at the named schema."""
        description = schema.get("description")
        same = description is None or description == self.named[known].get("description", description)
        return {} if same else {"description": description}

    def _inside(self, schema: Mapping[str, Any], name: str) -> Json:
        return {key: value if key in _AS_THEY_ARE else self._part(key, value, name) for key, value in schema.items()}

    def _part(self, key: str, value: Any, name: str) -> Any:
        if key == "properties":
            return {field: self.of(part, f"{name}_{field}") for field, part in value.items()}
        if key in ("items", "additionalProperties"):
            return self.of(value, _one_of(name))
        if key in ("anyOf", "oneOf", "allOf"):
            return [self.of(part, name) for part in value]
        return value
