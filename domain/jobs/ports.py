"""The jobs table: the truth about work to be done (architecture §5)."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from domain.jobs.model import Backlog, ClaimedJob, NewJob


class JobStore(Protocol):
    """In a tenant's transaction: queue work, finish work, put it off."""

    async def add(self, job: NewJob) -> str:
        """Queue a job; answers its id, or that of the open job with the same key."""
        ...

    async def hold(self, job: ClaimedJob, lease: timedelta) -> None:
        """Fence this transaction and renew the lease, as the last thing before committing. Raises LeaseLost."""
        ...

    async def finish(self, job: ClaimedJob) -> None:
        """Finish the job in this transaction. Raises LeaseLost if another attempt holds the job."""
        ...

    async def put_off(self, job: ClaimedJob, run_at: datetime) -> None:
        """Have the job run again at that time. Raises LeaseLost."""
        ...


class Dispatch(Protocol):
    """Across tenants, each call a transaction of its own: what relay and workers need."""

    async def lanes_due(self, limit: int) -> Sequence[str]:
        """Mark due, undispatched jobs (and those whose lease lapsed) as dispatched; answers their lanes, fairly.

        At most LANES_OF_ONE lanes of one organisation are under way; organisations take turns.
        """
        ...

    async def next_due(self) -> datetime | None:
        """When the earliest waiting or leased job falls due, or None."""
        ...

    async def claim(self, lane: str, limit: int, lease: timedelta) -> Sequence[ClaimedJob]:
        """Take due jobs of the lane, oldest first; each taken job's attempt rises by one."""
        ...

    async def renew(self, job: ClaimedJob, lease: timedelta) -> bool:
        """Hold the job longer; False when it is lost."""
        ...

    async def release(self, job: ClaimedJob, run_at: datetime) -> None:
        """Give an unfinished job back, to be claimed again at that time."""
        ...

    async def backlog(self, most: int | None = None) -> Sequence[Backlog]:
        """Count the open jobs by kinds of lanes, at most `most` of them; jobs that are not due yet are left out."""
        ...

    async def reset_dispatched(self) -> None:
        """Every wake was lost: have all waiting jobs dispatched anew."""
        ...


Start = Callable[[str], Awaitable[None]]
"""Begins to drain a lane, as soon as the process has room for one more."""


class Queue(Protocol):
    """Losing everything in it loses nothing: a relay notices by `epoch` and wakes every waiting lane again."""

    async def wake(self, lane: str) -> None:
        """Have some worker drain the lane soon; many wakes of one lane may become one."""
        ...

    async def epoch(self) -> str:
        """Return a mark of the queue's memory; a different one means that wake-ups were lost."""
        ...

    async def healthy(self) -> bool:
        """Whether wakes get through now."""
        ...


class LaneSource(Protocol):
    """Where a worker's lanes are named: the queue's other side, or the database itself."""

    async def serve(self, start: Start, stop: asyncio.Event) -> None:
        """Until `stop`: `await start(lane)` for each lane to drain. Raises Unavailable when the source is lost."""
        ...
