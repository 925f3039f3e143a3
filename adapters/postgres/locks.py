"""Advisory locks of sessions for the leader and for the shards of endpoints; a crash releases them.

Processes do not wait for the leader's lock inside a statement, whose snapshot would block vacuum. They retry at intervals, and at once when
the leader notifies that it stops.
"""

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import psycopg

from adapters.postgres.nodes.connecting import Connection, Fetched, connect, fetch_value
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.nodes.router import Node
from domain.kernel.errors import LeaseLost

_LOCK = 7_215_908_432
_CHANNEL = "joinery_leadership"
_RETRY = 1.0
LOOK = 2.0
"""Seconds between attempts, hence the maximum time without a leader after a crash."""


@asynccontextmanager
async def leadership(conninfo: str, *, look: float = LOOK) -> AsyncIterator[Callable[[], Coroutine[Any, Any, None]]]:
    """Acquire leadership, waiting until no other process leads, and hold it inside the context.

    Yields a function to run concurrently with the leader's work; it raises psycopg.OperationalError when leadership is lost.
    """
    connection = await _connect_as_leader(conninfo, look)
    try:
        yield partial(_until_lost, connection)
    finally:
        with contextlib.suppress(psycopg.Error, TimeoutError):
            async with asyncio.timeout(_RETRY):
                await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
                await connection.execute("NOTIFY " + _CHANNEL)
        await connection.close()


async def _connect_as_leader(conninfo: str, look: float) -> Connection:
    """Return a connection that has acquired the lock."""
    while True:
        try:
            connection = await connect(conninfo, "joinery leadership")
            try:
                await _acquire(connection, look)
            except BaseException:
                await connection.close()
                raise
        except psycopg.OperationalError:
            await asyncio.sleep(_RETRY)
        else:
            return connection


async def _acquire(connection: Connection, look: float) -> None:
    """Try to acquire the lock until it succeeds; between attempts the session holds no snapshot."""
    await connection.execute("LISTEN " + _CHANNEL)
    while True:
        if await fetch_value(connection, "SELECT pg_try_advisory_lock(%s)", (_LOCK,)):
            await connection.execute("UNLISTEN *")
            return
        async for _ in connection.notifies(timeout=look, stop_after=1):
            pass


async def _until_lost(connection: Connection) -> None:
    """Wait until the connection ends, without executing a statement; leaders receive no notifications."""
    async for _ in connection.notifies():
        pass


_SPACE = 721_590_844
"""First half of the locks' two-part keys; the second half is the shard, or _MEMBER."""
_MEMBER = -1
_GRANTED = """
SELECT objid::bigint, mode FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = %s AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class PostgresShards:
    """Shards that this process holds on a node, by default the coordinator.

    The connection that holds the locks also records deliveries, so that a process without its locks cannot record any.
    """

    def __init__(self, pool: Pool, shards: int, node: Node | None = None) -> None:
        self._pool, self._shards, self._node = pool, shards, node
        self._link: PooledConnection | None = None
        self._mutex = asyncio.Lock()
        self._held: set[int] = set()
        self._fair = shards
        self._lost = False

    async def node(self) -> Node:
        """Return the node whose endpoints are shared. Raises Unavailable."""
        return self._node or (await self._pool.nodes())[0]

    async def _open(self) -> PooledConnection:
        if self._link is None:
            self._link = await self._pool.pool_of(await self.node()).dedicated(None)
            await self._link.cursor.execute("SELECT pg_advisory_lock_shared(%s, %s)", (_SPACE, _MEMBER))
        return self._link

    async def rebalance(self) -> frozenset[int]:
        async with self._mutex:
            if self._lost:
                self._lost = False
                raise LeaseLost  # other workers may have served the shards meanwhile, so the caller must start again
            try:
                link = await self._open()
                taken, members = await _granted_locks(link)
                self._fair = -(-self._shards // max(1, members))
                free = [shard for shard in range(self._shards) if shard not in taken]
                random.shuffle(free)
                for shard in free[: max(0, self._fair - len(self._held))]:
                    if await fetch_value(link.connection, "SELECT pg_try_advisory_lock(%s, %s)", (_SPACE, shard)):
                        self._held.add(shard)
            except psycopg.Error as error:
                self._lose()
                self._lost = False
                raise LeaseLost from error
            return frozenset(self._held)

    async def members(self) -> int:
        async with self._pool.at(await self.node()) as link:
            return await members_at(link)

    async def surplus(self) -> frozenset[int]:
        return frozenset(sorted(self._held)[self._fair :])

    async def release(self, shards: frozenset[int]) -> None:
        async with self._mutex:
            if self._link is None:
                return
            for shard in shards & self._held:
                await self._link.cursor.execute("SELECT pg_advisory_unlock(%s, %s)", (_SPACE, shard))
                self._held.discard(shard)

    async def close(self) -> None:
        async with self._mutex:
            if self._link is not None:
                await self._link.connection.close()
            self._lose()
            self._lost = False

    def _lose(self) -> None:
        self._lost = bool(self._held)
        if self._link is not None:
            self._link.connection.pgconn.finish()
        self._link = None
        self._held = set()

    @asynccontextmanager
    async def fenced(self) -> AsyncIterator[PooledConnection]:
        """Begin a transaction on the connection that holds the locks. Raises LeaseLost if the connection has ended."""
        async with self._mutex:
            if self._link is None:
                raise LeaseLost
            try:
                async with self._link.connection.transaction():
                    yield self._link
            except BaseException as error:
                self._link.staged.clear()  # the rollback removes temporary tables and the tenant's settings
                self._link.entered = False
                if isinstance(error, psycopg.Error) and self._link.connection.closed:
                    self._lose()
                    raise LeaseLost from error
                raise


async def members_at(link: PooledConnection) -> int:
    """Return the number of participating workers on the connection's node."""
    return (await _granted_locks(link))[1]


async def _granted_locks(link: PooledConnection) -> tuple[set[int], int]:
    """Return the shards that any worker holds, and the number of participating workers."""
    rows: list[Fetched] = await link.rows(_GRANTED, (_SPACE,))
    members = sum(mode == "ShareLock" for _, mode in rows)
    return {int(shard) for shard, mode in rows if mode == "ExclusiveLock"}, members
