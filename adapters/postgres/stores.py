"""Base classes of stores: named statements and pages, in a tenant's session, on the coordinator or on every node.

The statements of an area are in sql/<area>.sql, each under a line `-- name --`.
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

from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.session import Session
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant

T = TypeVar("T")
_HEADING = re.compile(r"^-- ([a-z0-9_]+) --$", re.MULTILINE)
_OPTION = re.compile(r"\s*--\? ([a-z0-9_ ]+)$")
EVER = (datetime(1970, 1, 1, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC))
"""Bounds of creation times; filters may exceed them, where arithmetic on dates would overflow."""
LOOKED = 2_000
"""Maximum number of rows that a page of a list with several filters scans; it then ends although it is not full."""


@cache
def statements(area: str, **columns: str) -> dict[str, LiteralString]:
    """Return the statements of sql/<area>.sql by name. The files are part of the package, so they count as literals.

    `columns` replace names in braces by other SQL, mostly the column list of a Table.
    """
    text = files(__package__).joinpath("sql", f"{area}.sql").read_text("utf-8")
    for name, replacement in columns.items():
        text = text.replace("{" + name + "}", replacement)
    parts = _HEADING.split(text)
    return {name: cast(LiteralString, body.strip()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def rendered(statement: LiteralString, names: frozenset[str], limit: int | None = None) -> LiteralString:
    """Return the statement with the optional lines (which end in `--? name name`) whose names are all in `names`.

    `{limit}` is a literal, because as a parameter it would make PostgreSQL plan every page again (measured: 55 µs of 140).
    """
    return _select_lines(statement, names).replace("{limit}", str(limit))


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


def page_names(page_request: PageRequest) -> frozenset[str]:
    """Return the names of the optional lines of a list's statement for the page."""
    names = {"backwards" if page_request.backwards else "forwards"}
    if page_request.key is not None:
        names.add("before" if page_request.backwards else "after")
    return frozenset(names)


def page_params(page_request: PageRequest) -> dict[str, Any]:
    """Return the parameter of the lines that `page_names` selects."""
    return {"page_key": page_request.key}


def id_of(row: Any) -> str:
    """Return the row's id, by which most lists are ordered."""
    key: str = row.id
    return key


def page_of(
    rows: list[T], page_request: PageRequest, key: Callable[[T], str] = id_of, end: str | None = None
) -> Page[T]:
    """Build a page in list order from rows in the page's direction, up to one more than its limit.

    `end` is the key of the last scanned row if the scan stopped before the page was full.
    """
    more = len(rows) > page_request.limit
    rows = rows[: page_request.limit]
    next_key = key(rows[-1]) if more else end
    if page_request.backwards:
        rows.reverse()
    return Page(tuple(rows), next_key is not None, next_key)


