"""Hands due lanes from the jobs table to the queue, at once when it is notified of a job, and again when the queue lost them."""

import asyncio
import logging
from collections.abc import Awaitable
from typing import TypeVar

from domain.jobs.ports import Dispatch, Queue
from domain.kernel.clock import now
from domain.kernel.errors import Unavailable
from ports.signals import Channel, SignalListener, Signals

AT_ONCE = 200
"""Lanes asked for at a time."""
IDLE = 30.0
"""Seconds after which the database is asked though nothing was said."""
GLANCE = 1.0
"""Seconds between looks at the queue's epoch, which cost the database nothing."""
FORGET = 300.0
"""Seconds after which marks are forgotten, in case that a worker died with a wake in its hands."""
SHORTEST = 0.02

T = TypeVar("T")

LOG = logging.getLogger("joinery.scheduler")


class _QueueLost(Exception):
    """The queue, not the database, is what cannot be reached."""


async def _reached(answer: Awaitable[T]) -> T:
    try:
        return await answer
    except Unavailable as error:
        raise _QueueLost(error.detail) from error


class Relay:
    """Runs in the leading scheduler only. Idle, it asks the database twice in 30 seconds."""

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
        self._forgotten = 0.0
        self._overdue = SHORTEST

    async def run(self) -> None:
        """Relay until cancelled; what the database raises ends it, a lost queue does not."""
        self._epoch = None
        async with self._signals.subscribe(Channel.JOBS) as listener:
            while True:
                try:
                    await self._mind_epoch()
                    woken = await self._wake_due()
                    if woken < AT_ONCE:
                        await self._wait(listener, woken)
                except _QueueLost as error:
                    if self._epoch is not None:
                        LOG.warning("the queue is lost, wakes wait: %s", error)
                    self._epoch = None
                    await asyncio.sleep(self._glance)

    async def _mind_epoch(self) -> None:
        """Have all waiting jobs dispatched anew when the queue began a new life, and now and then anyway."""
        epoch = await _reached(self._queue.epoch())
        clock = asyncio.get_running_loop().time()
        if epoch != self._epoch or clock - self._forgotten > FORGET:
            await self._dispatch.reset_dispatched()
            self._forgotten = clock
        self._epoch = epoch

    async def _wake_due(self) -> int:
        lanes = await self._dispatch.lanes_due(AT_ONCE)
        for lane in lanes:
            await _reached(self._queue.wake(lane))
        return len(lanes)

    async def _wait(self, listener: SignalListener, woken: int) -> None:
        """Until the next job may be due or a signal comes; less when the queue's epoch changes meanwhile."""
        loop = asyncio.get_running_loop()
        until = loop.time() + await self._pause(woken)
        while (left := until - loop.time()) > 0:
            if await listener.wait(min(left, self._glance)):
                return
            if await _reached(self._queue.epoch()) != self._epoch:
                return

    async def _pause(self, woken: int) -> float:
        due = await self._dispatch.next_due()
        seconds = self._idle if due is None else min(self._idle, (due - now()).total_seconds())
        if seconds > 0:
            self._overdue = SHORTEST
            return max(SHORTEST, seconds)
        # Something is overdue although its lane was just woken: a lapsed lease, until a worker takes it.
        self._overdue = (
            SHORTEST if woken == 0 and self._overdue >= self._glance else min(self._glance, self._overdue * 2)
        )
        return self._overdue
