"""Waking workers. The jobs themselves are rows of the database (ports/jobs.py); this only says where work waits."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

Start = Callable[[str], Awaitable[None]]
"""Begins to drain a lane, as soon as the process has room for one more."""


class Queue(Protocol):
    """Losing everything in it loses nothing: a relay notices by `epoch` and wakes every waiting lane again."""

    async def wake(self, lane: str) -> None:
        """Have some worker drain the lane soon; many wakes of one lane may become one."""
        ...

    async def epoch(self) -> str:
        """A mark that lasts as long as the queue's memory; another answer means that wakes were lost."""
        ...

    async def healthy(self) -> bool:
        """Whether wakes get through now."""
        ...


class LaneSource(Protocol):
    """Where a worker's lanes are named: the queue's other side, or the database itself."""

    async def serve(self, start: Start, stop: asyncio.Event) -> None:
        """Until `stop`: `await start(lane)` for each lane to drain. Raises Unavailable when the source is lost."""
        ...
