"""Processing of lanes: each job once and in order, leases renewed, failures postponed, jobs released on stop."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from domain.jobs.model import ClaimedJob
from domain.jobs.usecases.lane_processor import LaneProcessor, compute_retry_delay
from domain.jobs.usecases.polling import DatabaseLaneSource
from domain.jobs.usecases.worker import FailoverLaneSource, LaneRunner, Worker
from domain.kernel.errors import LeaseLost
from domain.kernel.tenancy import Tenant
from tests.support.memory.messages import MemoryQueue, MemorySignals

pytestmark = pytest.mark.asyncio

TENANT = Tenant("org_1", True)


@dataclass
class FakeJob:
    lane: str
    kind: str
    attempt: int = 0
    run_at: float = 0.0
    lease_until: float | None = None
    dispatched: bool = False
    done: bool = False
    released: list[timedelta] = field(default_factory=list)


class FakeDispatcher:
    """JobDispatcher over a few rows; job IDs are row numbers."""

    def __init__(self, *rows: FakeJob) -> None:
        self.rows = list(rows)
        self.refuse_renewal: set[str] = set()
        self.queries = self.forgotten = 0

    @staticmethod
    def _now() -> float:
        return datetime.now(UTC).timestamp()

    def _due(self, row: FakeJob) -> bool:
        now = self._now()
        return not row.done and row.run_at <= now and (row.lease_until is None or row.lease_until <= now)

    async def dispatch_due_lanes(self, limit: int) -> Sequence[str]:
        self.queries += 1
        due = [row for row in self.rows if self._due(row) and (not row.dispatched or row.lease_until is not None)][
            :limit
        ]
        for row in due:
            row.dispatched = True
        return list(dict.fromkeys(row.lane for row in due))

    async def find_next_due(self) -> datetime | None:
        times = [row.lease_until or row.run_at for row in self.rows if not row.done]
        return datetime.fromtimestamp(min(times), UTC) if times else None

    async def claim(self, lane: str, limit: int, lease: timedelta) -> Sequence[ClaimedJob]:
        due = [(number, row) for number, row in enumerate(self.rows) if row.lane == lane and self._due(row)][:limit]
        for _, row in due:
            row.attempt += 1
            row.lease_until = self._now() + lease.total_seconds()
        return [ClaimedJob(str(number), row.kind, lane, TENANT, {}, row.attempt) for number, row in due]

    async def renew_lease(self, job: ClaimedJob, lease: timedelta) -> bool:
        if job.id in self.refuse_renewal:
            return False
        self.rows[int(job.id)].lease_until = self._now() + lease.total_seconds()
        return True

    async def release(self, job: ClaimedJob, run_at: datetime) -> None:
        row = self.rows[int(job.id)]
        row.released.append(run_at - datetime.now(UTC))
        row.run_at, row.lease_until, row.dispatched = run_at.timestamp(), None, False

    async def reset_dispatched(self) -> None:
        self.forgotten += 1
        for row in self.rows:
            row.dispatched = row.dispatched and row.lease_until is not None

    async def finish(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Return a handler that only finishes the job."""
        self.rows[int(job.id)].done = True


def get_delay_seconds(row: FakeJob) -> list[float]:
    return [round(wait.total_seconds(), 1) for wait in row.released]


async def wait_until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not condition():
            await asyncio.sleep(0.005)


async def test_a_lane_is_drained_in_order_and_no_other() -> None:
    board = FakeDispatcher(*(FakeJob("a", "k") for _ in range(120)), FakeJob("b", "k"))
    order: list[str] = []

    async def handler(job: ClaimedJob, lost: asyncio.Event) -> None:
        order.append(job.id)
        await board.finish(job, lost)

    assert await LaneProcessor(board, {"k": handler}).process_lane("a") is False
    assert order == [str(number) for number in range(120)]
    assert not board.rows[120].done


