"""The queue as one arq message for each lane that waits."""

import asyncio
import secrets

from arq.connections import ArqRedis

from adapters.arq.connection import EPOCH, FUNCTION, connect, translated
from domain.kernel.errors import Unavailable

_PATIENCE = 2.0


class ArqQueue:
    """A Queue (ports/queue.py). Connects when first used, so that it may be made while Redis is down.

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
        if self._pool is None:
            async with self._connecting:
                if self._pool is None:
                    self._pool = await connect(self._url)
        return self._pool
