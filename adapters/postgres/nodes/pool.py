"""Connections to a tenant's node, to one node, to any node, or to all nodes."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from adapters.postgres.errors import StaleRoute, is_stale, may_be_stale, translate, translated
from adapters.postgres.nodes.connecting import Fetched, connect, fetch, fetch_value, set_clock
from adapters.postgres.nodes.node_pool import NodePool, PooledConnection
from adapters.postgres.nodes.router import COORDINATOR, Node, Placement, Router
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant

T = TypeVar("T")
Cursor = psycopg.AsyncCursor[Fetched]
Work = Callable[[PooledConnection], Awaitable[T]]
LOG = logging.getLogger("joinery.nodes")
_LOCAL_SHARDS = """
SELECT coalesce(array_agg('public.jobs_' || s.shardid), '{}') FROM pg_dist_shard s
JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_local_group g USING (groupid)
WHERE s.logicalrelid = 'public.jobs'::regclass
"""


def reading(statement: LiteralString, **values: Any) -> Work[list[Fetched]]:
    """Return work for `on` and the `scatter` methods that reads the rows of a node's tenants."""

    async def read(link: PooledConnection) -> list[Fetched]:
        return await link.rows(link.here(statement), values)

    return read


Again = Callable[[psycopg.Error], Awaitable[PooledConnection]]
"""Function that returns a connection to the tenant's current node after a statement failed on a stale route."""


async def execute(
    link: PooledConnection, statement: Any, values: Any, again: Again | None, *, numbered: bool = False
) -> tuple[PooledConnection, Cursor]:
    """Execute a tenant's statement; on a stale route, retry it on the connection that `again` returns.

    Args:
        link: The connection to execute on.
        statement: The statement's text.
        values: Its parameters by name, or a sequence for a `numbered` statement, which is not prepared.
        again: None if the statement must not be retried, because a transaction has begun.
        numbered: Whether parameters are `$1`, `$2`, …

    Returns:
        The connection that it was executed on, and the cursor.

    """
    prepare = False if numbered else None
    try:
        return link, await _cursor(link, numbered).execute(statement, values, prepare=prepare)
    except psycopg.Error as error:
        if again is None or not may_be_stale(error) or link.connection.closed:
            raise
        link = await again(error)
    return link, await _cursor(link, numbered).execute(statement, values, prepare=prepare)


def _cursor(link: PooledConnection, numbered: bool) -> Cursor:
    return psycopg.AsyncRawCursor(link.connection) if numbered else link.cursor


class _ShardsChanged(Exception):
    """Difference between a node's shards and the cached ones."""


class TenantLease:
    """Context with a connection to a tenant's node, which translates database errors.

    Raises StaleRoute if the tenant is on another node.
    """

    __slots__ = ("_link", "_node", "_org", "_pool", "_scope")

    def __init__(self, pool: "Pool", tenant: Tenant) -> None:
        self._pool, self._scope, self._org = pool, tenant, tenant.org

    async def __aenter__(self) -> PooledConnection:
        """Take a connection. Raises Unavailable."""
        router = self._pool.router
        self._node = self._pool.pool_of(router.known(self._org) or await router.home(self._org))
        self._link = await self._node.take(self._scope)
        return self._link

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Return the connection, and translate the error."""
        await self._node.give_back(self._link)
        if error is None:
            return
        if may_be_stale(error) and not self._link.connection.closed:
            if await self._has_moved(error) or is_stale(error):
                raise StaleRoute from error
        elif (translation := translate(error)) is not error:
            raise translation from error

    async def again(self, error: psycopg.Error) -> PooledConnection:
        """Replace the connection by one to the tenant's current node, and return it. Raises StaleRoute if the tenant has not moved."""
        if not await self._has_moved(error):
            raise StaleRoute from error
        node = self._pool.pool_of(await self._pool.router.home(self._org))
        link = await node.take(self._scope)
        await self._node.give_back(self._link)
        self._node, self._link = node, link
        return link

    async def _has_moved(self, error: BaseException) -> bool:
        await self._pool.router.refresh()
        moved = await self._pool.router.has_moved(self._org, self._node.node)
        if not moved:
            LOG.error(
                "%s is on %s, which could not execute its statement locally: %s", self._org, self._node.node.name, error
            )
        return moved


