"""Mapping of dataclasses to rows and tables: one column per field, with codecs for the fields that need them.

The statements of a plain store (select, insert, versioned update, remove, page) are generated from one declaration. All
of them contain organisation and mode, in addition to row-level security.
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

from adapters.postgres.errors import CONFLICT_MESSAGES
from adapters.postgres.session import TenantSession
from adapters.postgres.stores import TenantStore, build_page, build_page_line_names, build_page_params, render_statement
from domain.kernel.errors import NotFound, PreconditionFailed
from domain.kernel.json_values import to_json_value
from domain.kernel.paging import Filter, Page, PageRequest

R = TypeVar("R")
Row = dict[str, Any]
TENANT_CONDITION = " WHERE org = %(org)s AND livemode = %(livemode)s"
_EMPTY: Final[Mapping[str, Any]] = MappingProxyType({})
_ENCODE = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class ColumnCodec:
    """Codec of a field that is stored in one column; None is stored as NULL.

    Attributes:
        name: Name of the column.
        to_column: Function that converts a field's value for the column; None to store the value unchanged.
        from_column: Function that converts a column's value for the field; None to return the value unchanged.
    """

    name: str
    to_column: Callable[[Any], Any] | None = None
    from_column: Callable[[Any], Any] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in which the field is stored."""
        return (self.name,)

    def dump(self, value: Any) -> Sequence[Any]:
        """Convert a field's value to the values of the field's columns."""
        return (value if value is None or self.to_column is None else self.to_column(value),)

    def load(self, stored: Sequence[Any]) -> Any:
        """Convert the values of the field's columns to the field's value."""
        value = stored[0]
        return value if value is None or self.from_column is None else self.from_column(value)


@dataclass(frozen=True, eq=False)
class MultiColumnCodec:
    """Codec of a field that contains a dataclass and is stored in several columns, one per field of the dataclass.

    None is stored as NULL in all columns; the first column of other values is never NULL.

    Attributes:
        kind: Type of the dataclass.
        column_by_field: Names of the columns by the dataclass's fields.
    """

    kind: type
    column_by_field: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns in which the field is stored."""
        return tuple(self.column_by_field.values())

    def dump(self, value: Any) -> Sequence[Any]:
        """Convert a field's value to the values of the field's columns."""
        return [None if value is None else codec.dump(getattr(value, name))[0] for name, codec in self._codecs]

    def load(self, stored: Sequence[Any]) -> Any:
        """Convert the values of the field's columns to the field's value."""
        if stored[0] is None:
            return None
        parts = zip(self._codecs, stored, strict=True)
        return self.kind(**{name: codec.load((value,)) for (name, codec), value in parts})

    @cached_property
    def _codecs(self) -> list[tuple[str, ColumnCodec]]:
        """Name and codec of each of the dataclass's fields, in the order of the columns."""
        hints = get_type_hints(self.kind)
        return [(name, choose_codec(column, hints[name])) for name, column in self.column_by_field.items()]


Codec = ColumnCodec | MultiColumnCodec
"""Codec of a field: the columns in which the field is stored, and the conversions to and from them."""


def choose_codec(name: str, kind: Any) -> ColumnCodec:
    """Return the codec for a field of the type `kind` that is stored in the column `name`.

    Texts, numbers, booleans, bytes and times are stored unchanged; enums by value; tuples and sets of texts or numbers
    as arrays. All other types are stored as jsonb, without members that are None.
    """
    kind = _strip_optional(kind)
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (tuple, frozenset) and not is_dataclass(inner[0]):
        return ColumnCodec(name, sorted if origin is frozenset else list, origin)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ColumnCodec(name, str, kind)
    if origin in (tuple, frozenset) or is_dataclass(kind):
        return ColumnCodec(name, encode_json, lambda stored: msgspec.convert(stored, kind))
    if origin is not None and issubclass(origin, Mapping):
        return ColumnCodec(name, encode_json)
    return ColumnCodec(name)


def _strip_optional(kind: Any) -> Any:
    if get_origin(kind) in (Union, UnionType):
        [kind] = [part for part in get_args(kind) if part is not NoneType]
    return kind


