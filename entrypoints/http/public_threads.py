"""A thread of its own for what visitors without a credential ask for, so that they take the API's threads from nobody."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import BoundedSemaphore
from typing import Final, TypeVar

from domain.kernel.errors import Overloaded

T = TypeVar("T")

MOST: Final = 16
"""Pieces of work that are under way or wait; whoever comes then is told to come again."""


class OneThread:
    """Does one piece of work at a time, in the order in which they come."""

    def __init__(self, name: str, most: int = MOST) -> None:
        self._executor = ThreadPoolExecutor(1, name)
        self._free = BoundedSemaphore(most)

    async def run(self, work: Callable[..., T], *args: object) -> T:
        """What `work(*args)` answers. Raises Overloaded when too much waits already, else what `work` raises."""
        if not self._free.acquire(blocking=False):
            raise Overloaded(retry_after=1)
        try:
            done = self._executor.submit(work, *args)
        except BaseException:
            self._free.release()
            raise
        done.add_done_callback(lambda _: self._free.release())
        return await asyncio.wrap_future(done)
