"""Polling of the database for lanes with due jobs, used without Redis and while Redis is unavailable.

A lane is a group of jobs that run one after the other.
"""

import asyncio
import logging

from domain.jobs.ports import JobDispatcher, LaneStarter
from domain.kernel.clock import now
from ports.signals import Channel, SignalListener, Signals

MAX_POLL_INTERVAL_SECONDS = 30.0
"""Maximum seconds between two queries for lanes with due jobs, if there is no notification."""
DISPATCH_RESET_INTERVAL_SECONDS = 300.0
"""Seconds between two calls of `reset_dispatched`, because workers may have died before they claimed the jobs."""
MIN_POLL_INTERVAL_SECONDS = 0.25
"""Minimum seconds between two queries after a query without a result."""

_RETRY = 5.0
LOG = logging.getLogger("joinery.worker")


class DatabaseLaneSource:
    """LaneSource that finds lanes with due jobs in the database."""

    def __init__(
        self, dispatch: JobDispatcher, signals: Signals, *, idle_seconds: float = MAX_POLL_INTERVAL_SECONDS
    ) -> None:
        self._dispatch, self._signals, self._idle_seconds = dispatch, signals, idle_seconds

    async def serve(self, start_lane: LaneStarter, stop: asyncio.Event) -> None:
        """Call `start_lane(lane)` for each lane with due jobs, one lane at a time, until `stop` is set."""
        work = asyncio.ensure_future(self._poll(start_lane))
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (work, stopped):
                task.cancel()
            await asyncio.wait((work, stopped))
        if not work.cancelled():
            work.result()

    async def _poll(self, start: LaneStarter) -> None:
        reset_at = 0.0
        clock = asyncio.get_running_loop().time
        async with self._signals.subscribe(Channel.JOBS) as listener:
            while True:
                try:
                    if not reset_at or clock() - reset_at > DISPATCH_RESET_INTERVAL_SECONDS:
                        await self._dispatch.reset_dispatched()
                        reset_at = clock()
                    if not await self._start_next(start):
                        await self._wait_for_work(listener)
                except Exception:
                    LOG.exception("due jobs could not be queried, retrying in %.0f s", _RETRY)
                    await asyncio.sleep(_RETRY)

    async def _start_next(self, start: LaneStarter) -> bool:
        lanes = await self._dispatch.dispatch_due_lanes(
            1
        )  # only one, so that a busy process leaves the others to other processes
        try:
            for lane in lanes:
                await start(lane)
        except asyncio.CancelledError:
            await asyncio.shield(self._dispatch.reset_dispatched())  # the marked lane was not started
            raise
        return bool(lanes)

    async def _wait_for_work(self, listener: SignalListener) -> None:
        due = await self._dispatch.find_next_due()
        seconds = self._idle_seconds if due is None else (due - now()).total_seconds()
        await listener.wait(min(self._idle_seconds, max(MIN_POLL_INTERVAL_SECONDS, seconds)))
