"""Base classes of stores, which execute named SQL statements for a tenant, on the coordinator or on every node.

The statements of an area are in sql/<area>.sql, each under a heading `-- name --`. A line of a statement that ends with a
comment `--? name` is optional: the line is executed only if the caller selects all names in the comment, such as the
names of filters.
"""

import re
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from importlib.resources import files
from inspect import signature
from itertools import chain
from typing import Any, ClassVar, LiteralString, Protocol, TypeVar, cast, get_origin

from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, create_row_reader
from adapters.postgres.session import TenantSession
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant

T = TypeVar("T")
_HEADING = re.compile(r"^-- ([a-z0-9_]+) --$", re.MULTILINE)
_OPTION = re.compile(r"\s*--\? ([a-z0-9_ ]+)$")
TIME_BOUNDS = (datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
"""Bounds to which times in filters are limited, because arithmetic on later or earlier times would overflow."""
SCAN_LIMIT = 2_000
"""Maximum number of rows that a list with several filters scans for a page.

After these rows, the page ends even if it has fewer items than its limit.
"""


@cache
def load_statements(area: str, **replacements: str) -> dict[str, LiteralString]:
    """Return the statements of sql/<area>.sql by name.

    `replacements` are texts by name, such as the column list of a Table. Each name in braces is replaced by its text.
    """
    # the files are part of the package, so their text counts as literals
    text = files(__package__).joinpath("sql", f"{area}.sql").read_text("utf-8")
    for name, replacement in replacements.items():
        text = text.replace("{" + name + "}", replacement)
    parts = _HEADING.split(text)
    return {name: cast(LiteralString, body.strip()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def render_statement(statement: LiteralString, line_names: frozenset[str], limit: int | None = None) -> LiteralString:
    """Return the statement without the optional lines that have a name outside `line_names`.

    An optional line ends in its names, as in `AND status = %(status)s --? status`. `limit` replaces `{limit}`.
    """
    # As a parameter, the limit would make PostgreSQL plan every page again (measured: 55 µs of 140).
    return _select_lines(statement, line_names).replace("{limit}", str(limit))


@lru_cache(
    maxsize=256
)  # clients determine the names, and all combinations of the longest statement would take megabytes
def _select_lines(statement: LiteralString, names: frozenset[str]) -> LiteralString:
    lines = []
    for line in statement.splitlines():
        option = _OPTION.search(line)
        if option is None and not line.startswith("--"):
            lines.append(line)
        elif option and names.issuperset(option[1].split()):
            lines.append(line[: option.start()])
    return "\n".join(lines)


def build_page_line_names(page_request: PageRequest) -> frozenset[str]:
    """Return the names of the optional lines that a list's statement needs for the requested page."""
    names = {"backwards" if page_request.backwards else "forwards"}
    if page_request.key is not None:
        names.add("before" if page_request.backwards else "after")
    return frozenset(names)


def build_page_params(page_request: PageRequest) -> dict[str, Any]:
    """Return the parameters of the optional lines that `build_page_line_names` selects."""
    return {"page_key": page_request.key}


def get_row_id(row: Any) -> str:
    """Return the ID of a row. Most lists are ordered by ID."""
    key: str = row.id
    return key


def build_page(
    rows: list[T], page_request: PageRequest, get_key: Callable[[T], str] = get_row_id, scan_end: str | None = None
) -> Page[T]:
    """Build a page in the order of the list.

    Args:
        rows: Rows in the direction of the page, at most one more than its limit.
        page_request: The requested page.
        get_key: Function that returns a row's key in the order of the list.
        scan_end: Key of the last scanned row if the scan stopped before the page was full; otherwise None.
    """
    more = len(rows) > page_request.limit
    rows = rows[: page_request.limit]
    next_key = get_key(rows[-1]) if more else scan_end
    if page_request.backwards:
        rows.reverse()
    return Page(tuple(rows), next_key is not None, next_key)


def build_field_params(row: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as statement parameters by name."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def build_tenant_params(tenant: Tenant) -> dict[str, Any]:
    """Return the statement parameters that identify a tenant."""
    return {"org": tenant.org, "livemode": tenant.livemode}


class Executor(Protocol):
    """Session or connection pool that executes the statements of a store."""

    async def run(self, sql: Any, **values: Any) -> int:
        """Execute an SQL statement; return the number of affected rows."""
        ...

    async def fetch_rows(self, sql: Any, **values: Any) -> list[DatabaseRow]:
        """Execute an SQL statement; return all rows."""
        ...


class NamedStatementStore:
    """Base class of stores whose statements have names; the attribute `_sql` contains the statements."""

    _sql: ClassVar[Mapping[str, LiteralString]]
    _session: Executor

    async def _run(self, statement: str, /, **values: Any) -> int:
        return await self._session.run(self._sql[statement], **values)

    async def _run_one(self, statement: str, /, **values: Any) -> bool:
        """Execute an SQL statement; return whether it affected exactly one row."""
        return await self._run(statement, **values) == 1

    async def _fetch_rows(self, statement: str, /, **values: Any) -> list[DatabaseRow]:
        return await self._session.fetch_rows(self._sql[statement], **values)

    async def _fetch_first(self, build: Callable[..., T], statement: str, /, **values: Any) -> T | None:
        """Execute an SQL statement; return the object that `build` makes from the first row's columns, or None."""
        rows = await self._fetch_rows(statement, **values)
        return build(*rows[0]) if rows else None

    async def _fetch_all(self, build: Callable[..., T], statement: str, /, **values: Any) -> list[T]:
        """Execute an SQL statement; return the objects that `build` makes from the columns of each row."""
        return [build(*row) for row in await self._fetch_rows(statement, **values)]

    async def _fetch_scalar(self, statement: str, default: Any = None, /, **values: Any) -> Any:
        """Execute an SQL statement; return the first column of the first row, or the default if there is no row."""
        rows = await self._fetch_rows(statement, **values)
        return rows[0][0] if rows else default

    async def _fetch_page(
        self,
        build: Callable[..., T],
        statement: str,
        /,
        page_request: PageRequest,
        key: Callable[[T], str] = get_row_id,
        names: Collection[str] = (),
        **values: Any,
    ) -> Page[T]:
        """Return a page of a list.

        `key` returns the key of an object in the order of the list. `names` are the names of the optional lines that
        the list's filters need.
        """
        rows = await self._fetch_page_rows(statement, page_request, names, **values)
        return build_page([build(*row) for row in rows], page_request, key)

    async def _fetch_page_rows(
        self, statement: str, page_request: PageRequest, names: Collection[str], /, **values: Any
    ) -> list[DatabaseRow]:
        """Return the rows of a page, plus one row if more follow.

        `names` are the names of the optional lines that the list's filters need.
        """
        selected = render_statement(
            self._sql[statement], build_page_line_names(page_request).union(names), page_request.limit + 1
        )
        return await self._session.fetch_rows(selected, **values, **build_page_params(page_request))


class StatementMethod:
    """Declaration of a store's method that executes one statement.

    The method has the parameters of the port's method with the same name. By default, the statement has the name of the
    method.
    """

    def __init__(
        self, method_name: str, *arguments: Any, values: Callable[..., Mapping[str, Any]] | None = None, **fixed: Any
    ) -> None:
        """Declare a method.

        Args:
            method_name: Name of the method of NamedStatementStore that executes the statement.
            *arguments: First arguments of that method. If the last one is a text, it is the statement's name.
            values: Function that converts the method's arguments to statement parameters. By default, collections are
                passed as lists and dataclasses as their fields.
            **fixed: Additional parameters with constant values.
        """
        self._method_name, self._arguments, self._values, self._fixed = method_name, arguments, values, fixed

    def __set_name__(self, owner: type, name: str) -> None:
        """Replace the declaration in the class by a method that executes the statement."""
        declared = next((vars(base)[name] for base in owner.__mro__[1:] if name in vars(base)), None)
        if declared is None:
            raise TypeError(f"{owner.__name__}.{name} is not a method of the store's port.")
        bind, parameters = signature(declared).bind, signature(declared).parameters.values()
        lists = [item.name for item in parameters if get_origin(item.annotation) in (Collection, Sequence)]
        rows = [
            item.name for item in parameters if is_dataclass(item.annotation) and item.annotation is not PageRequest
        ]
        leading, values, fixed, execute = self._arguments, self._values, self._fixed, getattr(owner, self._method_name)
        leading = leading if leading and isinstance(leading[-1], str) else (*leading, name)

        async def method(self: NamedStatementStore, *args: Any, **more: Any) -> Any:
            bound = bind(self, *args, **more)
            bound.apply_defaults()
            _, *arguments = bound.arguments.items()
            if values:
                return await execute(self, *leading, **fixed, **values(*(value for _, value in arguments)))
            params = dict(arguments)
            for parameter in rows:
                params = build_field_params(params.pop(parameter)) | params
            for parameter in lists:
                params[parameter] = list(params[parameter])
            return await execute(self, *leading, **fixed, **params)

        setattr(owner, name, method)


fetch_first: Any = partial(StatementMethod, "_fetch_first")
"""Declaration of a method that returns an object built from the first row's columns, or None."""
fetch_all: Any = partial(StatementMethod, "_fetch_all")
"""Declaration of a store method that executes a named statement and returns one object per row."""
fetch_page: Any = partial(StatementMethod, "_fetch_page")
"""Declaration of a method that returns a page of objects built from the columns of each row."""
fetch_scalar: Any = partial(StatementMethod, "_fetch_scalar")
"""Declaration of a method that returns the first column of the first row, or None."""
execute_count: Any = partial(StatementMethod, "_run")
"""Declaration of a method that returns the number of affected rows."""
execute_one: Any = partial(StatementMethod, "_run_one")
"""Declaration of a method that returns whether exactly one row was affected."""
gather_due: Any = partial(StatementMethod, "_gather_due")
"""Declaration of a method that returns the earliest rows of all reachable nodes together (see `_gather_due`)."""
gather_earliest: Any = partial(StatementMethod, "_gather_earliest")
"""Declaration of a method that executes a statement on all reachable nodes and returns the earliest time, or None."""


class TenantStore(NamedStatementStore):
    """Store of one tenant, whose statements are executed in the tenant's session."""

    _session: TenantSession

    def __init__(self, session: TenantSession) -> None:
        self._session = session

    async def fill_temporary_table(self, name: str, rows: Iterable[Sequence[Any]], column_types: Sequence[str]) -> None:
        """Replace the rows of the temporary table `new_<name>` by means of the statement `copy_<name>`.

        Args:
            name: Name of the table without `new_`.
            rows: Rows, each with one value per column.
            column_types: PostgreSQL types of the columns.
        """
        await self._session.run(f"DELETE FROM new_{name}".encode())
        await self._session.copy_rows(self._sql[f"copy_{name}"], rows, column_types)


class ReferenceTableStore(TenantStore):
    """Store of one tenant in reference tables, which are written with the owner's privileges."""

    async def _run(self, statement: str, /, **values: Any) -> int:
        async with self._session.as_owner():
            return await super()._run(statement, **values)


class _Autocommit:
    """Executor that runs each statement in a separate transaction, on a connection from `connect`."""

    def __init__(self, connect: Callable[[], AbstractAsyncContextManager[PooledConnection]]) -> None:
        self._connect = connect

    async def run(self, sql: Any, **values: Any) -> int:
        async with self._connect() as connection:
            return await connection.run(sql, values)

    async def fetch_rows(self, sql: Any, **values: Any) -> list[DatabaseRow]:
        async with self._connect() as connection:
            return await connection.fetch_rows(sql, values)


class CoordinatorStore(NamedStatementStore):
    """Store of data of all tenants, whose statements are executed on the coordinator."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._session = pool, _Autocommit(pool.connect_to_coordinator)

    @asynccontextmanager
    async def _begin(self) -> AsyncIterator[PooledConnection]:
        """Begin a transaction on the coordinator."""
        async with self._pool.connect_to_coordinator() as connection, connection.driver_connection.transaction():
            yield connection

    @asynccontextmanager
    async def _begin_as_owner(self) -> AsyncIterator[PooledConnection]:
        """Begin a transaction on the coordinator with the owner's privileges, to write reference tables."""
        async with self._begin() as connection, connection.as_owner():
            yield connection

    async def _gather(self, statement: str, /, **values: Any) -> list[DatabaseRow]:
        """Execute an SQL statement on all reachable nodes; return the rows of all of them."""
        return [*chain(*await self._pool.scatter_best_effort(create_row_reader(self._sql[statement], **values)))]

    async def _gather_all(self, statement: str, /, **values: Any) -> list[DatabaseRow]:
        """Execute an SQL statement on all nodes; return the rows of all of them. Raises Unavailable if one is unreachable."""
        return [*chain(*await self._pool.scatter_all(create_row_reader(self._sql[statement], **values)))]

    async def _gather_due(self, statement: str, /, *, limit: int, **values: Any) -> list[DatabaseRow]:
        """Execute an SQL statement on all reachable nodes; return the `limit` earliest rows of all nodes together.

        The first columns of the statement are the time, the organisation and the mode. A returned row has the tenant in
        place of these columns.
        """
        rows = sorted(await self._gather(statement, limit=limit, **values))[:limit]
        return [(Tenant(org, livemode), *rest) for _, org, livemode, *rest in rows]

    async def _gather_earliest(self, statement: str, /) -> datetime | None:
        """Execute an SQL statement on all reachable nodes; return the earliest of their times, or None."""
        return min((time for (time,) in await self._gather(statement) if time is not None), default=None)

    async def _delete_by_org(self, list_statement: str, statement: str, **values: Any) -> None:
        """Delete rows on each reachable node; the first statement returns the organisations that have such rows."""

        async def delete(connection: PooledConnection) -> None:
            listing = connection.expand_shards(self._sql[list_statement])
            orgs = [org for (org,) in await connection.fetch_rows(listing, values)]
            await connection.run(self._sql[statement], {"orgs": orgs, **values})

        await self._pool.scatter_best_effort(delete)


class ReferenceTableReader(CoordinatorStore):
    """Store of data of all tenants in reference tables, whose statements are executed on any reachable node."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._session = pool, _Autocommit(pool.connect_to_any)
