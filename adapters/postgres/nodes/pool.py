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

from adapters.postgres.errors import (
    StaleRoute,
    may_have_been_forwarded,
    translate_error,
    translate_errors,
    was_forwarded,
)
from adapters.postgres.nodes.connections import DatabaseRow, connect, fetch_rows, fetch_value, synchronise_clock
from adapters.postgres.nodes.node_pool import NodePool, PooledConnection
from adapters.postgres.nodes.router import COORDINATOR, Node, Placement, Router
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant

T = TypeVar("T")
Cursor = psycopg.AsyncCursor[DatabaseRow]
Work = Callable[[PooledConnection], Awaitable[T]]
LOG = logging.getLogger("joinery.nodes")
_LOCAL_SHARDS = """
SELECT coalesce(array_agg('public.jobs_' || s.shardid), '{}') FROM pg_dist_shard s
JOIN pg_dist_placement p USING (shardid) JOIN pg_dist_local_group g USING (groupid)
WHERE s.logicalrelid = 'public.jobs'::regclass
"""


def create_row_reader(statement: LiteralString, **values: Any) -> Work[list[DatabaseRow]]:
    """Return a function that reads the rows of an SQL statement on a node, for Pool.run_on and the methods `scatter_…`."""

    async def read(connection: PooledConnection) -> list[DatabaseRow]:
        return await connection.fetch_rows(connection.expand_shards(statement), values)

    return read


Reconnect = Callable[[psycopg.Error], Awaitable[PooledConnection]]
"""Function that returns a connection to the tenant's current node.

The argument is the error of the SQL statement that failed on the previous node.
"""


async def execute_for_tenant(
    connection: PooledConnection, statement: Any, values: Any, reconnect: Reconnect | None, *, is_numbered: bool = False
) -> tuple[PooledConnection, Cursor]:
    """Execute an SQL statement of a tenant. If the tenant has moved to another node, repeat it there.

    Args:
        connection: The connection to execute on.
        statement: The statement's text.
        values: The statement's parameters by name, or as a sequence if `is_numbered`.
        reconnect: Function that connects to the tenant's current node; None if the statement must not be repeated,
            because a transaction has begun.
        is_numbered: Whether the parameters are `$1`, `$2`, …; such a statement is not prepared.

    Returns:
        The connection on which the statement was executed, and the cursor.
    """
    prepare = False if is_numbered else None
    try:
        return connection, await _create_cursor(connection, is_numbered).execute(statement, values, prepare=prepare)
    except psycopg.Error as error:
        if reconnect is None or not may_have_been_forwarded(error) or connection.driver_connection.closed:
            raise
        connection = await reconnect(error)
    return connection, await _create_cursor(connection, is_numbered).execute(statement, values, prepare=prepare)


def _create_cursor(connection: PooledConnection, numbered: bool) -> Cursor:
    return psycopg.AsyncRawCursor(connection.driver_connection) if numbered else connection.cursor


class _TableShardsChanged(Exception):
    """Difference between a node's shards of tables (Citus) and the cached shards."""


