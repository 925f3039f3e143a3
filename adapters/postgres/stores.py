"""Bases of stores: named statements, and pages, for a tenant's session, at the coordinator, and on every node.

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
"""The bounds of every creation time; filters may name moments beyond, which not all arithmetic can represent."""
LOOKED = 2_000
"""Rows that a page of a list with several filters looks at before it ends although it is not full."""


@cache
def statements(area: str, **columns: str) -> dict[str, LiteralString]:
    """Return the statements of sql/<area>.sql by name. They ship with the package, so they count as literal.

    `columns` replace names in braces by lists of columns: those of a Table.
    """
    text = files(__package__).joinpath("sql", f"{area}.sql").read_text("utf-8")
    for name, listed in columns.items():
        text = text.replace("{" + name + "}", listed)
    parts = _HEADING.split(text)
    return {name: cast(LiteralString, body.strip()) for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def rendered(statement: LiteralString, names: frozenset[str], limit: int | None = None) -> LiteralString:
    """Return the statement with those optional lines, which end in `--? name name`, whose names are all given.

    `{limit}` is written out: as a parameter it would make PostgreSQL plan every page anew (measured: 55 µs of 140).
    """
    return _chosen(statement, names).replace("{limit}", str(limit))


@lru_cache(maxsize=256)  # clients choose the names: all choices of the longest statement would take megabytes
def _chosen(statement: LiteralString, names: frozenset[str]) -> LiteralString:
    lines = []
    for line in statement.splitlines():
        option = _OPTION.search(line)
        if option is None and not line.startswith("--"):
            lines.append(line)
        elif option and names.issuperset(option[1].split()):
            lines.append(line[: option.start()])
    return "\n".join(lines)


def page_names(page_request: PageRequest) -> frozenset[str]:
    """Return the optional lines of a list's statement that this page keeps (rendered)."""
    names = {"backwards" if page_request.backwards else "forwards"}
    if page_request.key is not None:
        names.add("before" if page_request.backwards else "after")
    return frozenset(names)


def page_params(page_request: PageRequest) -> dict[str, Any]:
    """Return the parameter of those lines."""
    return {"page_key": page_request.key}


def id_of(row: Any) -> str:
    """Return the row's id, by which most lists are in order."""
    key: str = row.id
    return key


def page_of(
    rows: list[T], page_request: PageRequest, key: Callable[[T], str] = id_of, end: str | None = None
) -> Page[T]:
    """Return the page in list order, made of up to one row more than its limit; its next key continues in its direction.

    `end` is the key of the last row that was looked at, when a page ends before it is full.
    """
    more = len(rows) > page_request.limit
    rows = rows[: page_request.limit]
    next_key = key(rows[-1]) if more else end
    if page_request.backwards:
        rows.reverse()
    return Page(tuple(rows), next_key is not None, next_key)


def values_of(row: Any) -> dict[str, Any]:
    """Return the fields of a dataclass by name, as parameters."""
    return {field.name: getattr(row, field.name) for field in fields(row)}


def tenant_values(tenant: Tenant) -> dict[str, Any]:
    """Return the parameters that name a tenant."""
    return {"org": tenant.org, "livemode": tenant.livemode}


class Executor(Protocol):
    """Executes statements somewhere."""

    async def run(self, sql: Any, **values: Any) -> int:
        """Execute; return how many rows it touched."""
        ...

    async def all(self, sql: Any, **values: Any) -> list[Fetched]:
        """Return every row."""
        ...


class NamedStatements:
    """A store whose statements `_sql` has by name."""

    _sql: ClassVar[Mapping[str, LiteralString]]
    _session: Executor

    async def _run(self, statement: str, /, **values: Any) -> int:
        return await self._session.run(self._sql[statement], **values)

    async def _done(self, statement: str, /, **values: Any) -> bool:
        """Execute; return whether it touched a row."""
        return await self._run(statement, **values) == 1

    async def _rows(self, statement: str, /, **values: Any) -> list[Fetched]:
        return await self._session.all(self._sql[statement], **values)

    async def _first(self, make: Callable[..., T], statement: str, /, **values: Any) -> T | None:
        """Return what is made of the first row's columns, or None."""
        rows = await self._rows(statement, **values)
        return make(*rows[0]) if rows else None

    async def _every(self, make: Callable[..., T], statement: str, /, **values: Any) -> list[T]:
        """Return what is made of each row's columns."""
        return [make(*row) for row in await self._rows(statement, **values)]

    async def _value(self, statement: str, default: Any = None, /, **values: Any) -> Any:
        """Return the first column of the first row, or the default without a row."""
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
        """Return a page of a list; `names` are the optional lines of its filters."""
        rows = await self._listed(statement, page_request, names, **values)
        return page_of([make(*row) for row in rows], page_request, key)

    async def _listed(
        self, statement: str, page_request: PageRequest, names: Collection[str], /, **values: Any
    ) -> list[Fetched]:
        """Return the rows of a page, and one more when there are more."""
        chosen = rendered(self._sql[statement], page_names(page_request).union(names), page_request.limit + 1)
        return await self._session.all(chosen, **values, **page_params(page_request))


