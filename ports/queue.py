"""Waking workers. The jobs themselves are rows of the database (ports/jobs.py); this only says where work waits."""

from typing import Protocol


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
