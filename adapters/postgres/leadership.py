"""One leader among many processes: the one whose session holds the advisory lock.

No process waits for the lock inside a statement, whose snapshot would keep vacuum from removing what was deleted since. The others try now
and then, and at once when the leader announces that it leaves.
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
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))
        row = await cursor.fetchone()
        if row and row[0]:
            await connection.execute("UNLISTEN *")
            return
        async for _ in connection.notifies(timeout=look, stop_after=1):
            pass


async def _until_lost(connection: Connection) -> None:
    """Wait for the end of the connection, without a statement: leaders are not notified."""
    async for _ in connection.notifies():
        pass
