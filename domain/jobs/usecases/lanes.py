"""The lanes that one process drains at a time: each lane at most once, each in turn when there are many."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

RETRY: Final = 5.0
"""Seconds to wait when a lane could not even be asked for its jobs."""

LOG: Final = logging.getLogger("joinery.worker")


class Lanes:
    """Runs `drain(lane)` in up to `limit` lanes; `drain` answers whether more may wait and it wants another turn."""

    def __init__(self, drain: Callable[[str], Awaitable[bool]], limit: int) -> None:
        self._drain = drain
        self._slots = asyncio.Semaphore(limit)
        self._woken_again: dict[str, bool] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, lane: str) -> None:
        """Wait for a free slot, then drain the lane in the background; a lane being drained is looked at once more."""
        if lane in self._woken_again:
            self._woken_again[lane] = True
            return
        self._woken_again[lane] = False
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            del self._woken_again[lane]
            raise
        task = asyncio.create_task(self._work(lane), name=f"lane {lane}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, grace: float) -> None:
        """Give running lanes `grace` seconds to end, then cancel them, which gives their jobs back."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _work(self, lane: str) -> None:
        try:
            while True:
                try:
                    more = await self._turn(lane)
                finally:
                    self._slots.release()
                if not (more or self._woken_again[lane]):
                    return
                await self._slots.acquire()
        finally:
            del self._woken_again[lane]

    async def _turn(self, lane: str) -> bool:
        self._woken_again[lane] = False
        try:
            return await self._drain(lane)
        except Exception:
            LOG.exception("lane %s: failed, again in %.0f s", lane, RETRY)
            await asyncio.sleep(RETRY)
            return True
