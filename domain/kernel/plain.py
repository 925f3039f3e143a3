"""Values of the domain as JSON holds them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import Any

ATOMS = frozenset((str, int, bool, float, bytes, type(None)))
"""Types whose values stay as they are."""


@lru_cache(maxsize=8192)
def instant(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds, as everything that is answered has it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def plain(value: Any, moment: Callable[[datetime], str] = instant) -> Any:
    """Return the value as JSON types: dataclasses as objects without None, tuples as lists, sets sorted, times by `moment`.

    Lists of thousands of problems or attempts go through here, so texts and numbers are passed by without a call.
    """
    if type(value) is datetime:
        return moment(value)
    convert = _converter(type(value))  # type: ignore[arg-type]  # every type is hashable
    return value if convert is None else convert(value, moment)


@lru_cache(maxsize=512)
def _converter(kind: type[Any]) -> Callable[[Any, Callable[[datetime], str]], Any] | None:
    """How values of that type are converted; None for those that stay as they are."""
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
        made = {}
        for name in names:
            part = getattr(value, name)
            if type(part) in ATOMS:
                if part is not None:
                    made[name] = part
            elif part != ():
                made[name] = plain(part, moment)
        return made

    return convert


def storable(text: str) -> str:
    """Return the text as databases accept it: without NUL and lone surrogates."""
    return text if text.isprintable() else text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
