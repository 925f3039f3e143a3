"""One leader among many processes: whoever holds the session's advisory lock.

Nobody waits for the lock inside a statement: a statement that waits keeps its snapshot, and no vacuum of the whole
server removes what was deleted since. Who does not lead asks now and then, and at once when a leader says that it leaves.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Final

import psycopg

from adapters.postgres.nodes.connecting import Connection, connect

_LOCK: Final = 7_215_908_432
_CHANNEL: Final = "joinery_leadership"
_RETRY: Final = 1.0
LOOK: Final = 2.0
"""Seconds between two looks whether the leader is gone: so long a crashed one's place stays empty."""


@asynccontextmanager
async def leadership(conninfo: str, *, look: float = LOOK) -> AsyncIterator[Callable[[], Coroutine[Any, Any, None]]]:
    """Wait until no other process leads, then lead until left; the lock ends with the connection, also in a crash.

    Answers what to run beside the leader's work: it raises psycopg.OperationalError when the lead is lost.
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
    """A connection that holds the lock, once there is none other that does."""
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
    """Between two looks the session does nothing, and holds nothing."""
    await connection.execute("LISTEN " + _CHANNEL)
    while True:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))
        row = await cursor.fetchone()
        if row and row[0]:
            await connection.execute("UNLISTEN *")
            return
        async for _ in connection.notifies(timeout=look, stop_after=1):
            pass


async def _until_lost(connection: Connection) -> None:
    """Nobody notifies a leader: this waits for the end of its connection, without a statement."""
    async for _ in connection.notifies():
        pass
