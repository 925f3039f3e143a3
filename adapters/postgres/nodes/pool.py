"""Connections to where things are: a tenant's to the node that holds it, others to one node, to any, or to each."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, LiteralString, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from adapters.postgres.errors import StaleRoute, is_stale, may_be_stale, translate, translated
from adapters.postgres.nodes.connecting import connect, set_clock
from adapters.postgres.nodes.node_pool import NodePool, PooledConnection
from adapters.postgres.nodes.placement import COORDINATOR, CataloguePlacement, Node, Parts, Placement
from adapters.postgres.nodes.router import Router
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant

T = TypeVar("T")
Cursor = psycopg.AsyncCursor[tuple[Any, ...]]
Work = Callable[[PooledConnection], Awaitable[T]]
LOG: Final = logging.getLogger("joinery.nodes")


def reading(statement: LiteralString, **values: Any) -> Work[list[tuple[Any, ...]]]:
    """What the statement reads of the tenants on a node, for `each` and `every`."""

    async def read(link: PooledConnection) -> list[tuple[Any, ...]]:
        return await (await link.cursor.execute(link.here(statement), values)).fetchall()

    return read


_ANCHORED: Final = """
SELECT coalesce(array_agg('public.jobs_' || s.shardid), '{}') FROM pg_dist_shard s
JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_local_group g USING (groupid)
WHERE s.logicalrelid = 'public.jobs'::regclass
"""


class _Divided(Exception):
    """What of the tables lies on a node is other than was remembered."""


async def _still_here(link: PooledConnection, parts: Parts) -> bool:
    """Whether the parts are what the node itself takes for its own: one that was moved away lies there yet, as it was then."""
    row = await (await link.connection.execute(_ANCHORED)).fetchone()
    return row is not None and sorted(row[0]) == sorted(parts.get("jobs", ()))


class Lease:
    """A connection for as long as the context lasts; its errors leave as the domain's."""

    __slots__ = ("_link", "_node", "_route", "_scope")

    def __init__(self, route: Callable[[], Awaitable[NodePool]], scope: Tenant | None) -> None:
        self._route, self._scope = route, scope

    async def __aenter__(self) -> PooledConnection:
        """Take one. Raises Unavailable."""
        self._node = await self._route()
        self._link = await self._node.take(self._scope)
        return self._link

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back; drivers' errors are translated."""
        await self._node.give_back(self._link)
        if error is not None:
            await self._raise(error)

    async def _raise(self, error: BaseException) -> None:
        """What the error means, if that is another one."""
        if (known := translate(error)) is not error:
            raise known from error


class AnyLease(Lease):
    """A connection to the first of several nodes that answers."""

    __slots__ = ("_routes",)

    def __init__(self, routes: Callable[[], Awaitable[Sequence[NodePool]]]) -> None:
        self._routes, self._scope = routes, None

    async def __aenter__(self) -> PooledConnection:
        """Take one. Raises Unavailable."""
        missed: Unavailable | None = None
        for node in await self._routes():
            try:
                self._link, self._node = await node.take(None), node
            except Unavailable as error:
                missed = error
            else:
                return self._link
        raise missed or Unavailable("The database is out of reach.", retry_after=2)


class TenantLease(Lease):
    """A tenant's connection, on its node. Raises StaleRoute when that turns out to be another by now."""

    __slots__ = ("_org", "_pool")

    def __init__(self, pool: "Pool", tenant: Tenant) -> None:
        self._pool, self._scope, self._org = pool, tenant, tenant.org

    async def __aenter__(self) -> PooledConnection:
        """Take one. Raises Unavailable."""
        self._node = self._pool.known_home(self._org) or await self._pool.home_of(self._org)
        self._link = await self._node.take(self._scope)
        return self._link

    async def _raise(self, error: BaseException) -> None:
        if may_be_stale(error) and not self._link.connection.closed:
            if await self._has_moved(error) or is_stale(error):
                raise StaleRoute from error
        else:
            await super()._raise(error)

    async def again(self, error: psycopg.Error) -> PooledConnection:
        """Return a connection to the tenant's present node, to replace the one that failed. Raises StaleRoute if the tenant has not moved."""
        if not await self._has_moved(error):
            raise StaleRoute from error
        node = await self._pool.home_of(self._org)
        link = await node.take(self._scope)
        await self._node.give_back(self._link)
        self._node, self._link = node, link
        return link

    async def _has_moved(self, error: BaseException) -> bool:
        moved = await self._pool.moved(self._org, self._node)
        if not moved:
            LOG.error(
                "%s is on %s, which could not execute its statement locally: %s", self._org, self._node.node.name, error
            )
        return moved


