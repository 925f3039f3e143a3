"""Pool of connections to one node.

Each connection stores the tenant of its session, so that the tenant's next request need not set the session again (ADR
82).
"""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from hashlib import blake2b
from typing import Any, LiteralString

import psycopg
from psycopg.abc import Params

from adapters.postgres.errors import translate_error, translate_errors
from adapters.postgres.nodes.connections import (
    Connection,
    DatabaseRow,
    connect,
    fetch_value,
    start_epochs_if_server_changed,
    synchronise_clock,
)
from adapters.postgres.nodes.router import COORDINATOR, LOG, Node, ShardNames
from adapters.postgres.privileges import APP, OPERATOR, SYSTEM
from domain.kernel.clock import CLOCK
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant

APPLICATION = "joinery"
"""Name of the pool's connections in pg_stat_activity."""
UNREACHABLE_SECONDS = 0.5
"""Minimum seconds that a failed connection attempt must take to mark the node as unreachable.

An immediate refusal does not mark the node.
"""
RECONNECT_SECONDS = 1.0
"""Seconds between two attempts to reach an unreachable node."""

_OWNS_TABLES = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('public.organisations')"
_IDLE = psycopg.pq.TransactionStatus.IDLE
_SET_TENANT = (
    f"SELECT set_config('role', '{APP}', false), set_config('joinery.org', %b, false), "
    "set_config('joinery.livemode', %b, false)"
).encode()
_SET_SYSTEM_ROLE = f"SELECT set_config('role', '{SYSTEM}', false)".encode()
_SHARD_PLACEHOLDER = re.compile(r"\bhere\.([a-z_]+)")
_LOCK_SECRETS = b"SELECT pg_advisory_lock_shared(n) FROM unnest(%b::bigint[]) n"


def compute_secret_lock(key_id: str) -> int:
    """Return the number of the advisory lock for one of the operator's secrets.

    Every connection of a process that has loaded the secret holds the lock in shared mode, so that other processes can
    see which secrets are loaded. `key_id` is the key ID of the secret.
    """
    return int.from_bytes(blake2b(f"secret\0{key_id}".encode(), digest_size=8).digest(), "big") >> 4


def expand_shards(statement: LiteralString, shard_names: ShardNames | None) -> LiteralString:
    """Return the SQL statement with each `here.<table>` replaced by the shards of the table on a node.

    Shards are read by name, which bypasses Citus' router, so the result must not change data.

    Args:
        statement: The statement.
        shard_names: Names of the shards on the node, by table; None if the tables are not distributed.
    """

    def list_rows(table: str) -> str:
        return (
            table
            if shard_names is None
            else f"({' UNION ALL '.join(f'SELECT * FROM {shard}' for shard in shard_names[table])})"
        )

    return _SHARD_PLACEHOLDER.sub(lambda match: list_rows(match[1]), statement)


