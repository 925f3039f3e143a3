"""Worker that takes lanes from arq's queue and starts to drain them."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from arq.worker import Worker, create_worker, func

from adapters.arq.queue import FUNCTION, QUEUE, dumps, loads, settings, translated
from domain.kernel.errors import Unavailable

POLL = 0.5
"""Seconds between polls of the queue."""
TAKEN = 32
"""Lanes that may be taken from the queue while they wait for a free slot of this process."""

_READ = 500
LOG = logging.getLogger("joinery.worker")


class ArqWorker:
    """Arq worker on the queue at an address."""

    def __init__(self, url: str, *, taken: int = TAKEN) -> None:
        self._url, self._limit = url, taken

    async def serve(self, start: Callable[[str], Awaitable[None]], stop: asyncio.Event) -> None:
        """Await `start(lane)` for each lane in the queue until `stop` is set; `start` may wait for a free slot.

        Lanes that were taken but not started are put back. Raises Unavailable if Redis is lost.
        """
        taken: set[str] = set()

        async def begin(ctx: dict[Any, Any]) -> None:
            lane = str(ctx["job_id"])
            taken.add(lane)
            await start(lane)
            taken.discard(lane)

        worker = self._worker(begin)
        running = asyncio.ensure_future(worker.async_run())
        stopped = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            await _close(worker, running, taken)
        with translated(), contextlib.suppress(asyncio.CancelledError):
            running.result()

    def _worker(self, begin: Callable[[dict[Any, Any]], Awaitable[None]]) -> Worker:
        """Create arq's worker: a message's function does nothing; the lane starts after its message is removed from Redis."""

        async def drain(ctx: dict[Any, Any]) -> None:
            """Accept the message."""

        return create_worker(
            {
                "functions": [func(drain, name=FUNCTION, timeout=30, keep_result=0, max_tries=1)],
                "queue_name": QUEUE,
                "redis_settings": settings(self._url),
                "after_job_end": begin,
                "handle_signals": False,
                "max_jobs": self._limit,
                "job_timeout": 30,
                "keep_result": 0,
                "poll_delay": POLL,
                "queue_read_limit": _READ,
                "max_tries": 1,
                "retry_jobs": False,
                "log_results": False,
                "job_serializer": dumps,
                "job_deserializer": loads,
            }
        )


async def _close(worker: Worker, running: "asyncio.Future[None]", taken: set[str]) -> None:
    """Stop taking lanes, put back those without a free slot, and close the connections."""
    worker.allow_pick_jobs = False
    running.cancel()
    for task in worker.tasks.values():
        task.cancel()
    await asyncio.gather(running, *worker.tasks.values(), return_exceptions=True)
    pool, worker._pool = worker._pool, None  # noqa: SLF001  arq has no other way to its connections
    if pool is None:
        return
    try:
        with translated():
            for lane in taken:
                await pool.enqueue_job(FUNCTION, _job_id=lane)
    except Unavailable:
        LOG.info("%d lanes taken could not be put back; the scheduler wakes them again", len(taken))
    finally:
        await pool.aclose(close_connection_pool=True)


def quiet() -> None:
    """Limit arq's log to warnings, as it logs each message at INFO."""
    logging.getLogger("arq.worker").setLevel(logging.WARNING)
