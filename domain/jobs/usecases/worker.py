"""The worker process: takes lanes from wherever they are named, drains several at a time, stops cleanly."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from domain.jobs.ports import LaneSource, Start
from domain.jobs.usecases.draining import Drain
from domain.kernel.errors import Unavailable

GRACE = 12.0
"""Seconds that jobs in hand have to finish when the process stops; less than what the supervisor waits."""
OUTAGE = 5.0
"""Seconds between attempts to reach a lost queue again."""
RETRY = 5.0
"""Seconds to wait when a lane could not even be asked for its jobs."""

LOG = logging.getLogger("joinery.worker")


class Worker:
    """One a process. It drains up to `lanes` lanes at a time, of those that `source` names."""

    def __init__(self, source: LaneSource, drain: Drain, *, lanes: int, grace: float = GRACE) -> None:
        self._source, self._drain, self._grace = source, drain, grace
        self._lanes = Lanes(drain.drain, lanes)

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`; then finish the jobs in hand, or give them back."""
        try:
            await self._source.serve(self._lanes.start, stop)
        finally:
            self._drain.stop()
            await self._lanes.close(self._grace)


class Lanes:
    """Runs `drain(lane)` in up to `limit` lanes; `drain` answers whether more may wait and it wants another turn."""

    def __init__(self, drain: Callable[[str], Awaitable[bool]], limit: int) -> None:
        self._drain = drain
        self._slots = asyncio.Semaphore(limit)
        self._woken_again: dict[str, bool] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, lane: str) -> None:
        """Wait for a free slot, then drain the lane in the background; a lane being drained is looked at once more."""
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
        """Give running lanes `grace` seconds to end, then cancel them, which gives their jobs back."""
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
            LOG.exception("lane %s: failed, again in %.0f s", lane, RETRY)
            await asyncio.sleep(RETRY)
            return True


class Failover:
    """LaneSource: the queue; while that is lost the database, trying the queue again every `outage` seconds."""

    def __init__(self, queue: LaneSource, database: LaneSource, outage: float = OUTAGE) -> None:
        self._queue, self._database, self._outage = queue, database, outage

    async def serve(self, start: Start, stop: asyncio.Event) -> None:
        """Until `stop`: `await start(lane)` for each lane, wherever it is named."""
        lost = False
        while not stop.is_set():
            try:
                await self._queue.serve(start, stop)
            except Unavailable as error:
                if not lost:
                    LOG.warning("the queue is lost, due lanes are taken from the database: %s", error)
                lost = True
                await self._for_a_while(start, stop)
            else:
                lost = False

    async def _for_a_while(self, start: Start, stop: asyncio.Event) -> None:
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
