"""Finds due lanes in the database itself: for running without Redis, and for the time that Redis is lost."""

import asyncio
import logging

from domain.jobs.ports import Dispatch, Start
from domain.kernel.clock import now
from ports.signals import Channel, SignalListener, Signals

IDLE = 30.0
"""Seconds after which the database is asked though nothing was said."""
FORGET = 300.0
"""Seconds after which marks are forgotten, in case that whoever was to drain a lane is gone."""
SHORTEST = 0.25

_RETRY = 5.0
LOG = logging.getLogger("joinery.worker")


class Polling:
    """LaneSource: each lane that the database says is due."""

    def __init__(self, dispatch: Dispatch, signals: Signals, *, idle: float = IDLE) -> None:
        self._dispatch, self._signals, self._idle = dispatch, signals, idle

    async def serve(self, start: Start, stop: asyncio.Event) -> None:
        """Until `stop`: `await start(lane)` for each due lane, one by one, so that a full process takes no more."""
        work = asyncio.ensure_future(self._work(start))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, stopped):
                task.cancel()
            await asyncio.wait((work, stopped))
        if not work.cancelled():
            work.result()

    async def _work(self, start: Start) -> None:
        forgotten = 0.0
        clock = asyncio.get_running_loop().time
        async with self._signals.subscribe(Channel.JOBS) as listener:
            while True:
                try:
                    if not forgotten or clock() - forgotten > FORGET:
                        await self._dispatch.reset_dispatched()
                        forgotten = clock()
                    if not await self._start_one(start):
                        await self._wait(listener)
                except Exception:
                    LOG.exception("due lanes could not be found, again in %.0f s", _RETRY)
                    await asyncio.sleep(_RETRY)

    async def _start_one(self, start: Start) -> bool:
        lanes = await self._dispatch.lanes_due(1)
        try:
            for lane in lanes:
                await start(lane)
        except asyncio.CancelledError:
            await asyncio.shield(self._dispatch.reset_dispatched())  # a lane that was marked is not being drained
            raise
        return bool(lanes)

    async def _wait(self, listener: SignalListener) -> None:
        due = await self._dispatch.next_due()
        seconds = self._idle if due is None else (due - now()).total_seconds()
        await listener.wait(min(self._idle, max(SHORTEST, seconds)))
