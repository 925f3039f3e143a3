"""Rows of any dataclass, generated from its types for generic suites."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from domain.kernel.ids import new_id
from tests.support.builders import MOMENT

FROM_LATER = 1_000
"""From this number on, enums have values that a later release might add."""


def build_sample(kind: type, number: int = 0, **changes: Any) -> Any:
    """Return a row; every second one omits the optional fields."""
    hints = get_type_hints(kind)
    values = {field.name: _value(hints[field.name], field.name, number) for field in fields(kind)}
    return kind(**values | changes)


def _value(kind: Any, name: str, number: int) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        kinds = [part for part in inner if part is not NoneType]
        absent = number % 2 and len(kinds) < len(inner)
        return None if absent else _value(kinds[number // 2 % len(kinds)], name, number)
    if origin in (tuple, frozenset):
        return origin(_value(inner[0], f"{name}{place}", number) for place in range(2))
    if origin is Sequence:
        return [_value(inner[0], f"{name}{place}", number) for place in range(2)]
    if origin is not None and issubclass(origin, Mapping):
        return {"a b": _value(inner[1], name, number), "ö": _value(inner[1], name, number + 2)}
    return _plain_value(kind, name, number)


def _plain_value(kind: Any, name: str, number: int) -> Any:
    if kind is Any:
        return [1, {"deep": [None, "x"]}]
    if kind is bool:
        return number % 2 == 0
    if kind is int:
        return number + len(name)
    if kind is float:
        return number + 0.5
    if kind is bytes:
        return f"\0{name}{number}\xff".encode()
    if kind is datetime:
        return MOMENT + timedelta(seconds=number, microseconds=len(name))
    if is_dataclass(kind):
        return build_sample(kind, number)
    if issubclass(kind, Enum):
        return kind(f"{name}_of_later") if number >= FROM_LATER else list(kind)[number % len(kind)]
    return new_id("src") if name == "id" else f"{name} ä{new_id('src')}"
