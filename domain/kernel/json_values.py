"""Conversion of values to plain JSON."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any

ATOMS = frozenset((str, int, bool, float, bytes, type(None)))
"""Types whose values `to_json_value` returns unchanged."""


@lru_cache(maxsize=8192)
def format_time(moment: datetime) -> str:
    """Format a time, which must be in UTC, as RFC 3339 with milliseconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def to_json_value(value: Any, format_datetime: Callable[[datetime], str] = format_time) -> Any:
    """Convert a value to plain JSON types.

    Dataclasses become objects without their fields that are None or empty tuples, tuples become lists, and sets become sorted
    lists; `format_datetime` formats times.
    """
    if type(value) is datetime:
        return format_datetime(value)
    convert = _find_converter(type(value))  # type: ignore[arg-type]  # every type is hashable
    return value if convert is None else convert(value, format_datetime)


@lru_cache(maxsize=512)
def _find_converter(kind: type[Any]) -> Callable[[Any, Callable[[datetime], str]], Any] | None:
    """Return the function that converts values of the type; None if they need no conversion."""
    if kind in ATOMS or issubclass(kind, Enum):
        return None
    if issubclass(kind, (list, tuple)):
        return _convert_list
    if issubclass(kind, frozenset):
        return lambda value, _: sorted(value)
    if issubclass(kind, Mapping):
        return _convert_mapping
    return _dataclass_converter(tuple(field.name for field in fields(kind))) if is_dataclass(kind) else None


def _convert_list(value: Iterable[Any], moment: Callable[[datetime], str]) -> list[Any]:
    # lists may have thousands of values, so atoms are not passed to to_json_value
    return [item if type(item) in ATOMS else to_json_value(item, moment) for item in value]


def _convert_mapping(value: Mapping[str, Any], moment: Callable[[datetime], str]) -> dict[str, Any]:
    return {name: item if type(item) in ATOMS else to_json_value(item, moment) for name, item in value.items()}


def _dataclass_converter(names: tuple[str, ...]) -> Callable[[Any, Callable[[datetime], str]], dict[str, Any]]:
    def convert(value: Any, moment: Callable[[datetime], str]) -> dict[str, Any]:
        converted = {}
        for name in names:
            part = getattr(value, name)
            if type(part) in ATOMS:
                if part is not None:
                    converted[name] = part
            elif part != ():
                converted[name] = to_json_value(part, moment)
        return converted

    return convert


def replace_unstorable(text: str) -> str:
    """Replace NUL by U+FFFD and lone surrogates by `?`, because databases cannot store them."""
    return text if text.isprintable() else text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