class PooledConnection:
    """Connection of a pool, in autocommit mode, with a session for one scope.

    The scope is a tenant, or None for all tenants. The scope determines the role: row-level security limits
    `joinery_app` to the tenant's rows, but `joinery_system` sees all rows.
    """

    __slots__ = (
        "cursor",
        "driver_connection",
        "indexed_blocks",
        "is_scoped",
        "node",
        "owner_role",
        "scope",
        "shard_names",
        "temporary_tables",
    )

    def __init__(self, connection: Connection, node: Node, owner_role: LiteralString = "NONE") -> None:
        """Wrap a connection; `owner_role` is the role for writing reference tables, NONE if the login owns the tables."""
        self.driver_connection, self.node, self.owner_role = connection, node, owner_role
        self.cursor = connection.cursor(binary=True)
        self.scope: Tenant | None = None
        self.is_scoped = False
        """True if the session is set to `scope`; False at first and after an error."""
        self.shard_names: ShardNames | None = None
        """Names of the shards on the node, by table; None if the tables are not distributed."""
        self.temporary_tables: set[object] = set()
        """SQL statements whose temporary tables this connection has already created."""
        self.indexed_blocks: dict[tuple[Tenant, str], int] = {}
        """Newest block of a log in which this connection has indexed a term, by tenant and term (event_log.py)."""

    def expand_shards(self, statement: LiteralString) -> LiteralString:
        """Return the SQL statement with each `here.<table>` replaced by the table's shards on this node."""
        return expand_shards(statement, self.shard_names)

    async def fetch_rows(self, statement: Any, values: Params | None = None) -> list[DatabaseRow]:
        """Execute an SQL statement and return all rows."""
        return await (await self.cursor.execute(statement, values)).fetchall()

    async def run(self, statement: Any, values: Params | None = None) -> int:
        """Execute an SQL statement; return the number of affected rows."""
        return (await self.cursor.execute(statement, values)).rowcount

    @asynccontextmanager
    async def as_owner(self) -> AsyncIterator[None]:
        """Use the owner's role while the context is open, to write reference tables. Requires an open transaction."""
        role = APP if self.scope else SYSTEM
        await self.driver_connection.execute("SET LOCAL ROLE " + self.owner_role)
        yield  # on an error the rollback also resets the role
        await self.driver_connection.execute("SET LOCAL ROLE " + role)

    async def set_scope(self, scope: Tenant | None) -> None:
        """Set the session to the scope, unless it is already set; None means all tenants."""
        if self.is_scoped and self.scope == scope:
            return
        self.is_scoped = False
        if scope is None:
            await self.cursor.execute(_SET_SYSTEM_ROLE)
        else:
            await self.cursor.execute(_SET_TENANT, (scope.org, "t" if scope.livemode else "f"))
        self.scope, self.is_scoped = scope, True


@contextmanager
def _close_on_error(connection: Connection) -> Iterator[None]:
    """Close the connection on any exception, including cancellation."""
    try:
        yield
    except BaseException:
        connection.pgconn.finish()
        raise


