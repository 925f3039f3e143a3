"""The scheduler process: waits to lead, does its duties while it leads, and stands for election again after trouble."""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

RETRY: Final = 2.0
"""Seconds between losing the lead and asking for it again."""

LOG: Final = logging.getLogger("joinery.scheduler")

Duty = Callable[[], Coroutine[Any, Any, None]]
Leadership = Callable[[], AbstractAsyncContextManager[object]]
"""Entering waits until no other process leads; leaving gives the lead away."""


class Leader:
    """One a process. It does its duties (Relay.run, Ticks.run), side by side, while it leads.

    When one of them raises, all are stopped and the lead is given away: its connection may be as dead as theirs.
    """

    def __init__(self, leadership: Leadership, duties: Sequence[Duty], *, retry: float = RETRY) -> None:
        self._leadership, self._duties, self._retry = leadership, duties, retry

    async def run(self, stop: asyncio.Event) -> None:
        """Lead, or wait to lead, until `stop`."""
        work = asyncio.create_task(self._terms())
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            work.cancel()
            stopped.cancel()
            await asyncio.gather(work, stopped, return_exceptions=True)

    async def _terms(self) -> None:
        while True:
            try:
                async with self._leadership(), asyncio.TaskGroup() as group:
                    LOG.info("this process leads")
                    for duty in self._duties:
                        group.create_task(duty())
            except Exception:
                LOG.exception("the lead is given up, and asked for again in %.0f s", self._retry)
            await asyncio.sleep(self._retry)
