"""The worker process: drains several lanes at a time and stops cleanly."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from domain.jobs.ports import LaneSource, Start
from domain.jobs.usecases.draining import Drain
from domain.kernel.errors import Unavailable

GRACE = 12.0
"""Seconds that running jobs have to finish when the process stops; less than the supervisor's timeout."""
OUTAGE = 5.0
"""Seconds between attempts to reach a lost queue again."""
RETRY = 5.0
"""Seconds to wait when a lane's jobs could not be read."""

LOG = logging.getLogger("joinery.worker")


class Worker:
    """The process's worker. It drains up to `lanes` lanes of the source at a time."""

    def __init__(self, source: LaneSource, drain: Drain, *, lanes: int, grace: float = GRACE) -> None:
        self._source, self._drain, self._grace = source, drain, grace
        self._lanes = Lanes(drain.drain, lanes)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; then finish running jobs, or release them."""
        try:
            await self._source.serve(self._lanes.start, stop)
        finally:
            self._drain.stop()
            await self._lanes.close(self._grace)


class Lanes:
    """Runs `drain(lane)` in up to `limit` lanes. `drain` returns whether the lane needs another turn."""

    def __init__(self, drain: Callable[[str], Awaitable[bool]], limit: int) -> None:
        self._drain = drain
        self._slots = asyncio.Semaphore(limit)
        self._woken_again: dict[str, bool] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, lane: str) -> None:
        """Wait for a free slot, then drain the lane in the background; a lane in progress is drained once more."""
        if lane in self._woken_again:
            self._woken_again[lane] = True
            return
        self._woken_again[lane] = False
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            del self._woken_again[lane]
            raise
        task = asyncio.create_task(self._work(lane), name=f"lane {lane}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, grace: float) -> None:
        """Give running lanes `grace` seconds to end, then cancel them, which releases their jobs."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _work(self, lane: str) -> None:
        try:
            while True:
                try:
                    more = await self._turn(lane)
                finally:
                    self._slots.release()
                if not (more or self._woken_again[lane]):
                    return
                await self._slots.acquire()
        finally:
            del self._woken_again[lane]

    async def _turn(self, lane: str) -> bool:
        self._woken_again[lane] = False
        try:
            return await self._drain(lane)
        except Exception:
            LOG.exception("lane %s failed, retrying in %.0f s", lane, RETRY)
            await asyncio.sleep(RETRY)
            return True


class Failover:
    """LaneSource that uses the queue, or the database while the queue is unavailable.

    It tries the queue again every `outage` seconds.
    """

    def __init__(self, queue: LaneSource, database: LaneSource, outage: float = OUTAGE) -> None:
        self._queue, self._database, self._outage = queue, database, outage

    async def serve(self, start: Start, stop: asyncio.Event) -> None:
        """Call `start(lane)` for each lane of the current source until `stop` is set."""
        lost = False
        while not stop.is_set():
            try:
                await self._queue.serve(start, stop)
            except Unavailable as error:
                if not lost:
                    LOG.warning("queue is unavailable, polling the database for due lanes: %s", error)
                lost = True
                await self._serve_from_database(start, stop)
            else:
                lost = False

    async def _serve_from_database(self, start: Start, stop: asyncio.Event) -> None:
        pause = asyncio.Event()
        watch = [asyncio.create_task(stop.wait()), asyncio.create_task(asyncio.sleep(self._outage))]
        serving = asyncio.ensure_future(self._database.serve(start, pause))
        try:
            await asyncio.wait((*watch, serving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.set()
            for task in watch:
                task.cancel()
            await asyncio.gather(*watch, return_exceptions=True)
            await serving