def values_of(row: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as parameters."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def tenant_values(tenant: Tenant) -> dict[str, Any]:
    """Return the parameters that identify a tenant."""
    return {"org": tenant.org, "livemode": tenant.livemode}


class Executor(Protocol):
    """Executor of statements."""

    async def run(self, sql: Any, **values: Any) -> int:
        """Execute a statement; return the number of affected rows."""
        ...

    async def all(self, sql: Any, **values: Any) -> list[Fetched]:
        """Return all rows of a statement."""
        ...


class NamedStatements:
    """Store with named statements in `_sql`."""

    _sql: ClassVar[Mapping[str, LiteralString]]
    _session: Executor

    async def _run(self, statement: str, /, **values: Any) -> int:
        return await self._session.run(self._sql[statement], **values)

    async def _done(self, statement: str, /, **values: Any) -> bool:
        """Execute a statement; return whether it affected one row."""
        return await self._run(statement, **values) == 1

    async def _rows(self, statement: str, /, **values: Any) -> list[Fetched]:
        return await self._session.all(self._sql[statement], **values)

    async def _first(self, make: Callable[..., T], statement: str, /, **values: Any) -> T | None:
        """Return an object made from the first row's columns, or None."""
        rows = await self._rows(statement, **values)
        return make(*rows[0]) if rows else None

    async def _every(self, make: Callable[..., T], statement: str, /, **values: Any) -> list[T]:
        """Return objects made from each row's columns."""
        return [make(*row) for row in await self._rows(statement, **values)]

    async def _value(self, statement: str, default: Any = None, /, **values: Any) -> Any:
        """Return the first column of the first row, or the default if there is no row."""
        rows = await self._rows(statement, **values)
        return rows[0][0] if rows else default

    async def _page(
        self,
        make: Callable[..., T],
        statement: str,
        /,
        page_request: PageRequest,
        key: Callable[[T], str] = id_of,
        names: Collection[str] = (),
        **values: Any,
    ) -> Page[T]:
        """Return a page of a list; `names` are the names of its optional lines for filters."""
        rows = await self._listed(statement, page_request, names, **values)
        return page_of([make(*row) for row in rows], page_request, key)

    async def _listed(
        self, statement: str, page_request: PageRequest, names: Collection[str], /, **values: Any
    ) -> list[Fetched]:
        """Return the rows of a page, plus one if there are more."""
        selected = rendered(self._sql[statement], page_names(page_request).union(names), page_request.limit + 1)
        return await self._session.all(selected, **values, **page_params(page_request))


class Declared:
    """Declaration of a store's method that executes one statement, with the parameters of the port's method of that name.

    Collections become lists and dataclasses their fields, unless `values` converts the arguments to parameters; `fixed` are further
    parameters. The statement has the method's name unless another one is given.
    """

    def __init__(
        self, executor: str, *arguments: Any, values: Callable[..., Mapping[str, Any]] | None = None, **fixed: Any
    ) -> None:
        self._executor, self._arguments, self._values, self._fixed = executor, arguments, values, fixed

    def __set_name__(self, owner: type, name: str) -> None:
        """Replace the declaration by the method."""
        declared = next((vars(base)[name] for base in owner.__mro__[1:] if name in vars(base)), None)
        if declared is None:
            raise TypeError(f"{owner.__name__}.{name} is not a method of the store's port.")
        bind, parameters = signature(declared).bind, signature(declared).parameters.values()
        lists = [item.name for item in parameters if get_origin(item.annotation) in (Collection, Sequence)]
        rows = [
            item.name for item in parameters if is_dataclass(item.annotation) and item.annotation is not PageRequest
        ]
        leading, values, fixed, execute = self._arguments, self._values, self._fixed, getattr(owner, self._executor)
        leading = leading if leading and isinstance(leading[-1], str) else (*leading, name)

        async def method(self: NamedStatements, *args: Any, **more: Any) -> Any:
            bound = bind(self, *args, **more)
            bound.apply_defaults()
            _, *arguments = bound.arguments.items()
            if values:
                return await execute(self, *leading, **fixed, **values(*(value for _, value in arguments)))
            params = dict(arguments)
            for parameter in rows:
                params = values_of(params.pop(parameter)) | params
            for parameter in lists:
                params[parameter] = list(params[parameter])
            return await execute(self, *leading, **fixed, **params)

        setattr(owner, name, method)


first: Any = partial(Declared, "_first")
"""Declares a method that returns an object made from the first row's columns, or None."""
every: Any = partial(Declared, "_every")
"""Declares a method that returns objects made from each row's columns."""
paged: Any = partial(Declared, "_page")
"""Declares a method that returns a page of objects made from each row's columns."""
value: Any = partial(Declared, "_value")
"""Declares a method that returns the first column of the first row, or None."""
run: Any = partial(Declared, "_run")
"""Declares a method that returns the number of affected rows."""
done: Any = partial(Declared, "_done")
"""Declares a method that returns whether one row was affected."""
gathered: Any = partial(Declared, "_gather_due")
"""Declares a method that returns the first rows of all nodes, each as its tenant and the remaining columns."""
earliest: Any = partial(Declared, "_earliest")
"""Declares a method that returns the earliest time over all nodes."""


class TenantStore(NamedStatements):
    """Store of the session's tenant."""

    _session: Session

    def __init__(self, session: Session) -> None:
        self._session = session

    async def fill(self, name: str, rows: Iterable[Sequence[Any]], types: Sequence[str]) -> None:
        """Replace the rows of the temporary table `new_<name>`, by the statement `copy_<name>`."""
        await self._session.run(f"DELETE FROM new_{name}".encode())
        await self._session.copy(self._sql[f"copy_{name}"], rows, types)


class SharedStore(TenantStore):
    """Store of the session's tenant in reference tables, which are written with the owner's privileges."""

    async def _run(self, statement: str, /, **values: Any) -> int:
        async with self._session.owning():
            return await super()._run(statement, **values)


class _Autocommit:
    """Executor with a transaction per statement, on a connection of `lease`."""

    def __init__(self, lease: Callable[[], AbstractAsyncContextManager[PooledConnection]]) -> None:
        self._lease = lease

    async def run(self, sql: Any, **values: Any) -> int:
        async with self._lease() as link:
            return await link.run(sql, values)

    async def all(self, sql: Any, **values: Any) -> list[Fetched]:
        async with self._lease() as link:
            return await link.rows(sql, values)


class CoordinatorStore(NamedStatements):
    """Store across tenants, whose statements are executed on the coordinator."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._session = pool, _Autocommit(pool.coordinator)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[PooledConnection]:
        """Begin a transaction on the coordinator."""
        async with self._pool.coordinator() as link, link.connection.transaction():
            yield link

    @asynccontextmanager
    async def _owning(self) -> AsyncIterator[PooledConnection]:
        """Begin a transaction on the coordinator that writes reference tables."""
        async with self._transaction() as link, link.owning():
            yield link

    async def _gather(self, statement: str, /, **values: Any) -> list[Fetched]:
        """Return the rows of all reachable nodes."""
        return [*chain(*await self._pool.scatter_best_effort(reading(self._sql[statement], **values)))]

    async def _gather_all(self, statement: str, /, **values: Any) -> list[Fetched]:
        """Return the rows of all nodes. Raises Unavailable if a node is unreachable."""
        return [*chain(*await self._pool.scatter_all(reading(self._sql[statement], **values)))]

    async def _gather_due(self, statement: str, /, *, limit: int, **values: Any) -> list[Fetched]:
        """Return the first rows of all reachable nodes by their first column, each as the tenant and the remaining columns."""
        rows = sorted(await self._gather(statement, limit=limit, **values))[:limit]
        return [(Tenant(org, livemode), *rest) for _, org, livemode, *rest in rows]

    async def _earliest(self, statement: str, /) -> datetime | None:
        """Return the earliest of the times that the reachable nodes return in one row each."""
        return min((time for (time,) in await self._gather(statement) if time is not None), default=None)


class ReplicatedStore(CoordinatorStore):
    """Store across tenants in reference tables, which are read on any node."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._session = pool, _Autocommit(pool.any_node)
