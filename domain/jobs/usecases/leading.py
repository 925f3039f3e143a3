"""The scheduler process: waits to lead, does its duties while it leads, and stands for election again after trouble."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

RETRY: Final = 2.0
"""Seconds between losing the lead and asking for it again."""

LOG: Final = logging.getLogger("joinery.scheduler")

Duty = Callable[[], Awaitable[None]]
Leadership = Callable[[], AbstractAsyncContextManager[object]]
"""Entering waits until no other process leads; leaving gives the lead away."""


async def lead(leadership: Leadership, duties: Sequence[Duty], *, stop: asyncio.Event, retry: float = RETRY) -> None:
    """Do the duties (Relay.run, Ticks.run), side by side, while leading, until `stop`.

    When one of them raises, all are stopped and the lead is given away: its connection may be as dead as theirs.
    """
    work = asyncio.create_task(_terms(leadership, duties, retry))
    stopped = asyncio.create_task(stop.wait())
    try:
        await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
    finally:
        work.cancel()
        stopped.cancel()
        await asyncio.gather(work, stopped, return_exceptions=True)


async def _terms(leadership: Leadership, duties: Sequence[Duty], retry: float) -> None:
    while True:
        try:
            async with leadership(), asyncio.TaskGroup() as group:
                LOG.info("this process leads")
                for duty in duties:
                    group.create_task(_do(duty))
        except Exception:
            LOG.exception("the lead is given up, and asked for again in %.0f s", retry)
        await asyncio.sleep(retry)


async def _do(duty: Duty) -> None:
    await duty()
