"""Source of lanes (groups of jobs that run one after the other) from arq's queue."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from arq.worker import Worker, create_worker, func

from adapters.arq.queue import (
    FUNCTION_NAME,
    QUEUE_NAME,
    build_redis_settings,
    decode_message,
    encode_message,
    translate_redis_errors,
)
from domain.kernel.errors import Unavailable

POLL_SECONDS = 0.5
"""Seconds between polls of the queue."""
MAX_TAKEN_LANES = 32
"""Maximum lanes that are taken from the queue and wait until this process can run more jobs."""

_READ_BATCH = 500
LOG = logging.getLogger("joinery.worker")


class ArqLaneSource:
    """Source of lanes with due jobs from arq's queue in Redis (port LaneSource in domain/jobs/ports.py).

    Args:
        url: The URL of Redis.
        max_taken_lanes: Maximum lanes that are taken from the queue before their jobs can start.
    """

    def __init__(self, url: str, *, max_taken_lanes: int = MAX_TAKEN_LANES) -> None:
        self._url, self._limit = url, max_taken_lanes

    async def serve(self, start_lane: Callable[[str], Awaitable[None]], stop: asyncio.Event) -> None:
        """Take lanes from the queue and await `start_lane(lane)` for each, until `stop` is set.

        Lanes whose call of `start_lane` has not ended are returned to the queue.

        Args:
            start_lane: Starts the jobs of a lane; may wait until the process can run more jobs.
            stop: Event that ends the call.

        Raises:
            Unavailable: The connection to Redis is lost.
        """
        taken: set[str] = set()

        async def begin(ctx: dict[Any, Any]) -> None:
            lane = str(ctx["job_id"])
            taken.add(lane)
            await start_lane(lane)
            taken.discard(lane)

        worker = self._create_worker(begin)
        running = asyncio.ensure_future(worker.async_run())
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            await _close_worker(worker, running, taken)
        with translate_redis_errors(), contextlib.suppress(asyncio.CancelledError):
            running.result()

    def _create_worker(self, begin: Callable[[dict[Any, Any]], Awaitable[None]]) -> Worker:
        """Create arq's worker, which calls `begin` for each message after it has removed the message from Redis."""

        async def drain(ctx: dict[Any, Any]) -> None:
            """Do nothing, so that arq removes the message and calls `begin`."""

        return create_worker(
            {
                "functions": [func(drain, name=FUNCTION_NAME, timeout=30, keep_result=0, max_tries=1)],
                "queue_name": QUEUE_NAME,
                "redis_settings": build_redis_settings(self._url),
                "after_job_end": begin,
                "handle_signals": False,
                "max_jobs": self._limit,
                "job_timeout": 30,
                "keep_result": 0,
                "poll_delay": POLL_SECONDS,
                "queue_read_limit": _READ_BATCH,
                "max_tries": 1,
                "retry_jobs": False,
                "log_results": False,
                "job_serializer": encode_message,
                "job_deserializer": decode_message,
            }
        )


async def _close_worker(worker: Worker, running: "asyncio.Future[None]", lanes: set[str]) -> None:
    """Stop arq's worker, return the `lanes` to the queue, and close the connections."""
    worker.allow_pick_jobs = False
    running.cancel()
    for task in worker.tasks.values():
        task.cancel()
    await asyncio.gather(running, *worker.tasks.values(), return_exceptions=True)
    pool, worker._pool = worker._pool, None  # noqa: SLF001  arq has no other way to its connections
    if pool is None:
        return
    try:
        with translate_redis_errors():
            for lane in lanes:
                await pool.enqueue_job(FUNCTION_NAME, _job_id=lane)
    except Unavailable:
        LOG.info("could not return %d job lanes to the queue; the scheduler will add them again", len(lanes))
    finally:
        await pool.aclose(close_connection_pool=True)


def limit_arq_logging() -> None:
    """Set arq's log level to WARNING, because arq logs every message at level INFO."""
    logging.getLogger("arq.worker").setLevel(logging.WARNING)
