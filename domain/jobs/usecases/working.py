"""The worker process: takes lanes from wherever they are told, drains them, stops cleanly."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from domain.jobs.usecases.draining import Drain
from domain.jobs.usecases.lanes import Lanes
from domain.kernel.errors import Unavailable

GRACE: Final = 12.0
"""Seconds that jobs in hand have to finish when the process stops; less than what the supervisor waits."""
OUTAGE: Final = 5.0
"""Seconds between attempts to reach a lost queue again."""

LOG: Final = logging.getLogger("joinery.worker")

Start = Callable[[str], Awaitable[None]]
Serve = Callable[[Start, asyncio.Event], Awaitable[None]]
"""Until the event is set: `await start(lane)` for each lane to drain. Raises Unavailable when its source is lost."""


async def work(serve: Serve, drain: Drain, *, lanes: int, stop: asyncio.Event, grace: float = GRACE) -> None:
    """Drain up to `lanes` lanes at a time until `stop`; then finish the jobs in hand, or give them back."""
    slots = Lanes(drain.drain, lanes)
    try:
        await serve(slots.start, stop)
    finally:
        drain.stop()
        await slots.close(grace)


def through(queue: Serve, database: Serve, outage: float = OUTAGE) -> Serve:
    """Take lanes from `queue`; while that is lost, from `database`, trying the queue again every `outage` seconds."""

    async def serve(start: Start, stop: asyncio.Event) -> None:
        lost = False
        while not stop.is_set():
            try:
                await queue(start, stop)
            except Unavailable as error:
                if not lost:
                    LOG.warning("the queue is lost, due lanes are taken from the database: %s", error)
                lost = True
                await _for_a_while(database, start, stop, outage)
            else:
                lost = False

    return serve


async def _for_a_while(database: Serve, start: Start, stop: asyncio.Event, seconds: float) -> None:
    pause = asyncio.Event()
    watch = [asyncio.create_task(stop.wait()), asyncio.create_task(asyncio.sleep(seconds))]
    serving = asyncio.ensure_future(database(start, pause))
    try:
        await asyncio.wait((*watch, serving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        pause.set()
        for task in watch:
            task.cancel()
        await asyncio.gather(*watch, return_exceptions=True)
        await serving