def encode_json(value: Any) -> Jsonb:
    """Encode a value as a jsonb parameter, with times in ISO 8601 format."""
    return Jsonb(to_json_value(value, datetime.isoformat), dumps=_ENCODE)


@dataclass(frozen=True, eq=False)
class RowMapping(Generic[R]):
    """Mapping of a dataclass to the columns of a row, in the order of the dataclass's fields.

    Attributes:
        kind: Type of the dataclass.
        special_codecs: Codecs of fields whose type does not determine the codec, by field.
        expression_by_field: SQL expressions by field. These fields are read by their expression, and never written.
    """

    kind: type[R]
    special_codecs: Mapping[str, Codec] = field(default_factory=dict, kw_only=True)
    expression_by_field: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    @cached_property
    def codecs(self) -> Mapping[str, Codec]:
        """Codecs by field, in the order of the dataclass's fields."""
        hints = get_type_hints(self.kind)
        return {name: self.special_codecs.get(name) or choose_codec(name, kind) for name, kind in hints.items()}

    @cached_property
    def stored_columns(self) -> tuple[str, ...]:
        """Names of the columns that are written."""
        return tuple(
            name
            for field_, codec in self.codecs.items()
            if field_ not in self.expression_by_field
            for name in codec.columns
        )

    def build_column_list(self, alias: str = "") -> str:
        """Return the column list of a SELECT statement, in the order that `build_from_row` expects.

        If `alias` is not empty, each column is qualified by this alias of the table.
        """
        names = [
            self.expression_by_field.get(field_) or name
            for field_, codec in self.codecs.items()
            for name in codec.columns
        ]
        return ", ".join(f"{alias}.{name}" if alias else name for name in names)

    @cached_property
    def column_count(self) -> int:
        """Number of columns from which `build_from_row` builds an object."""
        return sum(len(codec.columns) for codec in self.codecs.values())

    def build_from_row(self, *fetched: Any) -> R:
        """Build the object from the first columns of a fetched row."""
        values: Row = {}
        first_column = 0
        for name, codec in self.codecs.items():
            column_count = len(codec.columns)
            values[name] = codec.load(fetched[first_column : first_column + column_count])
            first_column += column_count
        return self.kind(**values)

    def build_params(self, row: R) -> Row:
        """Return the values of the written columns of an object, as statement parameters by name."""
        values: Row = {}
        for name, codec in self.codecs.items():
            if name not in self.expression_by_field:
                values.update(zip(codec.columns, codec.dump(getattr(row, name)), strict=True))
        return values