class Pool:
    """Pools of up to `size` connections to each node.

    `conninfo` is that of the coordinator, which holds undistributed tables; `placement` locates tenants, by default by the
    coordinator's catalogue.
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
        """Use the login of `conninfo`; `owner` is the conninfo of the schema's owner if that is another login."""
        self._coordinator = Node(COORDINATOR, conninfo)
        self._owner = conninfo_to_dict(owner or conninfo)
        self._size, self._patience, self._known = size, patience, known
        self._pools: dict[Node, NodePool] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.router = Router(placement or Placement(self._coordinator, self._query_catalogue), self._close_others)

    @property
    def waiting(self) -> int:
        """Number of tasks that wait for a connection."""
        return sum(node.waiting for node in self._pools.values())

    def pool_of(self, node: Node) -> NodePool:
        """Return the pool of one node."""
        pool = self._pools.get(node)
        if pool is None:
            pool = self._pools[node] = NodePool(node, self._size, self._patience, self._known)
        return pool

    async def close(self) -> None:
        """Close every connection."""
        await self.router.close()
        for node in self._pools.values():
            await node.close()
        await asyncio.gather(*self._closing)

    # Connections, each as an async context that raises Unavailable. All except a tenant's have the scope of all tenants.

    def tenant(self, tenant: Tenant) -> TenantLease:
        """Connect to the tenant's node, with the session set to the tenant."""
        return TenantLease(self, tenant)

    @asynccontextmanager
    async def at(self, *nodes: Node) -> AsyncIterator[PooledConnection]:
        """Connect to the first of the nodes that answers."""
        pool, link = await self._take_first(nodes)
        try:
            with translated():
                yield link
        finally:
            await pool.give_back(link)

    async def _take_first(self, nodes: Sequence[Node]) -> tuple[NodePool, PooledConnection]:
        for node in nodes:
            pool = self.pool_of(node)
            try:
                return pool, await pool.take(None)
            except Unavailable:
                if node is nodes[-1]:
                    raise
        raise Unavailable("The database cannot be reached.", retry_after=2)

    def coordinator(self) -> AbstractAsyncContextManager[PooledConnection]:
        """Connect to the coordinator, for undistributed tables."""
        return self.at(self._coordinator)

    @asynccontextmanager
    async def any_node(self) -> AsyncIterator[PooledConnection]:
        """Connect to any node that answers, for reading reference tables."""
        async with self.at(*await self.nodes()) as link:
            yield link

    @asynccontextmanager
    async def owner(self, node: Node | None = None) -> AsyncIterator[PooledConnection]:
        """Connect outside the pool with the owner's full privileges, for operators and maintenance only."""
        with translated():
            at = node or self._coordinator
            login = {name: self._owner[name] for name in ("user", "password") if name in self._owner}
            async with await connect(make_conninfo(at.conninfo, **login), "joinery maintenance") as connection:
                if at == self._coordinator:
                    await set_clock(connection)
                yield PooledConnection(connection, at)

    # One statement of a tenant, retried on its new node if it has just moved.

    async def rows(self, tenant: Tenant, statement: LiteralString, values: Mapping[str, Any]) -> list[Fetched]:
        """Return the rows of the statement."""
        async with self._execute(tenant, statement, values) as cursor:
            return await cursor.fetchall()

    async def run(self, tenant: Tenant, statement: LiteralString, values: Mapping[str, Any]) -> int:
        """Execute the statement; return the number of affected rows."""
        async with self._execute(tenant, statement, values) as cursor:
            return cursor.rowcount

    @asynccontextmanager
    async def _execute(
        self, tenant: Tenant, statement: LiteralString, values: Mapping[str, Any]
    ) -> AsyncIterator[Cursor]:
        lease = self.tenant(tenant)
        async with lease as link:
            _, cursor = await execute(link, statement, values, lease.again)
            yield cursor

    # Nodes, and work on each of them. All raise Unavailable.

    async def nodes(self) -> Sequence[Node]:
        """Return all nodes, the coordinator first."""
        return await self.router.nodes()

    async def holding(self) -> list[Node]:
        """Return the nodes that hold tenants."""
        return [node for node in await self.nodes() if node in self.router.parts]

    async def homes(self, tenants: Iterable[Tenant], *, anew: bool = False) -> Mapping[Node, Sequence[Tenant]]:
        """Return the tenants by node; `anew` bypasses the cache."""
        tenants = list(tenants)
        orgs = {tenant.org for tenant in tenants}
        if anew:
            self.router.forget(orgs)
        homes = await self.router.homes(orgs)
        by_node: dict[Node, list[Tenant]] = {}
        for tenant in tenants:
            by_node.setdefault(homes[tenant.org], []).append(tenant)
        return by_node

    async def scatter_best_effort(self, work: Work[T], nodes: Iterable[Node] | None = None) -> list[T]:
        """Run work on the nodes concurrently, by default on all that hold tenants; unreachable nodes are skipped unless all are."""
        nodes = await self.holding() if nodes is None else list(nodes)
        outcomes = await asyncio.gather(*(self.on(node, work) for node in nodes), return_exceptions=True)
        missed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for error in missed:
            if not isinstance(error, Unavailable):
                raise error
        for node, outcome in zip(nodes, outcomes, strict=True):
            self.pool_of(node).log_reach(outcome if isinstance(outcome, Unavailable) else None)
        if missed and len(missed) == len(outcomes):
            raise missed[0]
        return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]

    async def scatter_all(self, work: Work[T]) -> list[T]:
        """Run work on all nodes that hold tenants, sequentially."""
        return [await self.on(node, work) for node in await self.holding()]

    async def on(self, node: Node, work: Work[T]) -> T:
        """Run work on one node; if its shards were split or moved meanwhile, refresh them and retry."""
        try:
            return await self._run_checked(node, work)
        except (errors.UndefinedTable, _ShardsChanged):
            if self.router.parts.get(node) is None:
                raise
            await self.router.refresh(divided=True)
        try:
            return await self._run_checked(node, work)
        except _ShardsChanged as error:
            raise StaleRoute from error

    async def _run_checked(self, node: Node, work: Work[T]) -> T:
        """Run work if the node's shards are those in the cache; a shard that was moved away remains there for a while, outdated."""
        async with self.at(node) as link:
            parts = link.parts = self.router.parts.get(node)
            if parts is not None and sorted(await fetch_value(link.connection, _LOCAL_SHARDS)) != sorted(
                parts.get("jobs", ())
            ):
                raise _ShardsChanged
            return await work(link)

    async def _query_catalogue(self, statement: str, values: Mapping[str, Any]) -> Sequence[Fetched]:
        """Query the catalogue of any node that answers; initially only the coordinator is known."""
        async with self.at(*(self.router.known_nodes or (self._coordinator,))) as link:
            return await fetch(link.connection, statement.encode(), values)

    def _close_others(self, nodes: Sequence[Node]) -> None:
        """Close the connections to servers that are no longer nodes."""
        for node in self._pools.keys() - set(nodes):
            task = asyncio.create_task(self._pools.pop(node).close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
