"""Values of the domain as JSON holds them."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

_ATOMS: Final = frozenset((str, int, bool, float, bytes, type(None)))


@lru_cache(maxsize=8192)
def instant(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds, as everything that is answered has it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


@lru_cache(maxsize=256)
def _names(kind: type[Any]) -> tuple[str, ...] | None:
    """The fields of a dataclass; None for any other type."""
    return tuple(field.name for field in fields(kind)) if is_dataclass(kind) else None


def plain(value: Any, moment: Callable[[datetime], str] = instant) -> Any:
    """The value as JSON: dataclasses as objects without what is absent in them, tuples as lists, sets sorted, times by `moment`."""
    kind = type(value)
    if kind in _ATOMS:
        return value
    if kind is datetime:
        return moment(value)
    if isinstance(value, (list, tuple)):
        return [plain(item, moment) for item in value]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return {name: plain(item, moment) for name, item in value.items()}
    names = _names(kind)  # type: ignore[arg-type]  # every type is hashable
    if names is None:
        return value
    parts = ((name, getattr(value, name)) for name in names)
    return {name: plain(part, moment) for name, part in parts if part is not None and part != ()}
