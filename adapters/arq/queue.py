"""Queue with one arq message for each waiting lane, and arq's settings, with JSON instead of pickle."""

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
    """Serialise arq's message as JSON; values without a JSON form (exceptions) as text."""
    return json.dumps(value, default=repr, separators=(",", ":")).encode()


def settings(url: str) -> RedisSettings:
    """Return arq's settings for `redis://`, `rediss://` and `unix://` addresses, without retries; callers retry."""
    redis_settings = RedisSettings.from_dsn(url)
    redis_settings.conn_timeout = 2
    redis_settings.conn_retries = 0
    return redis_settings


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Translate errors of a lost Redis connection to Unavailable."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise Unavailable(f"Redis cannot be reached ({type(error).__name__}).") from error


class ArqQueue:
    """Queue (domain/jobs/ports.py) that connects on first use, so that it can be created while Redis is down.

    A lane's message has the lane as its ID, so wakes coalesce while it waits. The worker starts to drain only after arq
    has removed the message (adapters/arq/worker.py), so a wake during a drain adds a new one.
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