class Declared:
    """A method of a store that is one statement, with the parameters of the port's method of that name.

    Collections are given as lists, dataclasses as their fields, unless `values` makes parameters of the arguments; `fixed` are further
    parameters. The statement has the name of the method unless another one is named.
    """

    def __init__(
        self, how: str, *what: Any, values: Callable[..., Mapping[str, Any]] | None = None, **fixed: Any
    ) -> None:
        self._how, self._what, self._values, self._fixed = how, what, values, fixed

    def __set_name__(self, owner: type, name: str) -> None:
        """Put the method in the place of its declaration."""
        declared = next((vars(base)[name] for base in owner.__mro__[1:] if name in vars(base)), None)
        if declared is None:
            raise TypeError(f"{owner.__name__}.{name}: no port of the store declares it")
        bind, parameters = signature(declared).bind, signature(declared).parameters.values()
        lists = [one.name for one in parameters if get_origin(one.annotation) in (Collection, Sequence)]
        rows = [one.name for one in parameters if is_dataclass(one.annotation) and one.annotation is not PageRequest]
        what, values, fixed, execute = self._what, self._values, self._fixed, getattr(owner, self._how)
        what = what if what and isinstance(what[-1], str) else (*what, name)

        async def method(self: NamedStatements, *args: Any, **more: Any) -> Any:
            bound = bind(self, *args, **more)
            bound.apply_defaults()
            _, *arguments = bound.arguments.items()
            if values:
                return await execute(self, *what, **fixed, **values(*(value for _, value in arguments)))
            given = dict(arguments)
            for one in rows:
                given = values_of(given.pop(one)) | given
            for one in lists:
                given[one] = list(given[one])
            return await execute(self, *what, **fixed, **given)

        setattr(owner, name, method)


first: Any = partial(Declared, "_first")
"""Declares a method that answers what is made of the first row's columns, or None."""
every: Any = partial(Declared, "_every")
"""Declares one that answers what is made of each row's columns."""
paged: Any = partial(Declared, "_page")
"""Declares one that answers a page of what is made of each row's columns."""
value: Any = partial(Declared, "_value")
"""Declares one that answers the first column of the first row, or None."""
run: Any = partial(Declared, "_run")
"""Declares one that answers how many rows it touched."""
done: Any = partial(Declared, "_done")
"""Declares one that answers whether it touched a row."""
gathered: Any = partial(Declared, "_gather_due")
"""Declares one that answers the least rows of all nodes, each as its tenant and what follows."""
earliest: Any = partial(Declared, "_earliest")
"""Declares one that answers the earliest of the times that the nodes have."""


class TenantStore(NamedStatements):
    """A store of the session's tenant."""

    _session: Session

    def __init__(self, session: Session) -> None:
        self._session = session

    async def fill(self, name: str, rows: Iterable[Sequence[Any]], types: Sequence[str]) -> None:
        """Fill the temporary table `new_<name>` with these rows alone, by the statement `copy_<name>`."""
        await self._session.run(f"DELETE FROM new_{name}".encode())
        await self._session.copy(self._sql[f"copy_{name}"], rows, types)


class SharedStore(TenantStore):
    """A store of the session's tenant in tables that lie on every node, which its role may not write."""

    async def _run(self, statement: str, /, **values: Any) -> int:
        async with self._session.owning():
            return await super()._run(statement, **values)


class _Autocommit:
    """Executes each statement in a transaction of its own, on a connection of `lease`."""

    def __init__(self, lease: Callable[[], AbstractAsyncContextManager[PooledConnection]]) -> None:
        self._lease = lease

    async def run(self, sql: Any, **values: Any) -> int:
        async with self._lease() as link:
            return await link.run(sql, values)

    async def all(self, sql: Any, **values: Any) -> list[Fetched]:
        async with self._lease() as link:
            return await link.rows(sql, values)


class CoordinatorStore(NamedStatements):
    """A store across tenants, whose statements are executed at the coordinator."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._session = pool, _Autocommit(pool.coordinator)

    @asynccontextmanager
    async def _transaction(self) -> AsyncIterator[PooledConnection]:
        """Begin a transaction at the coordinator."""
        async with self._pool.coordinator() as link, link.connection.transaction():
            yield link

    @asynccontextmanager
    async def _owning(self) -> AsyncIterator[PooledConnection]:
        """Begin a transaction at the coordinator that changes tables that lie on every node."""
        async with self._transaction() as link, link.owning():
            yield link

    async def _gather(self, statement: str, /, **values: Any) -> list[Fetched]:
        """Return the rows of all nodes within reach."""
        return [*chain(*await self._pool.scatter_best_effort(reading(self._sql[statement], **values)))]

    async def _gather_all(self, statement: str, /, **values: Any) -> list[Fetched]:
        """Return the rows of all nodes. Raises Unavailable when one is out of reach."""
        return [*chain(*await self._pool.scatter_all(reading(self._sql[statement], **values)))]

    async def _gather_due(self, statement: str, /, *, limit: int, **values: Any) -> list[Fetched]:
        """Return the least rows of all nodes within reach, in order, each as the tenant and what follows: their first column is their order."""
        rows = sorted(await self._gather(statement, limit=limit, **values))[:limit]
        return [(Tenant(org, livemode), *rest) for _, org, livemode, *rest in rows]

    async def _earliest(self, statement: str, /) -> datetime | None:
        """Return the earliest of the times that the nodes within reach have in one row each."""
        return min((time for (time,) in await self._gather(statement) if time is not None), default=None)


class ReplicatedStore(CoordinatorStore):
    """A store across tenants of tables that lie on every node: any of them reads."""

    def __init__(self, pool: Pool) -> None:
        self._pool, self._session = pool, _Autocommit(pool.any_node)
