"""One thread for computations on conversations, so that several of them do not delay the event loop together."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")
_THREAD: Final = ThreadPoolExecutor(1, thread_name_prefix="assistant")


async def compute(work: Callable[[], T]) -> T:
    """Run `work` in the thread, after earlier work; return its result."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, work)
