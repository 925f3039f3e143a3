"""Conversion of values to plain JSON."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any

ATOMS = frozenset((str, int, bool, float, bytes, type(None)))
"""Types whose values are not converted."""


@lru_cache(maxsize=8192)
def instant(moment: datetime) -> str:
    """Format a time as RFC 3339 in UTC with milliseconds, as in all responses."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def plain(value: Any, moment: Callable[[datetime], str] = instant) -> Any:
    """Convert a value to JSON.

    Dataclasses become objects without absent fields, tuples lists, sets sorted lists, and times text by `moment`. Lists
    of thousands of values are converted here, so texts and numbers are skipped without a call.
    """
    if type(value) is datetime:
        return moment(value)
    convert = _converter(type(value))  # type: ignore[arg-type]  # every type is hashable
    return value if convert is None else convert(value, moment)


@lru_cache(maxsize=512)
def _converter(kind: type[Any]) -> Callable[[Any, Callable[[datetime], str]], Any] | None:
    """Return the converter of values of that type; None for those that are not converted."""
    if kind in ATOMS or issubclass(kind, Enum):
        return None
    if issubclass(kind, (list, tuple)):
        return _list
    if issubclass(kind, frozenset):
        return lambda value, _: sorted(value)
    if issubclass(kind, Mapping):
        return _object
    return _dataclass(tuple(field.name for field in fields(kind))) if is_dataclass(kind) else None


def _list(value: Iterable[Any], moment: Callable[[datetime], str]) -> list[Any]:
    return [item if type(item) in ATOMS else plain(item, moment) for item in value]


def _object(value: Mapping[str, Any], moment: Callable[[datetime], str]) -> dict[str, Any]:
    return {name: item if type(item) in ATOMS else plain(item, moment) for name, item in value.items()}


def _dataclass(names: tuple[str, ...]) -> Callable[[Any, Callable[[datetime], str]], dict[str, Any]]:
    def convert(value: Any, moment: Callable[[datetime], str]) -> dict[str, Any]:
        converted = {}
        for name in names:
            part = getattr(value, name)
            if type(part) in ATOMS:
                if part is not None:
                    converted[name] = part
            elif part != ():
                converted[name] = plain(part, moment)
        return converted

    return convert


def storable(text: str) -> str:
    """Return the text without NUL and lone surrogates, which databases and messages refuse."""
    return text if text.isprintable() else text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
