"""Mapping of dataclasses to rows and tables: a column per field by its type, with codecs for exceptions.

The statements of a plain store (select, insert, versioned update, remove, page) are generated from one declaration. All of
them contain organisation and mode, in addition to row-level security.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from datetime import datetime
from enum import Enum
from functools import cache, cached_property
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, Generic, LiteralString, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from psycopg.types.json import Jsonb

from adapters.postgres.errors import CONFLICTS
from adapters.postgres.session import Session
from adapters.postgres.stores import TenantStore, page_names, page_of, page_params, rendered
from domain.kernel.errors import NotFound, PreconditionFailed
from domain.kernel.paging import Filter, Page, PageRequest
from domain.kernel.plain import plain

R = TypeVar("R")
Row = dict[str, Any]
OWN = " WHERE org = %(org)s AND livemode = %(livemode)s"
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_ENCODE = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Column:
    """Codec of a field in one column; `to` and `out_of` convert values other than None, which is NULL."""

    name: str
    to: Callable[[Any], Any] | None = None
    out_of: Callable[[Any], Any] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return (self.name,)

    def dump(self, value: Any) -> Sequence[Any]:
        """Return the parameters of the columns."""
        return (value if value is None or self.to is None else self.to(value),)

    def load(self, stored: Sequence[Any]) -> Any:
        value = stored[0]
        return value if value is None or self.out_of is None else self.out_of(value)


@dataclass(frozen=True, eq=False)
class Spread:
    """Codec of a dataclass whose fields have columns, which `parts` maps. NULL in the first column means None."""

    kind: type
    parts: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.parts.values())

    def dump(self, value: Any) -> Sequence[Any]:
        """Return the parameters of the columns."""
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


Codec = Column | Spread
"""Columns of a field, with the conversion to and from them."""


def codec_of(name: str, kind: Any) -> Column:
    """Return the codec of a field by its type.

    Texts, numbers, booleans, bytes and times are stored unchanged, enums by value, tuples and sets of texts or numbers as
    arrays, everything else as jsonb (None omitted, times with microseconds).
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
    """Encode a value as a jsonb parameter."""
    return Jsonb(plain(value, datetime.isoformat), dumps=_ENCODE)


@dataclass(frozen=True, eq=False)
class Record(Generic[R]):
    """Mapping of the dataclass `kind` to the columns of a row, in the order of its fields.

    `exceptions` are codecs of fields whose type does not determine them; `computed` are fields that are read by an expression and never
    written.
    """

    kind: type[R]
    exceptions: Mapping[str, Codec] = field(default_factory=dict, kw_only=True)
    computed: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @cached_property
    def codecs(self) -> Mapping[str, Codec]:
        """Codecs by field, in the order of the dataclass."""
        hints = get_type_hints(self.kind)
        return {name: self.exceptions.get(name) or codec_of(name, kind) for name, kind in hints.items()}

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """Names of the written columns."""
        return tuple(
            name for field_, codec in self.codecs.items() if field_ not in self.computed for name in codec.columns
        )

    def columns(self, alias: str = "") -> str:
        """Return the select list for `row_of`, optionally with a table alias."""
        names = [self.computed.get(field_) or name for field_, codec in self.codecs.items() for name in codec.columns]
        return ", ".join(f"{alias}.{name}" if alias else name for name in names)

    @cached_property
    def width(self) -> int:
        """Number of columns that `row_of` reads."""
        return sum(len(codec.columns) for codec in self.codecs.values())

    def row_of(self, *fetched: Any) -> R:
        """Build the object from the first columns of a row."""
        values: Row = {}
        at = 0
        for name, codec in self.codecs.items():
            width = len(codec.columns)
            values[name] = codec.load(fetched[at : at + width])
            at += width
        return self.kind(**values)

    def values(self, row: R) -> Row:
        """Return the parameters of the written columns."""
        values: Row = {}
        for name, codec in self.codecs.items():
            if name not in self.computed:
                values.update(zip(codec.columns, codec.dump(getattr(row, name)), strict=True))
        return values