async def test_a_failed_job_is_postponed_and_blocks_nothing(caplog: pytest.LogCaptureFixture) -> None:
    board = FakeDispatcher(FakeJob("a", "bad"), FakeJob("a", "unknown"), FakeJob("a", "good"))

    async def bad(job: ClaimedJob, lost: asyncio.Event) -> None:
        raise RuntimeError("no luck")

    with caplog.at_level(logging.INFO):
        await LaneProcessor(board, {"bad": bad, "good": board.finish}).process_lane("a")
    assert [row.done for row in board.rows] == [False, False, True]
    assert get_delay_seconds(board.rows[0]) == get_delay_seconds(board.rows[1]) == [2.0]
    assert "job 0 (bad): attempt 1 failed" in caplog.text
    assert "no luck" in caplog.text


async def test_delays_double_up_to_ten_minutes() -> None:
    assert [compute_retry_delay(attempt).total_seconds() for attempt in (1, 2, 3, 9, 10, 10_000)] == [
        2,
        4,
        8,
        512,
        600,
        600,
    ]


async def test_leases_are_renewed_for_the_current_job_and_those_behind_it() -> None:
    board = FakeDispatcher(FakeJob("a", "slow"), FakeJob("a", "k"))

    async def slow(job: ClaimedJob, lost: asyncio.Event) -> None:
        await asyncio.sleep(0.35)
        assert all((row.lease_until or 0) > datetime.now(UTC).timestamp() for row in board.rows)
        await board.finish(job, lost)

    await LaneProcessor(board, {"slow": slow, "k": board.finish}, lease=timedelta(seconds=0.15)).process_lane("a")
    assert all(row.done and row.attempt == 1 for row in board.rows)


async def test_a_lost_lease_stops_the_work_on_that_job_only() -> None:
    board = FakeDispatcher(FakeJob("a", "slow"), FakeJob("a", "k"))
    board.refuse_renewal.add("0")
    lost_leases: list[bool] = []

    async def slow(job: ClaimedJob, lost: asyncio.Event) -> None:
        try:
            await asyncio.sleep(5)
        finally:
            lost_leases.append(lost.is_set())

    await LaneProcessor(board, {"slow": slow, "k": board.finish}, lease=timedelta(seconds=0.15)).process_lane("a")
    assert lost_leases == [True]
    assert [row.done for row in board.rows] == [False, True]
    assert not board.rows[0].released


async def test_a_waiting_job_without_lease_is_not_started() -> None:
    board = FakeDispatcher(FakeJob("a", "slow"), FakeJob("a", "k"))
    board.refuse_renewal.add("1")

    async def slow(job: ClaimedJob, lost: asyncio.Event) -> None:
        await asyncio.sleep(0.15)
        await board.finish(job, lost)

    stopped = LaneProcessor(board, {"slow": slow, "k": board.finish}, lease=timedelta(seconds=0.2))
    task = asyncio.create_task(stopped.process_lane("a"))
    await wait_until(lambda: board.rows[0].done)
    stopped.stop()
    await task
    assert not board.rows[1].done
    assert not board.rows[1].released


async def test_a_lease_lost_in_the_transaction_is_not_a_failure() -> None:
    board = FakeDispatcher(FakeJob("a", "k"))

    async def handler(job: ClaimedJob, lost: asyncio.Event) -> None:
        raise LeaseLost

    await LaneProcessor(board, {"k": handler}).process_lane("a")
    assert not board.rows[0].released


async def test_a_stop_finishes_the_current_job_and_releases_the_others() -> None:
    board = FakeDispatcher(FakeJob("a", "k"), FakeJob("a", "k"))
    stop, begun = asyncio.Event(), asyncio.Event()

    async def handler(job: ClaimedJob, lost: asyncio.Event) -> None:
        begun.set()
        await asyncio.sleep(0.1)
        await board.finish(job, lost)

    queue = MemoryQueue()
    await queue.notify("a")
    task = asyncio.create_task(Worker(queue, LaneProcessor(board, {"k": handler}), max_lanes=2).run(stop))
    await begun.wait()
    stop.set()
    await task
    assert [row.done for row in board.rows] == [True, False]
    assert get_delay_seconds(board.rows[1]) == [0.0]


