"""Rate limits: arithmetic of one bucket, one limit across processes, and requests without Redis."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio
from redis.asyncio import Redis

from adapters.memory_limits import MemoryLimits
from adapters.redis.limits import RedisLimits
from entrypoints.up.servers import Valkey
from ports.limits import RateLimitBucket, RateLimits

pytestmark = pytest.mark.asyncio

READ = RateLimitBucket("org_1.live.read", burst=200, rate=100.0)
EXPENSIVE = RateLimitBucket("org_1.live.expensive", burst=5, rate=2.0)
EXPORT = RateLimitBucket("org_1.live.export", burst=2, rate=1 / 60)

LimitsFactory = Callable[[], RateLimits]


@pytest_asyncio.fixture
async def valkey(tmp_path: Path) -> AsyncIterator[Valkey]:
    server = Valkey(tmp_path)
    await server.start()
    yield server
    await server.stop()


@pytest_asyncio.fixture(params=("memory", "redis"))
async def open_limits(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[LimitsFactory]:
    """Return a factory of the limits of one process; Redis limits share their buckets."""
    if request.param == "memory":
        limits = MemoryLimits()
        yield lambda: limits
        return
    server = Valkey(tmp_path)
    await server.start()
    opened: list[RedisLimits] = []

    def open_client() -> RedisLimits:
        opened.append(RedisLimits(server.build_url(), call_timeout_seconds=5.0))
        return opened[-1]

    yield open_client
    for limits_ in opened:
        await limits_.close()
    await server.stop()


async def count_allowed(limits: RateLimits, budget: RateLimitBucket, times: int) -> int:
    return sum([(await limits.take_token(budget)).allowed for _ in range(times)])


async def test_the_first_take_leaves_all_but_one(open_limits: LimitsFactory) -> None:
    take = await open_limits().take_token(READ)
    assert (take.allowed, take.tokens_left, take.seconds_to_next) == (True, 199, 0.0)
    assert take.seconds_to_full == pytest.approx(0.01, abs=0.002)


async def test_a_burst_is_allowed_and_further_requests_are_refused(open_limits: LimitsFactory) -> None:
    limits = open_limits()
    assert await count_allowed(limits, EXPENSIVE, 5) == 5
    take = await limits.take_token(EXPENSIVE)
    assert (take.allowed, take.tokens_left) == (False, 0)
    assert 0.3 < take.seconds_to_next <= 0.5
    assert 2.3 < take.seconds_to_full <= 2.5


async def test_a_token_is_refilled_in_time(open_limits: LimitsFactory) -> None:
    limits, quick = open_limits(), RateLimitBucket("quick", burst=2, rate=20.0)
    assert await count_allowed(limits, quick, 3) == 2
    await asyncio.sleep((await limits.take_token(quick)).seconds_to_next + 0.005)
    assert (await limits.take_token(quick)).allowed


async def test_remaining_tokens_decrease_one_by_one(open_limits: LimitsFactory) -> None:
    limits, steady = open_limits(), RateLimitBucket("steady", burst=50, rate=0.001)
    assert [(await limits.take_token(steady)).tokens_left for _ in range(51)] == [*range(49, -1, -1), 0]


async def test_small_and_slow_limits_work(open_limits: LimitsFactory) -> None:
    limits = open_limits()
    assert await count_allowed(limits, EXPORT, 5) == 2
    take = await limits.take_token(EXPORT)
    assert 59 < take.seconds_to_next <= 60
    assert 119 < take.seconds_to_full <= 120


async def test_buckets_are_independent(open_limits: LimitsFactory) -> None:
    limits = open_limits()
    assert await count_allowed(limits, EXPENSIVE, 9) == 5
    assert await count_allowed(limits, RateLimitBucket("org_1.test.expensive", burst=5, rate=2.0), 9) == 5


async def test_a_changed_plan_changes_the_limit(open_limits: LimitsFactory) -> None:
    limits = open_limits()
    small, large = RateLimitBucket("plan", burst=10, rate=0.001), RateLimitBucket("plan", burst=100, rate=0.001)
    assert await count_allowed(limits, small, 4) == 4
    assert await count_allowed(limits, large, 100) <= 96
    assert await count_allowed(limits, small, 100) <= 10


async def test_concurrent_processes_share_the_limit(open_limits: LimitsFactory) -> None:
    processes = [open_limits() for _ in range(4)]
    still = RateLimitBucket("still", burst=200, rate=0.001)
    takes = await asyncio.gather(*(process.take_token(still) for _ in range(100) for process in processes))
    # a process may keep a small lease while another is refused; no token is used twice
    assert 190 <= sum(take.allowed for take in takes) <= 200


async def test_sustained_load_gets_burst_and_refill(open_limits: LimitsFactory) -> None:
    processes = [open_limits() for _ in range(3)]
    began, count = time.monotonic(), 0
    while time.monotonic() - began < 1.2:
        takes = await asyncio.gather(*(process.take_token(READ) for process in processes))
        count += sum(take.allowed for take in takes)
        await asyncio.sleep(0.001)
    most = READ.burst + READ.rate * (time.monotonic() - began)
    assert 0.9 * most <= count <= most + 1


# Redis only


async def test_idle_leases_do_not_add_to_a_later_burst(valkey: Valkey) -> None:
    first, second = RedisLimits(valkey.build_url()), RedisLimits(valkey.build_url())
    assert await count_allowed(first, READ, 60) == 60
    await asyncio.sleep(0.7)
    began = time.monotonic()
    count = await count_allowed(first, READ, 300) + await count_allowed(second, READ, 300)
    assert count <= READ.burst + READ.rate * (time.monotonic() - began) + 1
    await first.close()
    await second.close()


async def test_a_clock_that_went_back_does_not_stop_refills(valkey: Valkey) -> None:
    """A failover to a server whose clock is an hour behind leaves timestamps in the future."""
    before, after, raw = (
        RedisLimits(valkey.build_url()),
        RedisLimits(valkey.build_url()),
        Redis.from_url(valkey.build_url()),
    )
    assert await count_allowed(before, READ, 400) >= READ.burst
    key = f"joinery:limit:{READ.key}"
    stated = await raw.hgetall(key)
    ahead = {name: float(stated[name]) + 3600 for name in (b"s", b"u")}
    await raw.hset(key, mapping={b"t": 0, b"o": READ.burst // 2, **ahead})
    assert not (await after.take_token(READ)).allowed
    kept = {name: float(value) for name, value in (await raw.hgetall(key)).items()}
    now = float((await raw.time())[0])
    assert now - 1 <= kept[b"s"] <= now + 2 and kept[b"u"] <= now + 3
    await asyncio.sleep(0.5)
    assert 40 <= await count_allowed(after, READ, 150) <= 120
    await asyncio.sleep(1.2)  # leases of the other clock have expired as well
    assert await count_allowed(after, READ, 300) > READ.burst // 2
    for limits in (before, after):
        await limits.close()
    await raw.aclose()


async def test_a_lost_redis_refuses_no_request_and_is_used_again(
    valkey: Valkey, caplog: pytest.LogCaptureFixture
) -> None:
    limits = RedisLimits(valkey.build_url())
    still = RateLimitBucket("still", burst=100, rate=0.001)
    assert await count_allowed(limits, still, 30) == 30
    await valkey.stop()
    with caplog.at_level(logging.WARNING):
        assert await count_allowed(limits, still, 100) == 70
        assert (await limits.take_token(RateLimitBucket("other", burst=5, rate=1.0))).tokens_left == 4
        assert len(caplog.records) == 1
        await valkey.start()
        for number in range(20):  # it reconnects after a second
            await asyncio.sleep(1.05 if not number else 0.25)
            assert (await limits.take_token(RateLimitBucket(f"third {number}", burst=5, rate=1.0))).tokens_left == 4
            if len(caplog.records) > 1:
                break
        assert [record.getMessage() for record in caplog.records][1:] == [
            "Redis available again; rate limits are shared"
        ]
    await limits.close()


async def test_a_slow_redis_is_not_waited_for(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_unix_server(silent, tmp_path / "s")
    limits = RedisLimits(f"unix://{tmp_path / 's'}")
    began = time.monotonic()
    assert await count_allowed(limits, EXPENSIVE, 9) == 5
    assert time.monotonic() - began < 0.5
    await limits.close()
    server.close()


async def test_a_cancelled_take_does_not_affect_others(valkey: Valkey) -> None:
    limits = RedisLimits(valkey.build_url())
    still = RateLimitBucket("still", burst=50, rate=0.001)
    tasks = [asyncio.create_task(limits.take_token(still)) for _ in range(40)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert sum(not isinstance(result, BaseException) and result.allowed for result in results) == 39
    await limits.close()
