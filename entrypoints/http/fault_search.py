"""Finding the faults of a large value one after the other, so that the search ends when enough are told.

The library gathers every error, and keeps its value, before it answers the first: a body of a million wrong items
costs it gigabytes. So a schema is taken apart, and each part asked about its own place only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import jsonschema_rs

Path = list[str | int]
Found = tuple[Path, Any, Any]
FEW: Final = 1000
"""Values of a body whose errors may all be gathered."""
_APART: Final = ("properties", "items", "additionalProperties", "anyOf", "oneOf")
_PLAIN: Final = frozenset(
    "type enum const pattern format minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf "
    "minItems maxItems uniqueItems minProperties maxProperties required properties additionalProperties title "
    "description examples default x-words $schema $id".split()
)
"""Keywords that look no further than at their own value, or say nothing of it."""


def has_few_values(value: Any) -> bool:
    """Whether the value holds no more than FEW others."""
    left, open_ = FEW, [value]
    while open_:
        item = open_.pop()
        if isinstance(item, (dict, list)):
            left -= len(item)
            if left < 0:
                return False
            open_.extend(item.values() if isinstance(item, dict) else item)
    return True


@dataclass(frozen=True, slots=True)
class Kind:
    """What an error is, as the library says it: the keyword, and what it asks."""

    name: str
    value: Any


@dataclass(frozen=True, slots=True)
class Misplaced:
    """An error of our own, as the library's are looked at: an empty list or object stands for the value."""

    kind: Kind
    instance: Any
    schema_path: tuple[str]
    instance_path: tuple[()] = ()


class Part:
    """One place of a schema, its inner ones apart; made when it is first looked at. `options` are the library's."""

    def __init__(self, schema: Any, options: Mapping[str, Any]) -> None:
        self._schema, self._options = schema, options

    def errors(self, value: Any, at: Path) -> Iterator[Found]:
        """The errors, each with the path of the value that it was found in, and the schema that its own path starts at."""
        if self._whole.is_valid(value):
            return
        if not self._may_be(value):
            for name in self._schema.keys() & {"type", "enum", "const"}:
                stand_in: Any = {} if isinstance(value, dict) else []
                yield at, Misplaced(Kind(name, self._schema[name]), stand_in, (name,)), self._schema
            return
        for error in self._own_errors(value):
            yield at, error, self._schema
        for name, part, inner in self._inside(value):
            yield from part.errors(inner, [*at, name])
        if (meant := self._meant(value)) is not None:
            yield from meant.errors(value, at)

    def _inside(self, value: Any) -> Iterator[tuple[str | int, "Part", Any]]:
        """What the value holds, each with the part that it must fit."""
        if isinstance(value, dict):
            for name, inner in value.items():
                if (part := self._properties.get(name, self._others)) is not None:
                    yield name, part, inner
        elif isinstance(value, list) and (items := self._items) is not None:
            for index, inner in enumerate(value):
                yield index, items, inner

    def _may_be(self, value: Any) -> bool:
        """Whether a container may stand here at all: the library would write the whole of it into its message."""
        if not isinstance(value, (dict, list)) or not self._apart or "type" not in self._schema:
            return True
        return ("object" if isinstance(value, dict) else "array") in self._schema["type"]

    @cached_property
    def _whole(self) -> Any:
        return self._compiled(self._schema)

    @cached_property
    def _apart(self) -> bool:
        """Whether it can be taken apart: what refers to another place needs to stay where it is."""
        return isinstance(self._schema, dict) and "$ref" not in repr(self._schema)

    @cached_property
    def _own(self) -> Any:
        """The schema without what its parts answer for."""
        if not self._apart:
            return self._whole
        schema = {name: given for name, given in self._schema.items() if name not in _APART}
        if self._properties:
            schema["properties"] = dict.fromkeys(self._properties, True)
        if self._schema.get("additionalProperties") is False:
            schema["additionalProperties"] = False
        for name in ("anyOf", "oneOf"):
            if name in self._schema:
                schema["anyOf"] = [_typed(branch) for branch in self._schema[name]]
        return self._compiled(schema)

    @cached_property
    def _is_plain(self) -> bool:
        return self._apart and self._schema.keys() <= _PLAIN | set(_APART)

    @cached_property
    def _properties(self) -> dict[str, "Part"]:
        given = self._schema.get("properties", {}) if self._apart else {}
        return {name: Part(schema, self._options) for name, schema in given.items()}

    @cached_property
    def _others(self) -> "Part | None":
        return self._part("additionalProperties")

    @cached_property
    def _items(self) -> "Part | None":
        return self._part("items")

    @cached_property
    def _branches(self) -> list[tuple[Any, "Part"]]:
        given = (self._schema.get("anyOf") or self._schema.get("oneOf") or []) if self._apart else []
        return [(self._compiled(_typed(branch)), Part(branch, self._options)) for branch in given]

    def _part(self, name: str) -> "Part | None":
        given = self._schema.get(name) if self._apart else None
        return Part(given, self._options) if isinstance(given, dict) else None

    def _meant(self, value: Any) -> "Part | None":
        """The alternative that was meant: the only one whose type fits the value."""
        fitting = [part for typed, part in self._branches if typed.is_valid(value)]
        return fitting[0] if len(fitting) == 1 else None

    def _own_errors(self, value: Any) -> Iterator[Any]:
        if self._is_plain:
            yield from self._own.iter_errors(value)
            return
        try:
            self._own.validate(value)
        except jsonschema_rs.ValidationError as error:
            yield error

    def _compiled(self, schema: Any) -> Any:
        return jsonschema_rs.Draft202012Validator(schema, **self._options)


def _typed(branch: Any) -> Any:
    return {"type": branch["type"]} if isinstance(branch, dict) and "type" in branch else True
