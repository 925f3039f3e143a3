"""Advisory locks of database sessions: one for the leading scheduler, and one for each shard of webhook endpoints.

A crash of the process releases its locks. A process does not wait for the leader's lock inside a statement, whose
snapshot would block vacuum. It tries again at intervals, and immediately after the leader announces its end by NOTIFY.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psycopg

from adapters.postgres.nodes.connections import Connection, DatabaseRow, connect, fetch_value
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.nodes.router import Node
from domain.kernel.errors import LeaseLost

_LEADER_LOCK = 7_215_908_432
_LEADERSHIP_CHANNEL = "joinery_leadership"
_CONNECT_SECONDS = 1.0
LEADERSHIP_RETRY_SECONDS = 2.0
"""Seconds between attempts to become the leader, and thus the maximum time without a leader after a crash."""


@asynccontextmanager
async def hold_leadership(
    conninfo: str, *, retry_seconds: float = LEADERSHIP_RETRY_SECONDS
) -> AsyncIterator[Callable[[], Coroutine[Any, Any, None]]]:
    """Wait until no other process is the leader, become the leader, and remain it while the context is open.

    Args:
        conninfo: Address and login of the coordinator.
        retry_seconds: Seconds between two attempts.

    Yields:
        A function to run concurrently with the leader's work; it raises psycopg.OperationalError when leadership is
            lost.
    """
    connection = await _connect_as_leader(conninfo, retry_seconds)
    try:
        yield partial(_wait_until_lost, connection)
    finally:
        with contextlib.suppress(psycopg.Error, TimeoutError):
            async with asyncio.timeout(_CONNECT_SECONDS):
                await connection.execute("SELECT pg_advisory_unlock(%s)", (_LEADER_LOCK,))
                await connection.execute("NOTIFY " + _LEADERSHIP_CHANNEL)
        await connection.close()


async def _connect_as_leader(conninfo: str, retry_seconds: float) -> Connection:
    """Return a connection that has acquired the leader's lock; wait until the lock is available."""
    while True:
        try:
            connection = await connect(conninfo, "joinery leadership")
            try:
                await _acquire_leader_lock(connection, retry_seconds)
            except BaseException:
                await connection.close()
                raise
        except psycopg.OperationalError:
            await asyncio.sleep(_CONNECT_SECONDS)
        else:
            return connection


async def _acquire_leader_lock(connection: Connection, retry_seconds: float) -> None:
    """Wait for the leader's lock, and acquire it.

    Between attempts, which are `retry_seconds` apart, the session has no snapshot.
    """
    await connection.execute("LISTEN " + _LEADERSHIP_CHANNEL)
    while True:
        if await fetch_value(connection, "SELECT pg_try_advisory_lock(%s)", (_LEADER_LOCK,)):
            await connection.execute("UNLISTEN *")
            return
        async for _ in connection.notifies(timeout=retry_seconds, stop_after=1):
            pass


async def _wait_until_lost(connection: Connection) -> None:
    """Wait until the leader's connection ends, which raises psycopg.OperationalError."""
    async for _ in connection.notifies():  # a leader does not listen, so there are none
        pass


