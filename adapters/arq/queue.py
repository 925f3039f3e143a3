"""The queue as one arq message for each lane that waits, and how arq is spoken to: by a serialiser that is not pickle."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Iterator
from typing import Any

from arq.connections import ArqRedis, RedisSettings, create_pool
from redis.exceptions import RedisError

from domain.kernel.errors import Unavailable

QUEUE = "joinery:lanes"
FUNCTION = "drain"
EPOCH = "joinery:epoch"
_PATIENCE = 2.0
loads = json.loads


def dumps(value: dict[str, Any]) -> bytes:
    """Arq's message as JSON; what JSON cannot say (an exception) as its text."""
    return json.dumps(value, default=repr, separators=(",", ":")).encode()


def settings(url: str) -> RedisSettings:
    """Arq's settings for `redis://`, `rediss://` and `unix://` addresses; it fails fast, callers try again."""
    found = RedisSettings.from_dsn(url)
    found.conn_timeout = 2
    found.conn_retries = 0
    return found


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn whatever a lost Redis raises into Unavailable."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise Unavailable(f"Redis cannot be reached ({type(error).__name__}).") from error


class ArqQueue:
    """A Queue (domain/jobs/ports.py). Connects when first used, so that it may be made while Redis is down.

    A lane's message has the lane as its id, so wakes coalesce while it waits. The worker starts draining only after
    arq has removed the message (adapters/arq/worker.py), so a wake during a drain makes a new one.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: ArqRedis | None = None
        self._connecting = asyncio.Lock()

    async def wake(self, lane: str) -> None:
        pool = await self._connected()
        with translated():
            async with asyncio.timeout(_PATIENCE):
                await pool.enqueue_job(FUNCTION, _job_id=lane)

    async def epoch(self) -> str:
        pool = await self._connected()
        with translated():
            async with asyncio.timeout(_PATIENCE), pool.pipeline(transaction=True) as pipe:
                pipe.set(EPOCH, secrets.token_hex(16), nx=True)
                pipe.get(EPOCH)
                answers = await pipe.execute()
        return bytes(answers[1]).decode()

    async def healthy(self) -> bool:
        try:
            pool = await self._connected()
            with translated():
                async with asyncio.timeout(_PATIENCE):
                    return bool(await pool.ping())
        except Unavailable:
            return False

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose(close_connection_pool=True)
            self._pool = None

    async def _connected(self) -> ArqRedis:
        """Return the pool of connections. Raises Unavailable when Redis cannot be reached."""
        if self._pool is None:
            async with self._connecting:
                if self._pool is None:
                    with translated():
                        self._pool = await create_pool(
                            settings(self._url),
                            job_serializer=dumps,
                            job_deserializer=loads,
                            default_queue_name=QUEUE,
                        )
        return self._pool
