"""Where large bodies are read: beside the event loop, few at a time, and of one organisation one after the other."""

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")

MOST: Final = 2


class BodyThreads:
    """Threads that are only started when they are needed."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MOST, thread_name_prefix="bodies")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, org: str, work: Callable[[], T], before: Callable[[], Awaitable[None]] | None = None) -> T:
        """Return the result of `work` when it is the organisation's turn; `before` is awaited first, in the same turn."""
        turn = self._turns.get(org)
        if turn is None:
            turn = self._turns[org] = asyncio.Lock()
        async with turn:
            if before is not None:
                await before()
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
