"""One leader among many processes: whoever holds the session's advisory lock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psycopg

from adapters.postgres.connecting import connect

_LOCK = 7_215_908_432


@asynccontextmanager
async def leadership(conninfo: str) -> AsyncIterator[None]:
    """Wait until no other process leads, then lead until left; the lock ends with the connection, also in a crash."""
    while True:
        try:
            connection = await connect(conninfo, "joinery leadership")
            await connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
            break
        except psycopg.OperationalError:
            await asyncio.sleep(1)
    try:
        yield
    finally:
        await connection.close()