_LOCK_CLASS = 721_590_844
"""First half of the shard locks' two-part keys; the second half is the number of the shard, or _PARTICIPANT."""
_PARTICIPANT = -1
"""Second half of the key of the lock that all workers share; the number of its holders is the number of workers."""
_GRANTED_LOCKS = """
SELECT objid::bigint, mode FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = %s AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class PostgresShards:
    """Shards of the webhook endpoints on one node, by default the coordinator.

    This process serves a fair share of the shards. A shard belongs to the process whose connection holds the shard's
    lock. The same connection records deliveries, so a process that has lost its locks cannot record any.
    """

    def __init__(self, pool: Pool, shards: int, node: Node | None = None) -> None:
        self._pool, self._shard_count, self._node = pool, shards, node
        self._connection: PooledConnection | None = None
        self._mutex = asyncio.Lock()
        self._own_shards: set[int] = set()
        self._fair_share = shards
        self._are_locks_lost = False

    async def find_node(self) -> Node:
        """Return the node whose webhook endpoints are divided among the workers. Raises Unavailable."""
        return self._node or (await self._pool.list_nodes())[0]

    async def _open_connection(self) -> PooledConnection:
        if self._connection is None:
            self._connection = await self._pool.get_node_pool(await self.find_node()).open_dedicated(None)
            await self._connection.cursor.execute("SELECT pg_advisory_lock_shared(%s, %s)", (_LOCK_CLASS, _PARTICIPANT))
        return self._connection

    async def rebalance(self) -> frozenset[int]:
        async with self._mutex:
            if self._are_locks_lost:
                self._are_locks_lost = False
                raise LeaseLost  # other workers may have served the shards meanwhile, so the caller must start again
            try:
                connection = await self._open_connection()
                locked_shards, worker_count = await _read_granted_locks(connection)
                self._fair_share = -(-self._shard_count // max(1, worker_count))
                free = [shard for shard in range(self._shard_count) if shard not in locked_shards]
                random.shuffle(free)
                for shard in free[: max(0, self._fair_share - len(self._own_shards))]:
                    if await fetch_value(
                        connection.driver_connection, "SELECT pg_try_advisory_lock(%s, %s)", (_LOCK_CLASS, shard)
                    ):
                        self._own_shards.add(shard)
            except psycopg.Error as error:
                self._close_connection()
                self._are_locks_lost = False
                raise LeaseLost from error
            return frozenset(self._own_shards)

    async def count_workers(self) -> int:
        async with self._pool.connect_to(await self.find_node()) as connection:
            return await count_workers(connection)

    async def find_surplus(self) -> frozenset[int]:
        return frozenset(sorted(self._own_shards)[self._fair_share :])

    async def release(self, shards: frozenset[int]) -> None:
        async with self._mutex:
            if self._connection is None:
                return
            for shard in shards & self._own_shards:
                await self._connection.cursor.execute("SELECT pg_advisory_unlock(%s, %s)", (_LOCK_CLASS, shard))
                self._own_shards.discard(shard)

    async def close(self) -> None:
        async with self._mutex:
            if self._connection is not None:
                await self._connection.driver_connection.close()
            self._close_connection()
            self._are_locks_lost = False

    def _close_connection(self) -> None:
        self._are_locks_lost = bool(self._own_shards)
        if self._connection is not None:
            self._connection.driver_connection.pgconn.finish()
        self._connection = None
        self._own_shards = set()

    @asynccontextmanager
    async def begin_fenced(self) -> AsyncIterator[PooledConnection]:
        """Begin a transaction on the connection that holds the locks. Raises LeaseLost if that connection has ended."""
        async with self._mutex:
            if self._connection is None:
                raise LeaseLost
            try:
                async with self._connection.driver_connection.transaction():
                    yield self._connection
            except BaseException as error:
                self._connection.temporary_tables.clear()  # the rollback removes temporary tables and the tenant's settings
                self._connection.is_scoped = False
                if isinstance(error, psycopg.Error) and self._connection.driver_connection.closed:
                    self._close_connection()
                    raise LeaseLost from error
                raise


async def count_workers(connection: PooledConnection) -> int:
    """Return the number of workers that share the webhook endpoints on the connection's node."""
    return (await _read_granted_locks(connection))[1]


async def _read_granted_locks(connection: PooledConnection) -> tuple[set[int], int]:
    """Return the shards that have a worker, and the number of workers."""
    rows: list[DatabaseRow] = await connection.fetch_rows(_GRANTED_LOCKS, (_LOCK_CLASS,))
    worker_count = sum(mode == "ShareLock" for _, mode in rows)
    return {int(shard) for shard, mode in rows if mode == "ExclusiveLock"}, worker_count