@dataclass(frozen=True, eq=False)
class Table(Record[R]):
    """Mapping of the dataclass `kind` to the table `name`.

    `beside` are columns without a field, with their values in new rows; `conflicts` are messages of Conflict by the unique
    index that is violated.
    """

    name: str
    beside: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    conflicts: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        """Register the messages of conflicts."""
        CONFLICTS.update(self.conflicts)

    @cached_property
    def filterable(self) -> frozenset[str]:
        """Names of the columns that lists can be filtered by."""
        return frozenset(self.stored) | self.computed.keys()

    @cached_property
    def select(self) -> LiteralString:
        """Statement that selects all rows of the tenant."""
        return f"SELECT {self.columns()} FROM {self.name}{OWN}"

    @cached_property
    def get(self) -> LiteralString:
        return f"{self.select} AND id = %(id)s"

    @cached_property
    def get_locked(self) -> LiteralString:
        """Statement that selects and locks the row with an id."""
        return f"{self.get} FOR UPDATE"

    @cached_property
    def insert(self) -> LiteralString:
        """Statement that inserts a row."""
        names = ("org", "livemode", *self.stored, *self.beside)
        values = ", ".join(f"%({name})s" for name in names)
        return f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({values})"

    @cache  # noqa: B019  tables live as long as the process
    def update(self, *more: str) -> LiteralString:
        """Return the statement that updates the row with an id if it has the version `expected` (any if NULL)."""
        settings = ", ".join(f"{name} = %({name})s" for name in (*self.stored, *more) if name != "id")
        versioned = " AND (%(expected)s::integer IS NULL OR version = %(expected)s)" if "version" in self.stored else ""
        return f"UPDATE {self.name} SET {settings}{OWN} AND id = %(id)s{versioned}"

    @cached_property
    def remove(self) -> LiteralString:
        return f"DELETE FROM {self.name}{OWN} AND id = %(id)s"

    @cached_property
    def list(self) -> LiteralString:
        """Statement that selects a page, newest first, with an optional condition for each filterable column."""
        columns = {
            name: f"({self.computed[name]})" if name in self.computed else name for name in sorted(self.filterable)
        }
        conditions = "\n".join(f"    AND {column} = %({name})s --? {name}" for name, column in columns.items())
        return (
            f"{self.select}\n{conditions}\n    AND id < %(page_key)s --? after\n    AND id > %(page_key)s --? before\n"
            "ORDER BY id DESC LIMIT {limit} --? forwards\nORDER BY id ASC LIMIT {limit} --? backwards"
        )


class TableStore(TenantStore, Generic[R]):
    """Store (ports/unit_of_work.py) on the table of the class or of the instance."""

    _table: Table[R]

    def __init__(self, session: Session, table: Table[R] | None = None) -> None:
        super().__init__(session)
        if table is not None:
            self._table = table

    async def get(self, id: str, *, lock: bool = False) -> R | None:
        row = await self._session.one(self._table.get_locked if lock else self._table.get, id=id)
        return self._table.row_of(*row) if row else None

    async def add(self, row: R, **more: Any) -> None:
        await self._session.run(self._table.insert, **{**self._table.beside, **self._table.values(row), **more})

    async def add_all(self, rows: Sequence[R]) -> None:
        table = self._table
        await self._session.insert_all(table.name, [{**table.beside, **table.values(row)} for row in rows])

    async def save(self, row: R, *, expected_version: int | None = None, **more: Any) -> None:
        values = self._table.values(row) | more
        if not await self._session.run(self._table.update(*more), expected=expected_version, **values):
            if expected_version is None:
                raise NotFound
            raise PreconditionFailed("The object has changed since it was read. Read it again and retry.")

    async def remove(self, id: str) -> bool:
        return await self._session.run(self._table.remove, id=id) == 1

    async def page(self, request: PageRequest, filter: Filter | None = None) -> Page[R]:
        values = filter.given() if filter else _NOTHING
        if not self._table.filterable.issuperset(values):
            raise ValueError(f"{self._table.name} has no columns {sorted(values.keys() - self._table.filterable)}.")
        statement = rendered(self._table.list, page_names(request).union(values), request.limit + 1)
        rows = await self._session.all(statement, **values, **page_params(request))
        return page_of([self._table.row_of(*row) for row in rows], request)