async def test_a_job_that_exceeds_the_grace_period_is_released() -> None:
    board = FakeDispatcher(FakeJob("a", "k"))
    stop, begun = asyncio.Event(), asyncio.Event()

    async def handler(job: ClaimedJob, lost: asyncio.Event) -> None:
        begun.set()
        await asyncio.sleep(60)

    queue = MemoryQueue()
    await queue.notify("a")
    task = asyncio.create_task(
        Worker(queue, LaneProcessor(board, {"k": handler}), max_lanes=2, grace_seconds=0.05).run(stop)
    )
    await begun.wait()
    stop.set()
    await asyncio.wait_for(task, 2)
    assert get_delay_seconds(board.rows[0]) == [0.0]


async def test_a_long_lane_does_not_starve_others() -> None:
    board = FakeDispatcher(*(FakeJob("long", "k") for _ in range(30)), FakeJob("short", "k"))
    order: list[str] = []

    async def handler(job: ClaimedJob, lost: asyncio.Event) -> None:
        order.append(job.lane)
        await board.finish(job, lost)

    lanes = LaneRunner(LaneProcessor(board, {"k": handler}, batch_size=5, max_duration=timedelta(0)).process_lane, 1)
    await lanes.start("long")
    await lanes.start("short")
    await lanes.close(5)
    assert len(order) == 31
    assert order.index("short") <= 10


async def test_lanes_run_once_at_a_time_and_again_when_woken_meanwhile() -> None:
    running, most, count = 0, 0, 0

    async def drain(lane: str) -> bool:
        nonlocal running, most, count
        running += 1
        most, count = max(most, running), count + 1
        await asyncio.sleep(0.02)
        running -= 1
        return False

    lanes = LaneRunner(drain, 4)
    for _ in range(5):
        await lanes.start("a")
        await asyncio.sleep(0)
    await lanes.close(5)
    assert (most, count) == (1, 2)


async def test_concurrent_lanes_are_limited_to_the_slots() -> None:
    running, most = 0, 0

    async def drain(lane: str) -> bool:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return False

    lanes = LaneRunner(drain, 3)
    for number in range(10):
        await lanes.start(str(number))
    await lanes.close(5)
    assert most == 3


# Without a queue.


async def run_until_polled(
    board: FakeDispatcher, signals: MemorySignals, body: Callable[[], Awaitable[None]], idle: float = 30.0
) -> None:
    stop = asyncio.Event()
    drain = LaneProcessor(board, {"k": board.finish})
    task = asyncio.create_task(
        Worker(DatabaseLaneSource(board, signals, idle_seconds=idle), drain, max_lanes=2).run(stop)
    )
    await body()
    stop.set()
    await asyncio.wait_for(task, 2)


async def test_a_worker_needs_no_queue() -> None:
    board, signals = FakeDispatcher(FakeJob("a", "k"), FakeJob("b", "k")), MemorySignals()

    async def body() -> None:
        await wait_until(lambda: all(row.done for row in board.rows))
        board.rows += [FakeJob("a", "k"), FakeJob("c", "k", run_at=datetime.now(UTC).timestamp() + 0.4)]
        signals.notify("jobs")
        await wait_until(lambda: all(row.done for row in board.rows))

    await run_until_polled(board, signals, body)


async def test_idle_polling_rarely_queries_the_database() -> None:
    board = FakeDispatcher()

    async def body() -> None:
        await asyncio.sleep(0.5)

    await run_until_polled(board, MemorySignals(), body)
    assert board.queries <= 2


async def test_a_lost_queue_is_replaced_by_the_database_until_it_is_back() -> None:
    board, signals, queue, stop = FakeDispatcher(FakeJob("a", "k")), MemorySignals(), MemoryQueue(), asyncio.Event()
    queue.lost = True
    source = FailoverLaneSource(queue, DatabaseLaneSource(board, signals), retry_seconds=0.1)
    task = asyncio.create_task(Worker(source, LaneProcessor(board, {"k": board.finish}), max_lanes=2).run(stop))
    await wait_until(lambda: board.rows[0].done)
    queue.lost = False
    board.rows.append(FakeJob("b", "k", dispatched=True))
    await queue.notify("b")
    await wait_until(lambda: board.rows[1].done)
    stop.set()
    await asyncio.wait_for(task, 2)
