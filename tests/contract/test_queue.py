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

Start = Callable[[str], Awaitable[None]]


class Kind:
    """Queue with operations that simulate failures."""

    def __init__(
        self, queue: Any, serve: Callable[[Start, asyncio.Event], Awaitable[None]], valkey: Valkey | None
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

    async def revive(self) -> None:
        """Start the queue again."""
        if self.valkey is None:
            self.queue.lost = False
        else:
            await self.valkey.start()


@pytest_asyncio.fixture(params=("memory", "arq"))
async def kind(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Kind]:
    if request.param == "memory":
        memory = MemoryQueue()
        yield Kind(memory, memory.serve, None)
        return
    valkey = Valkey(tmp_path)
    await valkey.start()
    queue = ArqQueue(valkey.build_url())
    yield Kind(queue, ArqLaneSource(valkey.build_url()).serve, valkey)
    await queue.close()
    await valkey.stop()


class Drains:
    """Counter of drains per lane, which blocks them until `gate` is set."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.gate = asyncio.Event()
        self.gate.set()

    async def start(self, lane: str) -> None:
        await self.gate.wait()
        self.counts[lane] += 1


@contextlib.asynccontextmanager
async def served(kind: Kind, drains: Drains) -> AsyncIterator["asyncio.Future[None]"]:
    stop = asyncio.Event()
    serving = asyncio.ensure_future(kind.serve(drains.start, stop))
    yield serving
    stop.set()
    with contextlib.suppress(Unavailable):
        await asyncio.wait_for(serving, 5)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.01)


async def test_a_wake_reaches_a_worker(kind: Kind) -> None:
    drains = Drains()
    async with served(kind, drains):
        await kind.queue.notify("source:1")
        await kind.queue.notify("source:2")
        await until(lambda: drains.counts == {"source:1": 1, "source:2": 1})


async def test_many_wakes_become_one_while_the_lane_waits(kind: Kind) -> None:
    drains = Drains()
    for _ in range(20):
        await kind.queue.notify("lane")
    async with served(kind, drains):
        await until(lambda: drains.counts["lane"] > 0)
        await asyncio.sleep(0.2)
    assert drains.counts == {"lane": 1}


async def test_a_wake_during_a_drain_is_not_lost(kind: Kind) -> None:
    drains = Drains()
    async with served(kind, drains):
        for turn in range(1, 11):
            await kind.queue.notify("lane")
            await until(lambda turn=turn: drains.counts["lane"] >= turn)  # type: ignore[misc]


async def test_wakes_right_at_the_start_of_a_drain_are_not_lost(kind: Kind) -> None:
    """Each row is stored before its wake-up and a drain takes all rows, so no row may remain."""
    rows: list[int] = []
    done: list[int] = []

    async def start(lane: str) -> None:
        done.extend(rows)
        rows.clear()

    stop = asyncio.Event()
    serving = asyncio.ensure_future(kind.serve(start, stop))
    for number in range(300):
        rows.append(number)
        await kind.queue.notify("lane")
        await asyncio.sleep(number % 7 / 1000)
    await until(lambda: not rows)
    assert sorted(done) == list(range(300))
    stop.set()
    await serving


async def test_lanes_that_a_stopping_worker_took_are_left_to_others(kind: Kind) -> None:
    drains = Drains()
    if kind.valkey is None:
        pytest.skip("in one process there is no other worker")
    drains.gate.clear()
    async with served(kind, drains):
        for lane in "abc":
            await kind.queue.notify(lane)
        await asyncio.sleep(0.3)
    drains.gate.set()
    async with served(kind, drains):
        await until(lambda: drains.counts == {"a": 1, "b": 1, "c": 1})


async def test_the_epoch_lasts_until_the_queue_forgets(kind: Kind) -> None:
    first = await kind.queue.get_epoch()
    assert first == await kind.queue.get_epoch()
    await kind.flush()
    second = await kind.queue.get_epoch()
    assert second != first
    await kind.kill()
    with pytest.raises(Unavailable):
        await kind.queue.get_epoch()
    await kind.revive()
    assert await kind.queue.get_epoch() not in (first, second)


async def test_a_lost_queue_is_reported_and_resumed(kind: Kind) -> None:
    drains = Drains()
    assert await kind.queue.is_healthy()
    async with served(kind, drains) as serving:
        await kind.queue.notify("before")
        await until(lambda: drains.counts["before"] == 1)
        await kind.kill()
        assert not await kind.queue.is_healthy()
        with pytest.raises(Unavailable):
            await kind.queue.notify("lost")
        with pytest.raises(Unavailable):
            await asyncio.wait_for(serving, 5)
    await kind.revive()
    assert await kind.queue.is_healthy()
    async with served(kind, drains):
        await kind.queue.notify("after")
        await until(lambda: drains.counts["after"] == 1)


async def test_a_queue_can_be_made_while_its_server_is_down(tmp_path: Path) -> None:
    queue = ArqQueue(f"unix://{tmp_path}/none.sock")
    assert not await queue.is_healthy()
    with pytest.raises(Unavailable):
        await queue.notify("lane")
    with pytest.raises(Unavailable):
        await ArqLaneSource(f"unix://{tmp_path}/none.sock").serve(Drains().start, asyncio.Event())
