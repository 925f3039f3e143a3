"""The jobs table, which is the authoritative record of work to do (architecture §5), and the queue that notifies workers."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from typing import Protocol

from domain.jobs.model import Backlog, ClaimedJob, NewJob


class JobStore(Protocol):
    """Storage of jobs in a tenant's transaction."""

    async def add(self, job: NewJob) -> str:
        """Add a job and return its ID; if a job with the same key is open, add nothing and return that job's ID."""
        ...

    async def renew_lease(self, job: ClaimedJob, lease: timedelta) -> None:
        """Renew the lease of a claimed job. Raises LeaseLost if another attempt has claimed the job.

        The caller must call this last in the transaction.
        """
        ...

    async def finish(self, job: ClaimedJob) -> None:
        """Delete a completed job in this transaction. Raises LeaseLost if another attempt has claimed the job."""
        ...

    async def reschedule(self, job: ClaimedJob, run_at: datetime) -> None:
        """Postpone a claimed job until `run_at`. Raises LeaseLost if another attempt has claimed the job."""
        ...


class JobDispatcher(Protocol):
    """Port to the jobs of all tenants, with which lanes are dispatched and jobs are claimed. Each call is its own transaction.

    A lane is a group of jobs that run one after the other.
    """

    async def dispatch_due_lanes(self, limit: int) -> Sequence[str]:
        """Return up to `limit` lanes with due jobs that are not dispatched or whose lease has expired.

        The due jobs of these lanes are marked as dispatched. Organisations take turns; each has at most
        MAX_LANES_PER_ORG lanes in progress.
        """
        ...

    async def find_next_due(self) -> datetime | None:
        """Return the time at which the next waiting job is due or the next lease expires; None if there is neither."""
        ...

    async def claim(self, lane: str, limit: int, lease: timedelta) -> Sequence[ClaimedJob]:
        """Claim up to `limit` due jobs of the lane, oldest first; each claim increments a job's attempt."""
        ...

    async def renew_lease(self, job: ClaimedJob, lease: timedelta) -> bool:
        """Renew the lease of a claimed job; return False if another attempt has claimed the job."""
        ...

    async def release(self, job: ClaimedJob, run_at: datetime) -> None:
        """End the lease of an unfinished job, so that the job can be claimed again from `run_at` on."""
        ...

    async def count_backlog(self, max_jobs: int | None = None) -> Sequence[Backlog]:
        """Return the numbers of due and running jobs, by kind of lane; at most `max_jobs` jobs are counted (None: all)."""
        ...

    async def reset_dispatched(self) -> None:
        """Mark all waiting jobs as not dispatched, because the wake-ups of their lanes may have been lost."""
        ...


LaneStarter = Callable[[str], Awaitable[None]]
"""Coroutine function that waits until the process may execute another lane, then starts the lane and returns."""


class Queue(Protocol):
    """Queue of notifications ("wake-ups") to workers about lanes with due jobs.

    The queue may lose its contents. The relay notices the loss when `get_epoch` returns a different ID, and then notifies workers of all
    waiting lanes.
    """

    async def notify(self, lane: str) -> None:
        """Notify a worker that the lane has due jobs; several notifications for a lane may be merged."""
        ...

    async def get_epoch(self) -> str:
        """Return an ID that changes when the queue loses its contents."""
        ...

    async def is_healthy(self) -> bool:
        """Return whether workers can be notified now."""
        ...


class LaneSource(Protocol):
    """Source from which a worker receives lanes with due jobs: the queue or the database."""

    async def serve(self, start_lane: LaneStarter, stop: asyncio.Event) -> None:
        """Call `start_lane(lane)` for each lane with due jobs until `stop` is set. Raises Unavailable if the connection is lost."""
        ...
