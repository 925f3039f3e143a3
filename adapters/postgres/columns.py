"""How a field of a dataclass is kept in columns: by its type, or spread over several."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cached_property
from types import NoneType, UnionType
from typing import Any, Protocol, Union, get_args, get_origin, get_type_hints

import msgspec
from psycopg.types.json import Jsonb

from domain.kernel.plain import plain

_ENCODE = msgspec.json.Encoder().encode


class Codec(Protocol):
    """A field's columns, and the way there and back."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names."""
        ...

    def dump(self, value: Any) -> Sequence[Any]:
        """The parameters of the columns."""
        ...

    def load(self, stored: Sequence[Any]) -> Any: ...


@dataclass(frozen=True, slots=True)
class Column:
    """One column; `to` and `out_of` are only asked for values that are there."""

    name: str
    to: Callable[[Any], Any] | None = None
    out_of: Callable[[Any], Any] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The one."""
        return (self.name,)

    def dump(self, value: Any) -> Sequence[Any]:
        """The parameter; None stays NULL."""
        return (value if value is None or self.to is None else self.to(value),)

    def load(self, stored: Sequence[Any]) -> Any:
        value = stored[0]
        return value if value is None or self.out_of is None else self.out_of(value)


@dataclass(frozen=True, eq=False)
class Spread:
    """A value whose parts have columns of their own: `parts` maps them. With NULL in the first one there is no value."""

    kind: type
    parts: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the parts."""
        return tuple(self.parts.values())

    def dump(self, value: Any) -> Sequence[Any]:
        """The parts' parameters."""
        return [None if value is None else codec.dump(getattr(value, name))[0] for name, codec in self._codecs]

    def load(self, stored: Sequence[Any]) -> Any:
        if stored[0] is None:
            return None
        parts = zip(self._codecs, stored, strict=True)
        return self.kind(**{name: codec.load((value,)) for (name, codec), value in parts})

    @cached_property
    def _codecs(self) -> list[tuple[str, Column]]:
        hints = get_type_hints(self.kind)
        return [(name, codec_of(column, hints[name])) for name, column in self.parts.items()]


def codec_of(name: str, kind: Any) -> Column:
    """The column of a field of that type.

    Texts, numbers, booleans, bytes and times are kept as they are, enums by value, tuples and sets of texts or numbers
    as arrays, everything else as jsonb (absent parts left out, times with microseconds).
    """
    kind = _without_none(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (tuple, frozenset) and not is_dataclass(inner[0]):
        return Column(name, sorted if origin is frozenset else list, origin)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return Column(name, str, kind)
    if origin in (tuple, frozenset) or is_dataclass(kind):
        return Column(name, as_json, lambda stored: msgspec.convert(stored, kind))
    if origin is not None and issubclass(origin, Mapping):
        return Column(name, as_json)
    return Column(name)


def _without_none(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        [kind] = [part for part in get_args(kind) if part is not NoneType]
    return kind


def as_json(value: Any) -> Jsonb:
    """The value as a jsonb parameter."""
    return Jsonb(plain(value, datetime.isoformat), dumps=_ENCODE)
