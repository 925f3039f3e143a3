"""The worker process, which executes jobs of several lanes concurrently and stops cleanly.

A lane is a group of jobs that run one after the other.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from domain.jobs.ports import LaneSource, LaneStarter
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.errors import Unavailable

STOP_GRACE_SECONDS = 12.0
"""Seconds within which running jobs must finish when the process stops; less than the supervisor's timeout."""
QUEUE_RETRY_SECONDS = 5.0
"""Seconds between two attempts to reach an unavailable queue."""
LANE_RETRY_SECONDS = 5.0
"""Seconds to wait after the jobs of a lane could not be read."""

LOG = logging.getLogger("joinery.worker")


class Worker:
    """Executes jobs of up to `max_lanes` lanes concurrently."""

    def __init__(
        self, source: LaneSource, processor: LaneProcessor, *, max_lanes: int, grace_seconds: float = STOP_GRACE_SECONDS
    ) -> None:
        self._source, self._processor, self._grace_seconds = source, processor, grace_seconds
        self._lanes = LaneRunner(processor.process_lane, max_lanes)

    async def run(self, stop: asyncio.Event) -> None:
        """Execute jobs until `stop` is set; then wait for running jobs, and release jobs that do not end in time."""
        try:
            await self._source.serve(self._lanes.start, stop)
        finally:
            self._processor.stop()
            await self._lanes.close(self._grace_seconds)


class LaneRunner:
    """Calls `process_lane(lane)` for up to `max_lanes` lanes concurrently, repeatedly for each lane while the result is True."""

    def __init__(self, process_lane: Callable[[str], Awaitable[bool]], max_lanes: int) -> None:
        self._process_lane = process_lane
        self._slots = asyncio.Semaphore(max_lanes)
        self._must_repeat: dict[str, bool] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, lane: str) -> None:
        """Wait until fewer than `max_lanes` lanes run, then process the lane in the background.

        If the lane is running already, return at once; the lane is processed once more afterwards.
        """
        if lane in self._must_repeat:
            self._must_repeat[lane] = True
            return
        self._must_repeat[lane] = False
        try:
            await self._slots.acquire()
        except asyncio.CancelledError:
            del self._must_repeat[lane]
            raise
        task = asyncio.create_task(self._process_repeatedly(lane), name=f"lane {lane}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self, grace_seconds: float) -> None:
        """Wait up to `grace_seconds` seconds for running lanes, then cancel the remaining ones, which releases their jobs."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=grace_seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _process_repeatedly(self, lane: str) -> None:
        try:
            while True:
                try:
                    more = await self._process_once(lane)
                finally:
                    self._slots.release()
                if not (more or self._must_repeat[lane]):
                    return
                await self._slots.acquire()
        finally:
            del self._must_repeat[lane]

    async def _process_once(self, lane: str) -> bool:
        self._must_repeat[lane] = False
        try:
            return await self._process_lane(lane)
        except Exception:
            LOG.exception("lane %s failed, retrying in %.0f s", lane, LANE_RETRY_SECONDS)
            await asyncio.sleep(LANE_RETRY_SECONDS)
            return True


class FailoverLaneSource:
    """LaneSource that uses the queue or, while the queue is unavailable, the database.

    Every `retry_seconds` seconds, it tries to use the queue again.
    """

    def __init__(self, queue: LaneSource, database: LaneSource, retry_seconds: float = QUEUE_RETRY_SECONDS) -> None:
        self._queue, self._database, self._retry_seconds = queue, database, retry_seconds

    async def serve(self, start_lane: LaneStarter, stop: asyncio.Event) -> None:
        """Call `start_lane(lane)` for each lane with due jobs until `stop` is set."""
        lost = False
        while not stop.is_set():
            try:
                await self._queue.serve(start_lane, stop)
            except Unavailable as error:
                if not lost:
                    LOG.warning("queue is unavailable, polling the database for due jobs: %s", error)
                lost = True
                await self._serve_from_database(start_lane, stop)
            else:
                lost = False

    async def _serve_from_database(self, start: LaneStarter, stop: asyncio.Event) -> None:
        pause = asyncio.Event()
        watch = [asyncio.create_task(stop.wait()), asyncio.create_task(asyncio.sleep(self._retry_seconds))]
        serving = asyncio.ensure_future(self._database.serve(start, pause))
        try:
            await asyncio.wait((*watch, serving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.set()
            for task in watch:
                task.cancel()
            await asyncio.gather(*watch, return_exceptions=True)
            await serving
