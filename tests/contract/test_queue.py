"""Queues: wake-ups reach workers, are combined, survive drains, and a lost queue is detected."""

import asyncio
import contextlib
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from adapters.arq.queue import ArqQueue
from adapters.arq.worker import ArqLaneSource
from domain.kernel.errors import Unavailable
from entrypoints.up.servers import Valkey
from tests.support.memory.messages import MemoryQueue

pytestmark = pytest.mark.asyncio

StartLane = Callable[[str], Awaitable[None]]


class QueueHarness:
    """Queue with operations that simulate failures."""

    def __init__(
        self, queue: Any, serve: Callable[[StartLane, asyncio.Event], Awaitable[None]], valkey: Valkey | None
    ) -> None:
        self.queue, self.serve, self.valkey = queue, serve, valkey

    async def flush(self) -> None:
        """Delete the contents of the running queue."""
        if self.valkey is None:
            self.queue.forget()
        else:
            async with Redis.from_url(self.valkey.build_url()) as redis:
                await redis.flushall()

    async def kill(self) -> None:
        """Stop the queue and lose its contents."""
        if self.valkey is None:
            self.queue.forget()
            self.queue.lost = True
        else:
            async with Redis.from_url(self.valkey.build_url()) as redis:
                os.kill((await redis.info("server"))["process_id"], signal.SIGKILL)

    async def restart(self) -> None:
        """Start the queue again."""
        if self.valkey is None:
            self.queue.lost = False
        else:
            await self.valkey.start()


@pytest_asyncio.fixture(params=("memory", "arq"))
async def harness(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[QueueHarness]:
    if request.param == "memory":
        memory = MemoryQueue()
        yield QueueHarness(memory, memory.serve, None)
        return
    valkey = Valkey(tmp_path)
    await valkey.start()
    queue = ArqQueue(valkey.build_url())
    yield QueueHarness(queue, ArqLaneSource(valkey.build_url()).serve, valkey)
    await queue.close()
    await valkey.stop()


class DrainCounter:
    """Counter of drains per lane, which blocks them until `gate` is set."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.gate = asyncio.Event()
        self.gate.set()

    async def start(self, lane: str) -> None:
        await self.gate.wait()
        self.counts[lane] += 1


@contextlib.asynccontextmanager
async def serve_queue(harness: QueueHarness, drains: DrainCounter) -> AsyncIterator["asyncio.Future[None]"]:
    stop = asyncio.Event()
    serving = asyncio.ensure_future(harness.serve(drains.start, stop))
    yield serving
    stop.set()
    with contextlib.suppress(Unavailable):
        await asyncio.wait_for(serving, 5)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_wake_up_reaches_a_worker(harness: QueueHarness) -> None:
    drains = DrainCounter()
    async with serve_queue(harness, drains):
        await harness.queue.notify("source:1")
        await harness.queue.notify("source:2")
        await wait_until(lambda: drains.counts == {"source:1": 1, "source:2": 1})


async def test_wake_ups_are_combined_while_the_lane_waits(harness: QueueHarness) -> None:
    drains = DrainCounter()
    for _ in range(20):
        await harness.queue.notify("lane")
    async with serve_queue(harness, drains):
        await wait_until(lambda: drains.counts["lane"] > 0)
        await asyncio.sleep(0.2)
    assert drains.counts == {"lane": 1}


async def test_a_wake_up_during_a_drain_is_not_lost(harness: QueueHarness) -> None:
    drains = DrainCounter()
    async with serve_queue(harness, drains):
        for turn in range(1, 11):
            await harness.queue.notify("lane")
            await wait_until(lambda turn=turn: drains.counts["lane"] >= turn)  # type: ignore[misc]


async def test_wake_ups_at_the_start_of_a_drain_are_not_lost(harness: QueueHarness) -> None:
    """Each row is stored before its wake-up and a drain takes all rows, so no row may remain."""
    rows: list[int] = []
    done: list[int] = []

    async def start(lane: str) -> None:
        done.extend(rows)
        rows.clear()

    stop = asyncio.Event()
    serving = asyncio.ensure_future(harness.serve(start, stop))
    for number in range(300):
        rows.append(number)
        await harness.queue.notify("lane")
        await asyncio.sleep(number % 7 / 1000)
    await wait_until(lambda: not rows)
    assert sorted(done) == list(range(300))
    stop.set()
    await serving


async def test_a_stopping_worker_returns_its_lanes(harness: QueueHarness) -> None:
    drains = DrainCounter()
    if harness.valkey is None:
        pytest.skip("in one process there is no other worker")
    drains.gate.clear()
    async with serve_queue(harness, drains):
        for lane in "abc":
            await harness.queue.notify(lane)
        await asyncio.sleep(0.3)
    drains.gate.set()
    async with serve_queue(harness, drains):
        await wait_until(lambda: drains.counts == {"a": 1, "b": 1, "c": 1})


async def test_the_epoch_lasts_until_the_queue_forgets(harness: QueueHarness) -> None:
    first = await harness.queue.get_epoch()
    assert first == await harness.queue.get_epoch()
    await harness.flush()
    second = await harness.queue.get_epoch()
    assert second != first
    await harness.kill()
    with pytest.raises(Unavailable):
        await harness.queue.get_epoch()
    await harness.restart()
    assert await harness.queue.get_epoch() not in (first, second)


async def test_a_lost_queue_is_reported_and_resumed(harness: QueueHarness) -> None:
    drains = DrainCounter()
    assert await harness.queue.is_healthy()
    async with serve_queue(harness, drains) as serving:
        await harness.queue.notify("before")
        await wait_until(lambda: drains.counts["before"] == 1)
        await harness.kill()
        assert not await harness.queue.is_healthy()
        with pytest.raises(Unavailable):
            await harness.queue.notify("lost")
        with pytest.raises(Unavailable):
            await asyncio.wait_for(serving, 5)
    await harness.restart()
    assert await harness.queue.is_healthy()
    async with serve_queue(harness, drains):
        await harness.queue.notify("after")
        await wait_until(lambda: drains.counts["after"] == 1)


async def test_a_queue_can_be_created_while_its_server_is_down(tmp_path: Path) -> None:
    queue = ArqQueue(f"unix://{tmp_path}/none.sock")
    assert not await queue.is_healthy()
    with pytest.raises(Unavailable):
        await queue.notify("lane")
    with pytest.raises(Unavailable):
        await ArqLaneSource(f"unix://{tmp_path}/none.sock").serve(DrainCounter().start, asyncio.Event())
