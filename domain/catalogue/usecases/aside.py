"""Pure work that takes long runs beside the event loop, so that others have their turn meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

R = TypeVar("R")
LARGE: Final = 200
"""Things to work on from which on a thread costs less than the wait of everybody else."""


async def aside(size: int, work: Callable[[], R]) -> R:
    """What the work comes to; in a thread if it is on so many things."""
    return await asyncio.to_thread(work) if size >= LARGE else work()
