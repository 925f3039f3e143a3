"""Values of the domain as JSON holds them."""

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=8192)
def instant(moment: datetime) -> str:
    """RFC 3339 in UTC with milliseconds, as everything that is answered has it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


def plain(value: Any, moment: Callable[[datetime], str] = instant) -> Any:
    """The value as JSON: dataclasses as objects without what is absent in them, tuples as lists, sets sorted, times by `moment`."""
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, (list, tuple)):
        return [plain(item, moment) for item in value]
    if isinstance(value, frozenset):
        return sorted(value)
    if isinstance(value, Mapping):
        return {name: plain(item, moment) for name, item in value.items()}
    if is_dataclass(value):
        parts = ((field.name, getattr(value, field.name)) for field in fields(value))
        return {name: plain(part, moment) for name, part in parts if part is not None and part != ()}
    return value