class ConnectionCheckout:
    """Context manager that takes a connection to a tenant's node from the pool, and returns the connection on exit.

    The exit also translates database errors. It raises StaleRoute if an SQL statement failed because the tenant is on
    another node.
    """

    __slots__ = ("_connection", "_node", "_org", "_pool", "_scope")

    def __init__(self, pool: "Pool", tenant: Tenant) -> None:
        self._pool, self._scope, self._org = pool, tenant, tenant.org

    async def __aenter__(self) -> PooledConnection:
        """Take a connection from the pool of the tenant's node. Raises Unavailable."""
        router = self._pool.router
        self._node = self._pool.get_node_pool(router.get_cached_node(self._org) or await router.find_node(self._org))
        self._connection = await self._node.take_connection(self._scope)
        return self._connection

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Return the connection to its pool, and translate a database error."""
        await self._node.return_connection(self._connection)
        if error is None:
            return
        if may_have_been_forwarded(error) and not self._connection.driver_connection.closed:
            if await self._has_moved(error) or was_forwarded(error):
                raise StaleRoute from error
        elif (translation := translate_error(error)) is not error:
            raise translation from error

    async def reconnect(self, error: psycopg.Error) -> PooledConnection:
        """Replace the connection by one to the tenant's current node, and return the new one.

        Raises StaleRoute from `error` if the tenant has not moved.
        """
        if not await self._has_moved(error):
            raise StaleRoute from error
        node = self._pool.get_node_pool(await self._pool.router.find_node(self._org))
        connection = await node.take_connection(self._scope)
        await self._node.return_connection(self._connection)
        self._node, self._connection = node, connection
        return connection

    async def _has_moved(self, error: BaseException) -> bool:
        await self._pool.router.refresh()
        moved = await self._pool.router.has_moved(self._org, self._node.node)
        if not moved:
            LOG.error(
                "SQL statement not retried on another node: organisation %s is still on node %s, which may have forwarded it: %s",
                self._org,
                self._node.node.name,
                error,
            )
        return moved


class Pool:
    """Connection pools of all nodes."""

    def __init__(
        self,
        conninfo: str,
        size: int = 8,
        max_wait_seconds: float = 5.0,
        loaded_key_ids: Sequence[str] = (),
        placement: Placement | None = None,
        owner_conninfo: str = "",
    ) -> None:
        """Create the pools; connections are opened on demand with the login of `conninfo`.

        Args:
            conninfo: Address and login of the coordinator, which stores the undistributed tables.
            size: Maximum number of connections per node.
            max_wait_seconds: Maximum seconds to wait for a free connection.
            loaded_key_ids: Key IDs of the secrets that this process has loaded.
            placement: Placement of tenants; None to read it from the coordinator's system catalogue.
            owner_conninfo: Address and login of the schema's owner, if that is another login.
        """
        self._coordinator = Node(COORDINATOR, conninfo)
        self._owner = conninfo_to_dict(owner_conninfo or conninfo)
        self._size, self._max_wait_seconds, self._loaded_key_ids = size, max_wait_seconds, loaded_key_ids
        self._pools: dict[Node, NodePool] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self.router = Router(
            placement or Placement(self._coordinator, self._query_system_catalogue), self._close_pools_except
        )

    @property
    def waiting_count(self) -> int:
        """Number of tasks that wait for a connection to a node."""
        return sum(node.waiting_count for node in self._pools.values())

    def get_node_pool(self, node: Node) -> NodePool:
        """Return the connection pool of a node."""
        pool = self._pools.get(node)
        if pool is None:
            pool = self._pools[node] = NodePool(node, self._size, self._max_wait_seconds, self._loaded_key_ids)
        return pool

    async def close(self) -> None:
        """Close all connections of all pools."""
        await self.router.close()
        for node in self._pools.values():
            await node.close()
        await asyncio.gather(*self._closing)

    # Connections, each as an async context that raises Unavailable. All except a tenant's have the scope of all tenants.

    def connect_to_tenant(self, tenant: Tenant) -> ConnectionCheckout:
        """Return a context manager that connects to the tenant's node, with the session set to the tenant."""
        return ConnectionCheckout(self, tenant)

    @asynccontextmanager
    async def connect_to(self, *nodes: Node) -> AsyncIterator[PooledConnection]:
        """Connect to the first of the nodes that responds. Raises Unavailable if none does."""
        pool, connection = await self._take_from_first(nodes)
        try:
            with translate_errors():
                yield connection
        finally:
            await pool.return_connection(connection)

    async def _take_from_first(self, nodes: Sequence[Node]) -> tuple[NodePool, PooledConnection]:
        for node in nodes:
            pool = self.get_node_pool(node)
            try:
                return pool, await pool.take_connection(None)
            except Unavailable:
                if node is nodes[-1]:
                    raise
        raise Unavailable("The database is unavailable. Try again.", retry_after=2)

    def connect_to_coordinator(self) -> AbstractAsyncContextManager[PooledConnection]:
        """Return a context manager that connects to the coordinator, for undistributed tables."""
        return self.connect_to(self._coordinator)

    @asynccontextmanager
    async def connect_to_any(self) -> AsyncIterator[PooledConnection]:
        """Connect to any node that responds, for reading reference tables. Raises Unavailable if none does."""
        async with self.connect_to(*await self.list_nodes()) as connection:
            yield connection

    @asynccontextmanager
    async def connect_as_owner(self, node: Node | None = None) -> AsyncIterator[PooledConnection]:
        """Open a connection outside the pools with the privileges of the schema's owner, for operators and maintenance.

        `node` is the coordinator by default.
        """
        with translate_errors():
            at = node or self._coordinator
            login = {name: self._owner[name] for name in ("user", "password") if name in self._owner}
            async with await connect(make_conninfo(at.conninfo, **login), "joinery maintenance") as connection:
                if at == self._coordinator:
                    await synchronise_clock(connection)
                yield PooledConnection(connection, at)

    # One statement of a tenant, retried on its new node if it has just moved.

    async def fetch_rows(
        self, tenant: Tenant, statement: LiteralString, values: Mapping[str, Any]
    ) -> list[DatabaseRow]:
        """Execute an SQL statement in the tenant's session and return its rows.

        If the tenant has just moved to another node, repeat the statement there.
        """
        async with self._execute(tenant, statement, values) as cursor:
            return await cursor.fetchall()

    async def run(self, tenant: Tenant, statement: LiteralString, values: Mapping[str, Any]) -> int:
        """Execute an SQL statement in the tenant's session and return the number of affected rows.

        If the tenant has just moved to another node, repeat the statement there.
        """
        async with self._execute(tenant, statement, values) as cursor:
            return cursor.rowcount

    @asynccontextmanager
    async def _execute(
        self, tenant: Tenant, statement: LiteralString, values: Mapping[str, Any]
    ) -> AsyncIterator[Cursor]:
        checkout = self.connect_to_tenant(tenant)
        async with checkout as connection:
            _, cursor = await execute_for_tenant(connection, statement, values, checkout.reconnect)
            yield cursor

    # Nodes, and work on each of them. All raise Unavailable.

    async def list_nodes(self) -> Sequence[Node]:
        """Return all nodes, the coordinator first. Raises Unavailable."""
        return await self.router.list_nodes()

    async def list_tenant_nodes(self) -> list[Node]:
        """Return the nodes on which tenants are stored. Raises Unavailable."""
        return [node for node in await self.list_nodes() if node in self.router.shards_by_node]

    async def group_by_node(
        self, tenants: Iterable[Tenant], *, refresh: bool = False
    ) -> Mapping[Node, Sequence[Tenant]]:
        """Return the tenants by the node that stores them; `refresh` bypasses the cache. Raises Unavailable."""
        tenants = list(tenants)
        orgs = {tenant.org for tenant in tenants}
        if refresh:
            self.router.remove_from_cache(orgs)
        node_by_org = await self.router.find_nodes(orgs)
        by_node: dict[Node, list[Tenant]] = {}
        for tenant in tenants:
            by_node.setdefault(node_by_org[tenant.org], []).append(tenant)
        return by_node

    async def scatter_best_effort(self, work: Work[T], nodes: Iterable[Node] | None = None) -> list[T]:
        """Call `work` with a connection to each of the nodes, concurrently; return the results.

        By default these are all nodes that store tenants. Unreachable nodes are skipped; if all are unreachable,
        Unavailable is raised.
        """
        nodes = await self.list_tenant_nodes() if nodes is None else list(nodes)
        outcomes = await asyncio.gather(*(self.run_on(node, work) for node in nodes), return_exceptions=True)
        missed = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
        for error in missed:
            if not isinstance(error, Unavailable):
                raise error
        for node, outcome in zip(nodes, outcomes, strict=True):
            self.get_node_pool(node).log_reachability(outcome if isinstance(outcome, Unavailable) else None)
        if missed and len(missed) == len(outcomes):
            raise missed[0]
        return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]

    async def scatter_all(self, work: Work[T]) -> list[T]:
        """Call `work` with a connection to each node that stores tenants, one after the other. Raises Unavailable."""
        return [await self.run_on(node, work) for node in await self.list_tenant_nodes()]

    async def run_on(self, node: Node, work: Work[T]) -> T:
        """Call `work` with a connection to the node and return the result. Raises Unavailable.

        If the node's shards were split or moved meanwhile, read the names of the shards again and repeat the call once.
        """
        try:
            return await self._run_checked(node, work)
        except (errors.UndefinedTable, _TableShardsChanged):
            if self.router.shards_by_node.get(node) is None:
                raise
            await self.router.refresh(have_shards_moved=True)
        try:
            return await self._run_checked(node, work)
        except _TableShardsChanged as error:
            raise StaleRoute from error

    async def _run_checked(self, node: Node, work: Work[T]) -> T:
        """Call `work` with a connection to the node. Raises _TableShardsChanged if the cached shards are out of date.

        Without this check, `work` could read a shard that was moved to another node. The shard remains on the node for
        a while, with outdated rows.
        """
        async with self.connect_to(node) as connection:
            parts = connection.shard_names = self.router.shards_by_node.get(node)
            if parts is not None and sorted(await fetch_value(connection.driver_connection, _LOCAL_SHARDS)) != sorted(
                parts.get("jobs", ())
            ):
                raise _TableShardsChanged
            return await work(connection)

    async def _query_system_catalogue(self, statement: str, values: Mapping[str, Any]) -> Sequence[DatabaseRow]:
        """Query PostgreSQL's system catalogue on any node that responds.

        Before the nodes are read for the first time, only the coordinator is known.
        """
        async with self.connect_to(*(self.router.cached_nodes or (self._coordinator,))) as connection:
            return await fetch_rows(connection.driver_connection, statement.encode(), values)

    def _close_pools_except(self, nodes: Sequence[Node]) -> None:
        """Close the pools of all nodes that are not among `nodes`."""
        for node in self._pools.keys() - set(nodes):
            task = asyncio.create_task(self._pools.pop(node).close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
