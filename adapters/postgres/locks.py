"""Advisory locks of sessions, which need no statement while nothing changes and end with a crash: one leader, and shares of endpoints.

No process waits for the leader's lock inside a statement, whose snapshot would keep vacuum from removing what was deleted since. The others
try now and then, and at once when the leader announces that it leaves.
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
"""Seconds between two tries: for so long there is no leader after a crash."""


@asynccontextmanager
async def leadership(conninfo: str, *, look: float = LOOK) -> AsyncIterator[Callable[[], Coroutine[Any, Any, None]]]:
    """Wait until no other process leads, then lead until left; the lock ends with the connection, also in a crash.

    Yields a function to run beside the leader's work, which raises psycopg.OperationalError when the lead is lost.
    """
    connection = await _led(conninfo, look)
    try:
        yield partial(_until_lost, connection)
    finally:
        with contextlib.suppress(psycopg.Error, TimeoutError):
            async with asyncio.timeout(_RETRY):
                await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
                await connection.execute("NOTIFY " + _CHANNEL)
        await connection.close()


async def _led(conninfo: str, look: float) -> Connection:
    """Return a connection that holds the lock, once no other does."""
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
    """Try for the lock until it is taken; in between the session holds nothing."""
    await connection.execute("LISTEN " + _CHANNEL)
    while True:
        if await fetch_value(connection, "SELECT pg_try_advisory_lock(%s)", (_LOCK,)):
            await connection.execute("UNLISTEN *")
            return
        async for _ in connection.notifies(timeout=look, stop_after=1):
            pass


async def _until_lost(connection: Connection) -> None:
    """Wait for the end of the connection, without a statement: leaders are not notified."""
    async for _ in connection.notifies():
        pass


_SPACE = 721_590_844
"""First half of the locks' two-part keys; the second is the shard, or MEMBER."""
_MEMBER = -1
_STANDING = """
SELECT objid::bigint, mode FROM pg_locks
WHERE locktype = 'advisory' AND objsubid = 2 AND classid::bigint = %s AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class PostgresShards:
    """The shards that this process holds on a node, by default the coordinator.

    The connection that holds the locks also records deliveries, so a process that lost its locks records nothing.
    """

    def __init__(self, pool: Pool, shards: int, node: Node | None = None) -> None:
        self._pool, self._shards, self._node = pool, shards, node
        self._link: PooledConnection | None = None
        self._using = asyncio.Lock()
        self._held: set[int] = set()
        self._fair = shards
        self._lost = False

    async def node(self) -> Node:
        """Return the node whose endpoints are shared. Raises Unavailable."""
        return self._node or (await self._pool.nodes())[0]

    async def _opened(self) -> PooledConnection:
        if self._link is None:
            self._link = await self._pool.pool_of(await self.node()).dedicated(None)
            await self._link.cursor.execute("SELECT pg_advisory_lock_shared(%s, %s)", (_SPACE, _MEMBER))
        return self._link

    async def rebalance(self) -> frozenset[int]:
        async with self._using:
            if self._lost:
                self._lost = False
                raise LeaseLost  # others may have served them in between: whoever holds them again begins anew
            try:
                link = await self._opened()
                taken, members = await _standing(link)
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
        async with self._using:
            if self._link is None:
                return
            for shard in shards & self._held:
                await self._link.cursor.execute("SELECT pg_advisory_unlock(%s, %s)", (_SPACE, shard))
                self._held.discard(shard)

    async def close(self) -> None:
        async with self._using:
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
        """Begin a transaction on the connection that holds the locks. Raises LeaseLost when it is gone."""
        async with self._using:
            if self._link is None:
                raise LeaseLost
            try:
                async with self._link.connection.transaction():
                    yield self._link
            except BaseException as error:
                self._link.staged.clear()  # what the transaction made is gone with it, as is whom it worked for
                self._link.entered = False
                if isinstance(error, psycopg.Error) and self._link.connection.closed:
                    self._lose()
                    raise LeaseLost from error
                raise


async def members_at(link: PooledConnection) -> int:
    """Return how many workers take part on the connection's node."""
    return (await _standing(link))[1]


async def _standing(link: PooledConnection) -> tuple[set[int], int]:
    """Return the shards that any worker holds, and how many workers take part."""
    rows: list[Fetched] = await link.rows(_STANDING, (_SPACE,))
    members = sum(mode == "ShareLock" for _, mode in rows)
    return {int(shard) for shard, mode in rows if mode == "ExclusiveLock"}, members