@dataclass(frozen=True, eq=False)
class Table(RowMapping[R]):
    """Mapping of a dataclass to a table.

    Attributes:
        name: Name of the table.
        extra_columns: Columns without a field, with their values in new rows.
        conflicts: Messages by unique index. A violation of the index raises a Conflict with the message.
        list_expression_by_field: SQL expressions that lists read instead of fields that are too large for many rows.
    """

    name: str
    extra_columns: Mapping[str, Any] = field(default_factory=dict, kw_only=True)
    conflicts: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    list_expression_by_field: Mapping[str, str] = field(default_factory=dict, kw_only=True)

    def __post_init__(self) -> None:
        """Register the messages of conflicts for the translation of database errors."""
        CONFLICT_MESSAGES.update(self.conflicts)

    @cached_property
    def filterable_columns(self) -> frozenset[str]:
        """Names of the columns that lists can be filtered by."""
        return frozenset(self.stored_columns) | self.expression_by_field.keys()

    @cached_property
    def select_statement(self) -> LiteralString:
        """Statement that selects all rows of a tenant."""
        return f"SELECT {self.build_column_list()} FROM {self.name}{TENANT_CONDITION}"

    @cached_property
    def get_statement(self) -> LiteralString:
        """Statement that selects the row with an ID."""
        return f"{self.select_statement} AND id = %(id)s"

    @cached_property
    def get_locked_statement(self) -> LiteralString:
        """Statement that selects and locks the row with an ID."""
        return f"{self.get_statement} FOR UPDATE"

    @cached_property
    def insert_statement(self) -> LiteralString:
        """Statement that inserts a row."""
        names = ("org", "livemode", *self.stored_columns, *self.extra_columns)
        values = ", ".join(f"%({name})s" for name in names)
        return f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({values})"

    @cache  # noqa: B019  tables live as long as the process
    def build_update_statement(self, *more: str) -> LiteralString:
        """Return the statement that updates a row by its ID.

        The row must have the version in the parameter `expected`; NULL permits any version. `more` are the names of
        extra columns to set.
        """
        settings = ", ".join(f"{name} = %({name})s" for name in (*self.stored_columns, *more) if name != "id")
        versioned = (
            " AND (%(expected)s::integer IS NULL OR version = %(expected)s)" if "version" in self.stored_columns else ""
        )
        return f"UPDATE {self.name} SET {settings}{TENANT_CONDITION} AND id = %(id)s{versioned}"

    @cached_property
    def delete_statement(self) -> LiteralString:
        """Statement that deletes the row with an ID."""
        return f"DELETE FROM {self.name}{TENANT_CONDITION} AND id = %(id)s"

    @cached_property
    def list_statement(self) -> LiteralString:
        """Statement that selects a page of rows, newest first, with an optional condition for each filterable column."""
        columns = {
            name: f"({self.expression_by_field[name]})" if name in self.expression_by_field else name
            for name in sorted(self.filterable_columns)
        }
        conditions = "\n".join(f"    AND {column} = %({name})s --? {name}" for name, column in columns.items())
        listed = RowMapping(
            self.kind,
            special_codecs=self.special_codecs,
            expression_by_field={**self.expression_by_field, **self.list_expression_by_field},
        )
        return (
            f"SELECT {listed.build_column_list()} FROM {self.name}{TENANT_CONDITION}\n{conditions}\n    AND id < %(page_key)s --? after\n    AND id > %(page_key)s --? before\n"
            "ORDER BY id DESC LIMIT {limit} --? forwards\nORDER BY id ASC LIMIT {limit} --? backwards"
        )


class TableStore(TenantStore, Generic[R]):
    """Store (ports/unit_of_work.py) of the objects in one table.

    The attribute `_table` of a subclass or the constructor sets the table.
    """

    _table: Table[R]

    def __init__(self, session: TenantSession, table: Table[R] | None = None) -> None:
        super().__init__(session)
        if table is not None:
            self._table = table

    async def get(self, id: str, *, lock: bool = False) -> R | None:
        row = await self._session.fetch_row(
            self._table.get_locked_statement if lock else self._table.get_statement, id=id
        )
        return self._table.build_from_row(*row) if row else None

    async def add(self, row: R, **more: Any) -> None:
        await self._session.run(
            self._table.insert_statement, **{**self._table.extra_columns, **self._table.build_params(row), **more}
        )

    async def add_all(self, rows: Sequence[R]) -> None:
        table = self._table
        await self._session.insert_all(table.name, [{**table.extra_columns, **table.build_params(row)} for row in rows])

    async def save(self, row: R, *, expected_version: int | None = None, **more: Any) -> None:
        values = self._table.build_params(row) | more
        if not await self._session.run(self._table.build_update_statement(*more), expected=expected_version, **values):
            if expected_version is None:
                raise NotFound
            raise PreconditionFailed("The object has changed since you read it. Read it again and retry.")

    async def remove(self, id: str) -> bool:
        return await self._session.run(self._table.delete_statement, id=id) == 1

    async def page(self, request: PageRequest, filter: Filter | None = None) -> Page[R]:
        values = filter.get_conditions() if filter else _EMPTY
        if not self._table.filterable_columns.issuperset(values):
            raise ValueError(
                f"{self._table.name} has no columns {sorted(values.keys() - self._table.filterable_columns)}."
            )
        statement = render_statement(
            self._table.list_statement, build_page_line_names(request).union(values), request.limit + 1
        )
        rows = await self._session.fetch_rows(statement, **values, **build_page_params(request))
        return build_page([self._table.build_from_row(*row) for row in rows], request)
