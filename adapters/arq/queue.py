"""Queue with one arq message for each waiting lane (group of jobs that run one after the other). Messages are JSON, not pickle."""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Iterator
from typing import Any

from arq.connections import ArqRedis, RedisSettings, create_pool
from redis.exceptions import RedisError

from domain.kernel.errors import Unavailable

QUEUE_NAME = "joinery:lanes"
"""Name of arq's queue."""
FUNCTION_NAME = "drain"
"""Name of the arq function in each message."""
EPOCH_KEY = "joinery:epoch"
"""Redis key of the queue's epoch."""
_TIMEOUT_SECONDS = 2.0
decode_message = json.loads


def encode_message(value: dict[str, Any]) -> bytes:
    """Encode an arq message as JSON; values that JSON cannot represent, such as exceptions, become text."""
    return json.dumps(value, default=repr, separators=(",", ":")).encode()


def build_redis_settings(url: str) -> RedisSettings:
    """Return arq's settings for a URL with `redis://`, `rediss://` or `unix://`, without retries of connections."""
    redis_settings = RedisSettings.from_dsn(url)
    redis_settings.conn_timeout = 2
    redis_settings.conn_retries = 0
    return redis_settings


@contextlib.contextmanager
def translate_redis_errors() -> Iterator[None]:
    """Raise Unavailable instead of errors of Redis and its connection."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise Unavailable(f"Redis is unavailable ({type(error).__name__}).") from error


class ArqQueue:
    """Queue of lanes in the Redis at `url` (port Queue in domain/jobs/ports.py), which connects on first use.

    The ID of a message is its lane, so each lane has at most one message. ArqLaneSource starts the jobs of a lane only after arq has
    removed the message, so `notify` adds a new message while jobs run.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._pool: ArqRedis | None = None
        self._connecting = asyncio.Lock()

    async def notify(self, lane: str) -> None:
        pool = await self._connect()
        with translate_redis_errors():
            async with asyncio.timeout(_TIMEOUT_SECONDS):
                await pool.enqueue_job(FUNCTION_NAME, _job_id=lane)

    async def get_epoch(self) -> str:
        pool = await self._connect()
        with translate_redis_errors():
            async with asyncio.timeout(_TIMEOUT_SECONDS), pool.pipeline(transaction=True) as pipe:
                pipe.set(EPOCH_KEY, secrets.token_hex(16), nx=True)
                pipe.get(EPOCH_KEY)
                answers = await pipe.execute()
        return bytes(answers[1]).decode()

    async def is_healthy(self) -> bool:
        try:
            pool = await self._connect()
            with translate_redis_errors():
                async with asyncio.timeout(_TIMEOUT_SECONDS):
                    return bool(await pool.ping())
        except Unavailable:
            return False

    async def close(self) -> None:
        if self._pool is not None:
            await self._pool.aclose(close_connection_pool=True)
            self._pool = None

    async def _connect(self) -> ArqRedis:
        """Return the connection pool; create it at the first call. Raises Unavailable if Redis is unavailable."""
        if self._pool is None:
            async with self._connecting:
                if self._pool is None:
                    with translate_redis_errors():
                        self._pool = await create_pool(
                            build_redis_settings(self._url),
                            job_serializer=encode_message,
                            job_deserializer=decode_message,
                            default_queue_name=QUEUE_NAME,
                        )
        return self._pool
