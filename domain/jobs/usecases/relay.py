"""Relay of due lanes from the jobs table to the queue, on notification, periodically, and when the queue lost them."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from domain.jobs.ports import Dispatch, Queue
from domain.kernel.clock import now
from domain.kernel.errors import Unavailable
from ports.signals import Channel, SignalListener, Signals

AT_ONCE = 200
"""Maximum lanes per query."""
IDLE = 30.0
"""Seconds after which the database is queried, even without a notification."""
GLANCE = 1.0
"""Seconds between checks of the queue's epoch, which need no database query."""
FORGET = 300.0
"""Seconds after which marks of dispatched jobs are reset, in case a worker died after a wake."""
SHORTEST = 0.02

T = TypeVar("T")

LOG = logging.getLogger("joinery.scheduler")


class _QueueLost(Exception):
    """The queue, not the database, cannot be reached."""


async def _raise_queue_lost(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except Unavailable as error:
        raise _QueueLost(error.detail) from error


class Relay:
    """Runs in the leading scheduler only. When idle, it queries the database twice in 30 seconds."""

    def __init__(
        self,
        dispatch: Dispatch,
        queue: Queue,
        signals: Signals,
        *,
        idle: float = IDLE,
        glance: float = GLANCE,
    ) -> None:
        self._dispatch, self._queue, self._signals = dispatch, queue, signals
        self._idle, self._glance = idle, glance
        self._epoch: str | None = None
        self._reset_at = 0.0
        self._overdue = SHORTEST

    async def run(self) -> None:
        """Relay until cancelled; database errors propagate, a lost queue is waited out."""
        self._epoch = None
        async with self._signals.subscribe(Channel.JOBS) as listener:
            while True:
                try:
                    await self._check_epoch()
                    woken = await self._wake_due()
                    if woken < AT_ONCE:
                        await self._wait(listener, woken)
                except _QueueLost as error:
                    if self._epoch is not None:
                        LOG.warning("queue is unavailable, wakes are delayed: %s", error)
                    self._epoch = None
                    await asyncio.sleep(self._glance)

    async def _check_epoch(self) -> None:
        """Reset dispatched jobs when the queue's epoch has changed, and periodically."""
        epoch = await _raise_queue_lost(self._queue.epoch())
        clock = asyncio.get_running_loop().time()
        if epoch != self._epoch or clock - self._reset_at > FORGET:
            await self._dispatch.reset_dispatched()
            self._reset_at = clock
        self._epoch = epoch

    async def _wake_due(self) -> int:
        lanes = await self._dispatch.lanes_due(AT_ONCE)
        for lane in lanes:
            await _raise_queue_lost(self._queue.wake(lane))
        return len(lanes)

    async def _wait(self, listener: SignalListener, woken: int) -> None:
        """Wait until the next job may be due, a signal arrives or the queue's epoch changes."""
        loop = asyncio.get_running_loop()
        until = loop.time() + await self._pause(woken)
        while (remaining := until - loop.time()) > 0:
            if await listener.wait(min(remaining, self._glance)):
                return
            if await _raise_queue_lost(self._queue.epoch()) != self._epoch:
                return

    async def _pause(self, woken: int) -> float:
        due = await self._dispatch.next_due()
        seconds = self._idle if due is None else min(self._idle, (due - now()).total_seconds())
        if seconds > 0:
            self._overdue = SHORTEST
            return max(SHORTEST, seconds)
        # A job is overdue although its lane was just woken, such as one with a lapsed lease that no worker took yet.
        self._overdue = (
            SHORTEST if woken == 0 and self._overdue >= self._glance else min(self._glance, self._overdue * 2)
        )
        return self._overdue
