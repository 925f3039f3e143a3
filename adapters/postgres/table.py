"""A resource's table, made from the domain's dataclass: a column a field, and codecs for the exceptions.

From one declaration come the statements of a plain store (select, insert, versioned update, remove, page). Every one
of them names organisation and mode; row-level security stands behind.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Final, Generic, LiteralString, TypeVar, get_type_hints

from adapters.postgres.columns import Codec, codec_of
from adapters.postgres.errors import CONFLICTS
from adapters.postgres.listing import page_names, page_of, page_params
from adapters.postgres.session import Fetched, Session
from adapters.postgres.sqlfile import rendered
from domain.kernel.errors import NotFound, PreconditionFailed
from domain.kernel.paging import Filter, Page, PageRequest

R = TypeVar("R")
Row = dict[str, Any]
OWN: Final = " WHERE org = %(org)s AND livemode = %(livemode)s"
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Table(Generic[R]):
    """The rows of `kind` in the table `name`.

    `exceptions` are the codecs of fields that are not kept by their type (spread over columns, say), `computed` fields that are read by an expression and
    never written, `beside` columns that are no fields with what a new row has in them, `conflicts` unique indexes with
    the sentence of the Conflict that breaking them raises.
    """

    kind: type[R]
    name: str
    exceptions: Mapping[str, Codec] = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, Any] = field(default_factory=dict)
    conflicts: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Have the driver's errors translated."""
        CONFLICTS.update(self.conflicts)

    @cached_property
    def codecs(self) -> Mapping[str, Codec]:
        """How each field is kept, in the order of the dataclass."""
        hints = get_type_hints(self.kind)
        return {name: self.exceptions.get(name) or codec_of(name, kind) for name, kind in hints.items()}

    @cached_property
    def stored(self) -> tuple[str, ...]:
        """The columns that are written."""
        return tuple(
            name for field_, codec in self.codecs.items() if field_ not in self.computed for name in codec.columns
        )

    def columns(self, alias: str = "") -> str:
        """What `row_of` reads, for a select list; with an alias of the table if it needs one."""
        names = [self.computed.get(field_) or name for field_, codec in self.codecs.items() for name in codec.columns]
        return ", ".join(f"{alias}.{name}" if alias else name for name in names)

    @cached_property
    def filterable(self) -> frozenset[str]:
        """What lists may be filtered by."""
        return frozenset(self.stored) | self.computed.keys()

    @cached_property
    def width(self) -> int:
        """How many columns that is."""
        return sum(len(codec.columns) for codec in self.codecs.values())

    @cached_property
    def select(self) -> LiteralString:
        """Every row of the tenant."""
        return f"SELECT {self.columns()} FROM {self.name}{OWN}"

    @cached_property
    def get(self) -> LiteralString:
        return f"{self.select} AND id = %(id)s"

    @cached_property
    def get_locked(self) -> LiteralString:
        """The row with that id, kept from being changed by others."""
        return f"{self.get} FOR UPDATE"

    @cached_property
    def insert(self) -> LiteralString:
        """A new row."""
        names = ("org", "livemode", *self.stored, *self.beside)
        values = ", ".join(f"%({name})s" for name in names)
        return f"INSERT INTO {self.name} ({', '.join(names)}) VALUES ({values})"

    @cache  # noqa: B019  tables live as long as the process
    def update(self, *more: str) -> LiteralString:
        """The new state of the row with that id, if it is of the version `expected` (any for NULL)."""
        settings = ", ".join(f"{name} = %({name})s" for name in (*self.stored, *more) if name != "id")
        versioned = " AND (%(expected)s::integer IS NULL OR version = %(expected)s)" if "version" in self.stored else ""
        return f"UPDATE {self.name} SET {settings}{OWN} AND id = %(id)s{versioned}"

    @cached_property
    def remove(self) -> LiteralString:
        return f"DELETE FROM {self.name}{OWN} AND id = %(id)s"

    @cached_property
    def list(self) -> LiteralString:
        """A page of the rows, newest first, with an optional line for each column that may have to equal a parameter."""
        known = {
            name: f"({self.computed[name]})" if name in self.computed else name for name in sorted(self.filterable)
        }
        given = "\n".join(f"    AND {column} = %({name})s --? {name}" for name, column in known.items())
        return (
            f"{self.select}\n{given}\n    AND id < %(page_key)s --? after\n    AND id > %(page_key)s --? before\n"
            "ORDER BY id DESC LIMIT {limit} --? forwards\nORDER BY id ASC LIMIT {limit} --? backwards"
        )

    def row_of(self, fetched: Fetched) -> R:
        """The row out of `columns`."""
        values: Row = {}
        at = 0
        for name, codec in self.codecs.items():
            width = len(codec.columns)
            values[name] = codec.load(fetched[at : at + width])
            at += width
        return self.kind(**values)

    def values(self, row: R) -> Row:
        """The parameters that `stored` columns take."""
        values: Row = {}
        for name, codec in self.codecs.items():
            if name not in self.computed:
                values.update(zip(codec.columns, codec.dump(getattr(row, name)), strict=True))
        return values


class TableStore(Generic[R]):
    """ports.store.Store on a table."""

    def __init__(self, session: Session, table: Table[R]) -> None:
        self.session, self.table = session, table

    async def get(self, id: str, *, lock: bool = False) -> R | None:
        return await self.first(self.table.get_locked if lock else self.table.get, id=id)

    async def first(self, statement: LiteralString, **values: Any) -> R | None:
        """The first row that the statement selects."""
        fetched = await self.session.one(statement, **values)
        return self.table.row_of(fetched) if fetched else None

    async def add(self, row: R, **more: Any) -> None:
        await self.session.run(self.table.insert, **{**self.table.beside, **self.table.values(row), **more})

    async def add_all(self, rows: Sequence[R]) -> None:
        await self.session.insert_all(
            self.table.name, [{**self.table.beside, **self.table.values(row)} for row in rows]
        )

    async def save(self, row: R, *, expected_version: int | None = None, **more: Any) -> None:
        values = self.table.values(row)
        if not await self.session.run(self.table.update(*more), expected=expected_version, **values, **more):
            if expected_version is None:
                raise NotFound
            raise PreconditionFailed("It has changed since it was read; read it again and retry.")

    async def remove(self, id: str) -> bool:
        return await self.session.run(self.table.remove, id=id) == 1

    async def page(self, request: PageRequest, filter: Filter | None = None) -> Page[R]:
        given = filter.given() if filter else _NOTHING
        if not self.table.filterable.issuperset(given):
            raise ValueError(f"{self.table.name} has no columns {sorted(given.keys() - self.table.filterable)}.")
        statement = rendered(self.table.list, page_names(request).union(given), request.limit + 1)
        rows = await self.session.all(statement, **given, **page_params(request))
        return page_of([self.table.row_of(row) for row in rows], request, _id)


def _id(row: Any) -> str:
    key: str = row.id
    return key
