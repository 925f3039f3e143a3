"""The jobs table, the authoritative record of work to do (architecture §5), and the queue that wakes workers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from domain.jobs.model import Backlog, ClaimedJob, NewJob


class JobStore(Protocol):
    """Jobs in a tenant's transaction."""

    async def add(self, job: NewJob) -> str:
        """Queue a job; return its id, or that of the open job with the same key."""
        ...

    async def hold(self, job: ClaimedJob, lease: timedelta) -> None:
        """Fence this transaction and renew the lease, as the last thing before committing. Raises LeaseLost."""
        ...

    async def finish(self, job: ClaimedJob) -> None:
        """Finish the job in this transaction. Raises LeaseLost if another attempt holds the job."""
        ...

    async def put_off(self, job: ClaimedJob, run_at: datetime) -> None:
        """Reschedule the job. Raises LeaseLost."""
        ...


class Dispatch(Protocol):
    """Jobs across tenants, for relay and workers; each call is its own transaction."""

    async def lanes_due(self, limit: int) -> Sequence[str]:
        """Mark due, undispatched jobs (and those with lapsed leases) as dispatched; return their lanes.

        Organisations take turns, each with at most LANES_OF_ONE lanes in progress.
        """
        ...

    async def next_due(self) -> datetime | None:
        """Return when the earliest waiting or leased job is due, or None."""
        ...

    async def claim(self, lane: str, limit: int, lease: timedelta) -> Sequence[ClaimedJob]:
        """Claim due jobs of the lane, oldest first; each claim raises the job's attempt by one."""
        ...

    async def renew(self, job: ClaimedJob, lease: timedelta) -> bool:
        """Extend the lease; return False if it is lost."""
        ...

    async def release(self, job: ClaimedJob, run_at: datetime) -> None:
        """Release an unfinished job, to be claimed again at that time."""
        ...

    async def backlog(self, most: int | None = None) -> Sequence[Backlog]:
        """Return the numbers of open jobs by kind of lane.

        At most `most` jobs are counted; jobs that are not due are omitted.
        """
        ...

    async def reset_dispatched(self) -> None:
        """Mark all waiting jobs as undispatched, because all wakes may have been lost."""
        ...


Start = Callable[[str], Awaitable[None]]
"""Starts to drain a lane as soon as the process has a free slot."""


class Queue(Protocol):
    """A queue of wakes that may lose its contents.

    The relay then detects a new `epoch` and wakes every waiting lane again.
    """

    async def wake(self, lane: str) -> None:
        """Request that a worker drains the lane soon; wakes of one lane may be merged."""
        ...

    async def epoch(self) -> str:
        """Return the id of the queue's memory; a different one means that wakes were lost."""
        ...

    async def healthy(self) -> bool:
        """Return whether wakes can be delivered now."""
        ...


class LaneSource(Protocol):
    """The source of a worker's lanes: the queue or the database."""

    async def serve(self, start: Start, stop: asyncio.Event) -> None:
        """Call `start(lane)` for each lane to drain, until `stop` is set. Raises Unavailable if the source is lost."""
        ...