class NodePool:
    """Pool of connections to one node.

    While the node is unreachable, one caller at a time tries to connect, RECONNECT_SECONDS after the last attempt. All
    other callers fail at once.
    """

    def __init__(self, node: Node, size: int, max_wait_seconds: float, loaded_key_ids: Sequence[str]) -> None:
        """Create the pool without connections.

        Args:
            node: The node.
            size: Maximum number of connections.
            max_wait_seconds: Maximum seconds to wait for a free connection.
            loaded_key_ids: Key IDs of the secrets that this process has loaded. Each connection holds a shared advisory lock for
                each of them, so that other processes can see which secrets are loaded.
        """
        self.node, self._max_wait_seconds = node, max_wait_seconds
        self._owner_role: LiteralString | None = None
        self._secret_locks = [compute_secret_lock(key) for key in loaded_key_ids]
        self._idle: list[PooledConnection] = []
        self._slots = asyncio.Semaphore(size)
        self._unreachable_until = 0.0
        self._closed = False
        self._waiting = 0
        self._is_logged_unreachable = False
        """True if the last log line about the node states that it is unreachable."""

    @property
    def waiting_count(self) -> int:
        """Number of tasks that wait for a connection; 0 while the node is unreachable, as such waits are not load."""
        return 0 if self._unreachable_until else self._waiting

    def log_reachability(self, error: Unavailable | None) -> None:
        """Log once when the node becomes unreachable, and once when it is reachable again.

        `error` is the error of the last attempt to use the node, or None.
        """
        if error and not self._is_logged_unreachable:
            LOG.warning("node %s unreachable, skipped: %s", self.node.name, error)
        elif self._is_logged_unreachable and not error:
            LOG.info("node %s reachable again", self.node.name)
        self._is_logged_unreachable = bool(error)

    async def take_connection(self, scope: Tenant | None) -> PooledConnection:
        """Take a connection from the pool and set its session to the scope. Raises Unavailable."""
        await self._acquire_slot()
        try:
            connection = await self._acquire_in_scope(scope)
            if CLOCK.needs_reading():
                await self._synchronise_clock_if_coordinator(connection.driver_connection)
            return connection  # noqa: TRY300  the except clause covers all of the above
        except BaseException as error:
            self._slots.release()
            raise translate_error(error) from error

    async def return_connection(self, connection: PooledConnection) -> None:
        """Return a connection to the pool; close it if it is broken or still in a transaction."""
        self._slots.release()
        driver_connection = connection.driver_connection
        idle = driver_connection.info.transaction_status == _IDLE
        if self._closed or driver_connection.closed or not idle:
            if driver_connection.closed:
                self._close_idle()  # idle connections have probably ended for the same reason
            await driver_connection.close()
        else:
            self._idle.append(connection)

    async def open_dedicated(self, scope: Tenant | None) -> PooledConnection:
        """Open a connection that is not part of the pool, for session locks and long transactions. Raises Unavailable."""
        with translate_errors():
            connection = await self._connect()
            await connection.set_scope(scope)
            return connection

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().driver_connection.close()

    async def _connect(self) -> PooledConnection:
        connection = await self._connect_as_owner()
        with _close_on_error(connection):
            await connection.execute("SET ROLE " + APP)
            await connection.execute(
                "SET timezone = 'UTC'; SET statement_timeout = '300s'; SET idle_in_transaction_session_timeout = '60s'"
            )
            if self._secret_locks:
                await connection.execute(_LOCK_SECRETS, (self._secret_locks,))
            await self._synchronise_clock_if_coordinator(connection)
        connection.prepare_threshold = 3
        return PooledConnection(connection, self.node, self._owner_role or "NONE")

    async def _synchronise_clock_if_coordinator(self, connection: Connection) -> None:
        """Set the clock of this process to the node's time if the node is the coordinator."""
        if self.node.name == COORDINATOR:
            await synchronise_clock(connection)

    async def _connect_as_owner(self) -> Connection:
        """Open a connection with the role for writes to reference tables (`_use_owner_role`).

        Raises Unavailable while the node is considered unreachable.
        """
        clock = asyncio.get_running_loop().time
        started = clock()
        if started < self._unreachable_until:
            raise Unavailable("The database is unavailable. Try again.", retry_after=2)
        if self._unreachable_until:
            self._unreachable_until = float("inf")
        try:
            connection = await connect(self.node.conninfo, APPLICATION)
            with _close_on_error(connection):
                await self._use_owner_role(connection)
                await start_epochs_if_server_changed(connection)
        except psycopg.OperationalError:
            self._unreachable_until = clock() + RECONNECT_SECONDS if clock() - started >= UNREACHABLE_SECONDS else 0.0
            raise
        except BaseException:
            self._unreachable_until = 0.0
            raise
        self._unreachable_until = 0.0
        return connection

    async def _use_owner_role(self, connection: Connection) -> None:
        """Set the connection to the role for writes to reference tables.

        The role is joinery_operator if the login does not own the tables. Before the tables exist, the session remains
        unchanged.
        """
        if self._owner_role is None and (owns := await fetch_value(connection, _OWNS_TABLES)) is not None:
            self._owner_role = "NONE" if owns else OPERATOR
        if self._owner_role is not None:
            await connection.execute("SET ROLE " + self._owner_role)

    async def _acquire(self, scope: Tenant | None) -> PooledConnection:
        """Take the idle connection last used for the scope, else the most recently used one; if none is idle, open one."""
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index].scope == scope:
                return self._idle.pop(index)
        if self._idle:
            return self._idle.pop()
        return await self._connect()

    async def _acquire_in_scope(self, scope: Tenant | None) -> PooledConnection:
        """Take a connection and set its scope; if the server has closed the connection, try once with a new one."""
        connection = await self._acquire(scope)
        try:
            await connection.set_scope(scope)
        except psycopg.OperationalError:
            self._close_idle()
            connection = await self._connect()
            await connection.set_scope(scope)
        return connection

    async def _acquire_slot(self) -> None:
        if self._slots.locked():
            self._waiting += 1
            try:
                async with asyncio.timeout(self._max_wait_seconds):
                    await self._slots.acquire()
            except TimeoutError as error:
                raise Unavailable("All database connections are in use. Try again.", retry_after=2) from error
            finally:
                self._waiting -= 1
        else:
            await self._slots.acquire()

    def _close_idle(self) -> None:
        """Close all idle connections, because the server has probably ended them."""
        for connection in self._idle:
            connection.driver_connection.pgconn.finish()
        self._idle.clear()
