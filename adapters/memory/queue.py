"""The queue in memory: for tests and for everything in one process."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable

from domain.kernel.errors import Unavailable


class MemoryQueue:
    """A Queue (ports/queue.py); `serve` is its worker's side."""

    def __init__(self) -> None:
        self._lanes: dict[str, None] = {}
        self._epoch = secrets.token_hex(16)
        self._filled = asyncio.Event()
        self.lost = False
        """Set to have it behave as a queue that cannot be reached."""

    async def wake(self, lane: str) -> None:
        self._check()
        self._lanes[lane] = None
        self._filled.set()

    async def epoch(self) -> str:
        self._check()
        return self._epoch

    async def healthy(self) -> bool:
        return not self.lost

    def forget(self) -> None:
        self._lanes.clear()
        self._epoch = secrets.token_hex(16)

    def take(self) -> str | None:
        lane = next(iter(self._lanes), None)
        if lane is not None:
            del self._lanes[lane]
        return lane

    async def serve(self, start: Callable[[str], Awaitable[None]], stop: asyncio.Event) -> None:
        stopped = asyncio.ensure_future(stop.wait())
        try:
            while not stop.is_set():
                self._check()
                while (lane := self.take()) is not None:
                    await start(lane)
                self._filled.clear()
                filled = asyncio.ensure_future(self._filled.wait())
                await asyncio.wait((filled, stopped), timeout=1, return_when=asyncio.FIRST_COMPLETED)
                filled.cancel()
        finally:
            stopped.cancel()

    def _check(self) -> None:
        if self.lost:
            raise Unavailable("The queue is lost.")
