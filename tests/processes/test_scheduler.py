"""Relay: due lanes are dispatched at once and after losses, without load when idle. Ticks are independent. One scheduler leads."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from domain.jobs.model import ClaimedJob
from domain.jobs.usecases.relay import Relay
from domain.jobs.usecases.ticks import Leader, LeaderTask, Tick, TickRunner
from tests.support.memory.messages import MemoryQueue, MemorySignals

pytestmark = pytest.mark.asyncio


class FakeDispatcher:
    """JobDispatcher with lanes, their due times and the dispatched ones."""

    def __init__(self) -> None:
        self.lanes: dict[str, datetime] = {}
        self.dispatched: set[str] = set()
        self.queries = self.forgotten = 0
        self.broken = False

    def add(self, lane: str, wait: float = 0.0) -> None:
        self.lanes[lane] = datetime.now(UTC) + timedelta(seconds=wait)

    async def dispatch_due_lanes(self, limit: int) -> Sequence[str]:
        self.queries += 1
        if self.broken:
            raise ConnectionError("the database has ended")
        now = datetime.now(UTC)
        due = [lane for lane, at in self.lanes.items() if at <= now and lane not in self.dispatched][:limit]
        self.dispatched.update(due)
        return due

    async def find_next_due(self) -> datetime | None:
        self.queries += 1
        return min((at for lane, at in self.lanes.items() if lane not in self.dispatched), default=None)

    async def reset_dispatched(self) -> None:
        self.forgotten += 1
        self.dispatched.clear()

    async def claim(self, lane: str, limit: int, lease: timedelta) -> Sequence[ClaimedJob]:
        raise NotImplementedError

    async def renew_lease(self, job: ClaimedJob, lease: timedelta) -> bool:
        raise NotImplementedError

    async def release(self, job: ClaimedJob, run_at: datetime) -> None:
        raise NotImplementedError


class RelayRunner:
    """A relay with its queue and signals."""

    def __init__(self) -> None:
        self.dispatcher, self.queue, self.signals = FakeDispatcher(), MemoryQueue(), MemorySignals()
        self.relay = Relay(self.dispatcher, self.queue, self.signals, epoch_check_seconds=0.05)

    def get_queued_lanes(self) -> set[str]:
        return set(self.queue._lanes)

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.relay.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


async def test_due_lanes_are_woken_at_the_start_on_a_signal_and_when_their_time_comes() -> None:
    runner = RelayRunner()
    runner.dispatcher.add("old")
    async with runner.run():
        await wait_until(lambda: runner.get_queued_lanes() == {"old"})
        runner.dispatcher.add("new")
        runner.signals.notify("jobs")
        await wait_until(lambda: runner.get_queued_lanes() == {"old", "new"})
        runner.dispatcher.add("later", 0.3)
        runner.signals.notify("jobs")
        await asyncio.sleep(0.15)
        assert "later" not in runner.get_queued_lanes()
        await wait_until(lambda: "later" in runner.get_queued_lanes())


async def test_more_lanes_than_one_query_returns() -> None:
    runner = RelayRunner()
    for number in range(950):
        runner.dispatcher.add(str(number))
    async with runner.run():
        await wait_until(lambda: len(runner.get_queued_lanes()) == 950)


async def test_lanes_that_the_queue_lost_are_woken_again() -> None:
    runner = RelayRunner()
    runner.dispatcher.add("a")
    async with runner.run():
        await wait_until(lambda: runner.get_queued_lanes() == {"a"})
        runner.queue.forget()
        await wait_until(lambda: runner.get_queued_lanes() == {"a"})


async def test_wakes_missed_during_an_outage_are_repeated(caplog: pytest.LogCaptureFixture) -> None:
    runner = RelayRunner()
    async with runner.run():
        await wait_until(lambda: runner.dispatcher.queries > 0)
        runner.queue.lost = True
        runner.dispatcher.add("a")
        runner.signals.notify("jobs")
        await asyncio.sleep(0.3)
        runner.queue.lost = False
        await wait_until(lambda: runner.get_queued_lanes() == {"a"})
    assert len([record for record in caplog.records if "queue is unavailable" in record.getMessage()]) == 1


async def test_an_idle_relay_leaves_the_database_alone() -> None:
    runner = RelayRunner()
    async with runner.run():
        await asyncio.sleep(1.0)
    assert runner.dispatcher.queries <= 2
    assert runner.dispatcher.forgotten == 1


async def test_ticks_continue_while_others_fail_or_hang(caplog: pytest.LogCaptureFixture) -> None:
    counts = {"good": 0, "bad": 0, "slow": 0}

    async def good() -> None:
        counts["good"] += 1

    async def bad() -> None:
        counts["bad"] += 1
        raise RuntimeError("no luck")

    async def slow() -> None:
        counts["slow"] += 1
        await asyncio.sleep(5)

    ticks = TickRunner([Tick("good", 0.02, good), Tick("bad", 0.02, bad), Tick("slow", 0.02, slow)])
    task = asyncio.create_task(ticks.run())
    await wait_until(lambda: counts["good"] > 5 and counts["bad"] > 5)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert counts["slow"] == 1
    assert "tick bad failed" in caplog.text


async def test_another_scheduler_replaces_a_lost_leader() -> None:
    lock, leaders = asyncio.Lock(), list[str]()
    stops = {name: asyncio.Event() for name in "ab"}

    @contextlib.asynccontextmanager
    async def leadership() -> AsyncIterator[LeaderTask]:
        async with lock:
            yield asyncio.Event().wait

    def duty(name: str) -> LeaderTask:
        async def forever() -> None:
            leaders.append(name)
            await asyncio.Event().wait()

        return forever

    tasks = {name: asyncio.create_task(Leader(leadership, [duty(name)]).run(stops[name])) for name in "ab"}
    await wait_until(lambda: leaders == ["a"])
    await asyncio.sleep(0.05)
    assert leaders == ["a"]
    stops["a"].set()
    await asyncio.wait_for(tasks["a"], 2)
    await wait_until(lambda: leaders == ["a", "b"])
    stops["b"].set()
    await asyncio.wait_for(tasks["b"], 2)


async def test_an_error_releases_the_leadership_and_requests_it_again(caplog: pytest.LogCaptureFixture) -> None:
    runner, stop, terms = RelayRunner(), asyncio.Event(), 0

    @contextlib.asynccontextmanager
    async def leadership() -> AsyncIterator[LeaderTask]:
        nonlocal terms
        terms += 1
        yield asyncio.Event().wait

    runner.dispatcher.broken = True
    with caplog.at_level(logging.ERROR):
        task = asyncio.create_task(Leader(leadership, [runner.relay.run], retry_seconds=0.05).run(stop))
        await wait_until(lambda: terms >= 3)
        runner.dispatcher.broken = False
        runner.dispatcher.add("a")
        await wait_until(lambda: runner.get_queued_lanes() == {"a"})
        stop.set()
        await asyncio.wait_for(task, 2)
    assert "leadership ended" in caplog.text


async def test_a_scheduler_that_lost_the_leadership_does_nothing_more() -> None:
    """Another process may have become the leader."""
    lost, begun, ended, stop = asyncio.Event(), 0, 0, asyncio.Event()

    @contextlib.asynccontextmanager
    async def leadership() -> AsyncIterator[LeaderTask]:
        async def led() -> None:
            await lost.wait()
            lost.clear()
            raise ConnectionError("the lock is gone")

        yield led

    async def duty() -> None:
        nonlocal begun, ended
        begun += 1
        try:
            await asyncio.Event().wait()
        finally:
            ended += 1

    task = asyncio.create_task(Leader(leadership, [duty], retry_seconds=0.05).run(stop))
    await wait_until(lambda: begun == 1)
    lost.set()
    await wait_until(lambda: (begun, ended) == (2, 1))
    stop.set()
    await asyncio.wait_for(task, 2)
