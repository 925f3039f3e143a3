"""How arq is spoken to: the queue's names, a serialiser that is not pickle, and one translation of Redis's errors."""

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from arq.connections import ArqRedis, RedisSettings, create_pool
from redis.exceptions import RedisError

from domain.kernel.errors import Unavailable

QUEUE = "joinery:lanes"
FUNCTION = "drain"
EPOCH = "joinery:epoch"


def dumps(value: dict[str, Any]) -> bytes:
    """Arq's message as JSON; what JSON cannot say (an exception) as its text."""
    return json.dumps(value, default=repr, separators=(",", ":")).encode()


def loads(data: bytes) -> dict[str, Any]:
    """The message that `dumps` wrote."""
    message: dict[str, Any] = json.loads(data)
    return message


def settings(url: str) -> RedisSettings:
    """Arq's settings for `redis://`, `rediss://` and `unix://` addresses; it fails fast, callers try again."""
    found = RedisSettings.from_dsn(url)
    found.conn_timeout = 2
    found.conn_retries = 0
    return found


async def connect(url: str) -> ArqRedis:
    """A pool of connections. Raises Unavailable when Redis cannot be reached."""
    with translated():
        return await create_pool(settings(url), job_serializer=dumps, job_deserializer=loads, default_queue_name=QUEUE)


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turn whatever a lost Redis raises into Unavailable."""
    try:
        yield
    except (RedisError, OSError, TimeoutError) as error:
        raise Unavailable(f"Redis cannot be reached ({type(error).__name__}).") from error
