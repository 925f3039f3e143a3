"""The relay, which finds lanes with due jobs in the jobs table and adds them to the queue.

A lane is a group of jobs that run one after the other.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from domain.jobs.ports import JobDispatcher, Queue
from domain.kernel.clock import now
from domain.kernel.errors import Unavailable
from ports.signals import Channel, SignalListener, Signals

MAX_LANES_PER_QUERY = 200
"""Maximum number of lanes that one query returns."""
MAX_POLL_INTERVAL_SECONDS = 30.0
"""Maximum seconds between two queries for lanes with due jobs, if there is no notification."""
EPOCH_CHECK_INTERVAL_SECONDS = 1.0
"""Seconds between two checks of the queue's epoch, which changes if the queue has lost its contents."""
DISPATCH_RESET_INTERVAL_SECONDS = 300.0
"""Seconds between two calls of `reset_dispatched`, because workers may have died before they claimed the jobs."""
MIN_POLL_INTERVAL_SECONDS = 0.02
"""Minimum seconds between two queries, if the previous query returned fewer lanes than the maximum."""

T = TypeVar("T")

LOG = logging.getLogger("joinery.scheduler")


class _QueueUnreachable(Exception):
    """Error: the queue cannot be reached, in contrast to errors of the database."""


async def _convert_unavailable(call: Awaitable[T]) -> T:
    try:
        return await call
    except Unavailable as error:
        raise _QueueUnreachable(error.detail) from error


class Relay:
    """Component that finds lanes with due jobs in the database and adds them to the queue.

    The relay works on notification, periodically, and when the queue has lost its contents. It runs only in the leading
    scheduler.
    """

    def __init__(
        self,
        dispatch: JobDispatcher,
        queue: Queue,
        signals: Signals,
        *,
        idle_seconds: float = MAX_POLL_INTERVAL_SECONDS,
        epoch_check_seconds: float = EPOCH_CHECK_INTERVAL_SECONDS,
    ) -> None:
        self._dispatch, self._queue, self._signals = dispatch, queue, signals
        self._idle_seconds, self._epoch_check_seconds = idle_seconds, epoch_check_seconds
        self._epoch: str | None = None
        self._reset_at = 0.0
        self._overdue_pause = MIN_POLL_INTERVAL_SECONDS

    async def run(self) -> None:
        """Add lanes with due jobs to the queue until cancelled; wait while the queue is unavailable. Raises database errors."""
        self._epoch = None
        async with self._signals.subscribe(Channel.JOBS) as listener:
            while True:
                try:
                    await self._reset_dispatched_if_needed()
                    notified_count = await self._notify_due_lanes()
                    if notified_count < MAX_LANES_PER_QUERY:
                        await self._wait_for_work(listener, notified_count)
                except _QueueUnreachable as error:
                    if self._epoch is not None:
                        LOG.warning("queue is unavailable, jobs are delayed: %s", error)
                    self._epoch = None
                    await asyncio.sleep(self._epoch_check_seconds)

    async def _reset_dispatched_if_needed(self) -> None:
        """Mark waiting jobs as not dispatched if the epoch changed or DISPATCH_RESET_INTERVAL_SECONDS have passed."""
        epoch = await _convert_unavailable(self._queue.get_epoch())
        clock = asyncio.get_running_loop().time()
        if epoch != self._epoch or clock - self._reset_at > DISPATCH_RESET_INTERVAL_SECONDS:
            await self._dispatch.reset_dispatched()
            self._reset_at = clock
        self._epoch = epoch

    async def _notify_due_lanes(self) -> int:
        """Add lanes with due jobs to the queue, and return their number."""
        lanes = await self._dispatch.dispatch_due_lanes(MAX_LANES_PER_QUERY)
        for lane in lanes:
            await _convert_unavailable(self._queue.notify(lane))
        return len(lanes)

    async def _wait_for_work(self, listener: SignalListener, notified_count: int) -> None:
        """Wait until the next job is due, a notification arrives, or the queue's epoch changes.

        Args:
            listener: The listener to notifications about added jobs.
            notified_count: The number of lanes that were added to the queue last.
        """
        loop = asyncio.get_running_loop()
        until = loop.time() + await self._compute_pause(notified_count)
        while (remaining := until - loop.time()) > 0:
            if await listener.wait(min(remaining, self._epoch_check_seconds)):
                return
            if await _convert_unavailable(self._queue.get_epoch()) != self._epoch:
                return

    async def _compute_pause(self, notified_count: int) -> float:
        """Return the seconds until the next query for lanes with due jobs."""
        due = await self._dispatch.find_next_due()
        seconds = self._idle_seconds if due is None else min(self._idle_seconds, (due - now()).total_seconds())
        if seconds > 0:
            self._overdue_pause = MIN_POLL_INTERVAL_SECONDS
            return max(MIN_POLL_INTERVAL_SECONDS, seconds)
        # A job is overdue although its lane was just added to the queue, for example because no worker has claimed the job yet.
        self._overdue_pause = (
            MIN_POLL_INTERVAL_SECONDS
            if notified_count == 0 and self._overdue_pause >= self._epoch_check_seconds
            else min(self._epoch_check_seconds, self._overdue_pause * 2)
        )
        return self._overdue_pause