class Pool:
    """Every node's connections: up to `size` to each. What every store holds.

    `conninfo` names the coordinator, which holds what lies in one place; `placement` tells of the others, and is the
    coordinator's own catalogue unless one is given.
    """

    def __init__(
        self,
        conninfo: str,
        size: int = 8,
        patience: float = 5.0,
        known: Sequence[str] = (),
        placement: Placement | None = None,
        owner: str = "",
    ) -> None:
        """Connect as the login of `conninfo`; `owner` names the coordinator with the login that owns the schema, if another."""
        self._coordinator = Node(COORDINATOR, conninfo)
        self._owner = conninfo_to_dict(owner or conninfo)
        self._size, self._patience, self._known = size, patience, known
        self._pools: dict[Node, NodePool] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._router = Router(placement or CataloguePlacement(self._coordinator, self._ask), self._only_these)

    @property
    def waiting(self) -> int:
        """How many wait for a connection."""
        return sum(node.waiting for node in self._pools.values())

    def tenant(self, tenant: Tenant) -> TenantLease:
        """A connection set to that tenant, on its node, as an async context. Raises Unavailable."""
        return TenantLease(self, tenant)

    def home(self, org: str) -> Lease:
        """A connection that spans tenants, on the organisation's node. Raises Unavailable."""
        return Lease(lambda: self.home_of(org), None)

    def at(self, node: Node) -> Lease:
        """A connection that spans tenants, on that node. Raises Unavailable."""

        async def route() -> NodePool:
            return self._pool_of(node)

        return Lease(route, None)

    def system(self) -> Lease:
        """A connection that spans tenants, to the coordinator: for what lies in one place. Raises Unavailable."""
        return Lease(self._first, None)

    def reference(self) -> Lease:
        """A connection that spans tenants, to any node that answers: for reading what lies on every one. Raises Unavailable."""
        return AnyLease(self._every)

    @asynccontextmanager
    async def owner(self, node: Node | None = None) -> AsyncIterator[PooledConnection]:
        """A connection of its own with the login's full rights, across tenants: for operators and maintenance only."""
        with translated():
            at = node or self._coordinator
            login = {name: self._owner[name] for name in ("user", "password") if name in self._owner}
            async with await connect(make_conninfo(at.conninfo, **login), "joinery maintenance") as connection:
                if at == self._coordinator:
                    await set_clock(connection)
                yield PooledConnection(connection, at)

    async def dedicated(self, node: Node, scope: Tenant | None = None) -> PooledConnection:
        """A connection to the node beside the pool, for whoever holds locks in its session. Raises Unavailable."""
        return await self._pool_of(node).dedicated(scope)

    async def apart(self, tenant: Tenant) -> PooledConnection:
        """A connection beside the pool, set to that tenant, on its node, for whoever needs one for long. Raises Unavailable."""
        return await (await self.home_of(tenant.org)).dedicated(tenant)

    async def rows(self, tenant: Tenant, statement: LiteralString, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """What one statement answers that works for a tenant; it is done at its new node when it has just been moved."""
        async with self._done(tenant, statement, values) as cursor:
            return await cursor.fetchall()

    async def run(self, tenant: Tenant, statement: LiteralString, values: Mapping[str, Any]) -> int:
        """The same of a statement that answers nothing; how many rows it touched."""
        async with self._done(tenant, statement, values) as cursor:
            return cursor.rowcount

    @asynccontextmanager
    async def _done(self, tenant: Tenant, statement: LiteralString, values: Mapping[str, Any]) -> AsyncIterator[Cursor]:
        lease = self.tenant(tenant)
        async with lease as link:
            try:
                cursor = await link.cursor.execute(statement, values)
            except psycopg.Error as error:
                if not may_be_stale(error) or link.connection.closed:
                    raise
                cursor = await (await lease.again(error)).cursor.execute(statement, values)
            yield cursor

    async def nodes(self) -> Sequence[Node]:
        """Every node, the coordinator first. Raises Unavailable."""
        return await self._router.nodes()

    async def homes(self, tenants: Iterable[Tenant], *, anew: bool = False) -> Mapping[Node, Sequence[Tenant]]:
        """The tenants by the node that holds them; `anew`: not as remembered. Raises Unavailable."""
        wanted = list(tenants)
        orgs = {tenant.org for tenant in wanted}
        if anew:
            self._router.forget(orgs)
        homes = await self._router.homes(orgs)
        found: dict[Node, list[Tenant]] = {}
        for tenant in wanted:
            found.setdefault(homes[tenant.org], []).append(tenant)
        return found

    async def each(self, work: Work[T]) -> list[T]:
        """Do something on each node that holds tenants; a node out of reach is left out. Raises Unavailable when all are."""
        nodes = await self.holding()
        outcomes = await asyncio.gather(*(self.on(node, work) for node in nodes), return_exceptions=True)
        found: list[T] = []
        missed: list[Unavailable] = []
        for node, outcome in zip(nodes, outcomes, strict=True):
            if isinstance(outcome, Unavailable):
                missed.append(outcome)
            elif isinstance(outcome, BaseException):
                raise outcome
            else:
                found.append(outcome)
            self._tell(node, outcome)
        if missed and not found:
            raise missed[0]
        return found

    async def every(self, work: Work[T], nodes: Sequence[Node] | None = None) -> list[T]:
        """Do something on every node (mostly that holds tenants). Raises Unavailable when one of them is out of reach."""
        return [await self.on(node, work) for node in nodes or await self.holding()]

    async def close(self) -> None:
        await self._router.close()
        for node in self._pools.values():
            await node.close()
        await asyncio.gather(*self._closing)

    def known_home(self, org: str) -> NodePool | None:
        """The connections to the organisation's node, unless it must be asked for."""
        node = self._router.known(org)
        return self._pool_of(node) if node is not None else None

    async def home_of(self, org: str) -> NodePool:
        """The connections to the organisation's node. Raises Unavailable."""
        return self._pool_of((await self._router.homes([org]))[org])

    async def moved(self, org: str, from_node: NodePool) -> bool:
        """Whether the organisation is on another node by now. Raises Unavailable."""
        return await self._router.moved(org, from_node.node)

    async def holding(self) -> list[Node]:
        """The nodes that hold tenants. Raises Unavailable."""
        return [node for node in await self.nodes() if node in self._router.parts]

    async def on(self, node: Node, work: Work[T]) -> T:
        """Do something on one node. Of what was divided anew in the meantime, the parts are looked up again.

        Raises Unavailable.
        """
        try:
            return await self._once(node, work)
        except (errors.UndefinedTable, _Divided):
            if self._router.parts.get(node) is None:
                raise
            await self._router.refresh(divided=True)
        try:
            return await self._once(node, work)
        except _Divided as error:
            raise StaleRoute from error

    async def _once(self, node: Node, work: Work[T]) -> T:
        async with self.at(node) as link:
            link.parts = self._router.parts.get(node)
            if link.parts is not None and not await _still_here(link, link.parts):
                raise _Divided
            return await work(link)

    def _tell(self, node: Node, outcome: object) -> None:
        """Once that a node is away, and once that it is back."""
        pool, missed = self._pool_of(node), isinstance(outcome, Unavailable)
        if missed and not pool.missed:
            LOG.warning("%s is out of reach, and left out: %s", node.name, outcome)
        elif pool.missed and not missed:
            LOG.info("%s is back", node.name)
        pool.missed = missed

    def _pool_of(self, node: Node) -> NodePool:
        pool = self._pools.get(node)
        if pool is None:
            pool = self._pools[node] = NodePool(node, self._size, self._patience, self._known)
        return pool

    async def strayed(self, org: str) -> bool:
        """Whether the organisation is elsewhere than it was thought to be; from now on it is thought to be there.

        Raises Unavailable.
        """
        before = self._router.known(org)
        if self._router.alone:
            return False
        self._router.forget([org])
        return (await self._router.homes([org]))[org] != before

    async def _first(self) -> NodePool:
        return self._pool_of((await self.nodes())[0])

    async def _every(self) -> Sequence[NodePool]:
        return [self._pool_of(node) for node in await self.nodes()]

    async def _ask(self, statement: str, values: Mapping[str, Any]) -> Sequence[tuple[Any, ...]]:
        """Ask whichever node answers what the catalogue says."""

        async def known() -> Sequence[NodePool]:
            return [self._pool_of(node) for node in self._router.known_nodes or (self._coordinator,)]

        async with AnyLease(known) as link:
            cursor = await link.connection.execute(statement.encode(), values)
            return await cursor.fetchall()

    def _only_these(self, nodes: Sequence[Node]) -> None:
        """Let go of the connections to nodes that are none any more."""
        for node in self._pools.keys() - set(nodes):
            task = asyncio.create_task(self._pools.pop(node).close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
