"""Polling of the database for due lanes, for operation without Redis and while Redis is unavailable."""

import asyncio
import logging

from domain.jobs.ports import Dispatch, Start
from domain.kernel.clock import now
from ports.signals import Channel, SignalListener, Signals

IDLE = 30.0
"""Seconds after which the database is queried, even without a notification."""
FORGET = 300.0
"""Seconds after which marks of dispatched jobs are reset, in case their worker has died."""
SHORTEST = 0.25

_RETRY = 5.0
LOG = logging.getLogger("joinery.worker")


class Polling:
    """LaneSource of the lanes that are due in the database."""

    def __init__(self, dispatch: Dispatch, signals: Signals, *, idle: float = IDLE) -> None:
        self._dispatch, self._signals, self._idle = dispatch, signals, idle

    async def serve(self, start: Start, stop: asyncio.Event) -> None:
        """Call `start(lane)` for each due lane until `stop` is set, one by one, so that a busy process takes no more."""
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
        reset_at = 0.0
        clock = asyncio.get_running_loop().time
        async with self._signals.subscribe(Channel.JOBS) as listener:
            while True:
                try:
                    if not reset_at or clock() - reset_at > FORGET:
                        await self._dispatch.reset_dispatched()
                        reset_at = clock()
                    if not await self._start_one(start):
                        await self._wait(listener)
                except Exception:
                    LOG.exception("due lanes could not be found, retrying in %.0f s", _RETRY)
                    await asyncio.sleep(_RETRY)

    async def _start_one(self, start: Start) -> bool:
        lanes = await self._dispatch.lanes_due(1)
        try:
            for lane in lanes:
                await start(lane)
        except asyncio.CancelledError:
            await asyncio.shield(self._dispatch.reset_dispatched())  # the marked lane was not started
            raise
        return bool(lanes)

    async def _wait(self, listener: SignalListener) -> None:
        due = await self._dispatch.next_due()
        seconds = self._idle if due is None else (due - now()).total_seconds()
        await listener.wait(min(self._idle, max(SHORTEST, seconds)))
