"""Requests to a host: turns, spacing, and Retry-After."""

import asyncio
from collections.abc import Mapping
from email.utils import formatdate
from time import time

import pytest
from yarl import URL

from adapters.http.errors import HostBusy
from adapters.http.host_rate_limiter import HostBounds, HostCaller, HostRateLimiter

pytestmark = pytest.mark.asyncio
HOST, OTHER = URL("https://vendor.example/a.csv"), URL("https://other.example/a.csv")
FJORD, OAK = HostCaller("org_fjord"), HostCaller("org_oak")
SIGNED = HostCaller("org_fjord", frozenset({"an account, whose limit is its own"}))


class FakeClock:
    """Clock that advances only by sleeping."""

    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        """Return the time in seconds."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Advance the clock."""
        self.now += seconds


def create_limiter(time: FakeClock, **bounds: float) -> HostRateLimiter:
    """Return a rate limiter on the clock, by default without spacing."""
    return HostRateLimiter(HostBounds(**{"spacing_seconds": 0.0} | bounds), time.clock, time.sleep)  # type: ignore[arg-type]


async def send_request(
    limiter: HostRateLimiter,
    url: URL = HOST,
    caller: HostCaller = FJORD,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Send one request that receives the status and the headers."""
    async with limiter.wait_for_turn(url, caller) as report:
        report(status, headers or {})


async def test_requests_to_one_host_are_spaced() -> None:
    time = FakeClock()
    limiter, started = create_limiter(time, spacing_seconds=0.25), []
    for url in (HOST, URL("https://vendor.example/b.csv"), OTHER, HOST):
        async with limiter.wait_for_turn(url, FJORD):
            started.append(time.now)
    assert started == [100.0, 100.25, 100.25, 100.5]
    time.now += 10
    await send_request(limiter)
    assert time.now == 110.5, "infrequent requests do not wait"


async def test_concurrent_requests_to_one_host_are_bounded() -> None:
    limiter, running, maximum, gate = (
        create_limiter(FakeClock(), max_concurrent=4, max_per_caller=2),
        0,
        0,
        asyncio.Event(),
    )

    async def send(url: URL, caller: HostCaller = FJORD) -> None:
        nonlocal running, maximum
        async with limiter.wait_for_turn(url, caller):
            running += 1
            maximum = max(maximum, running)
            await gate.wait()
            running -= 1

    tasks = [asyncio.create_task(send(HOST)) for _ in range(5)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert running == 2, "no organisation has more than its share"
    others = [asyncio.create_task(send(HOST, OAK)) for _ in range(3)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert running == 4
    elsewhere = asyncio.create_task(send(OTHER))
    for _ in range(5):
        await asyncio.sleep(0)
    assert running == 5, "no host waits for another"
    gate.set()
    await asyncio.gather(*tasks, *others, elsewhere)
    assert maximum == 5 and not limiter._hosts


async def test_a_caller_that_waits_too_long_gets_an_error() -> None:
    limiter = create_limiter(FakeClock(), max_concurrent=1, max_wait_seconds=0.01)
    async with limiter.wait_for_turn(HOST, FJORD):
        with pytest.raises(HostBusy) as busy:
            await send_request(limiter)
        assert busy.value.seconds == 0.01
        await send_request(limiter, HOST, SIGNED)
    await send_request(limiter)


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_of_a_host_is_respected(status: int) -> None:
    time = FakeClock()
    limiter = create_limiter(time)
    await send_request(limiter, status=status, headers={"Retry-After": "30"})
    with pytest.raises(HostBusy) as busy:
        await send_request(limiter)
    assert busy.value.seconds == 30
    await send_request(limiter, OTHER)
    await send_request(limiter, HOST, SIGNED)
    await send_request(limiter, HOST, OAK)
    time.now += 26
    await send_request(limiter)
    assert time.now == 130, "a short delay is waited for"
    await send_request(limiter)


async def test_retry_after_is_bounded_and_may_be_invalid() -> None:
    time = FakeClock()
    limiter = create_limiter(time)
    await send_request(limiter, status=429, headers={"Retry-After": "999999"})
    with pytest.raises(HostBusy) as busy:
        await send_request(limiter)
    assert busy.value.seconds == 600
    for value in ("", "soon", "-1", "9" * 40, formatdate(0, usegmt=True)):
        await send_request(limiter, OTHER, status=429, headers={"Retry-After": value})
    await send_request(limiter, OTHER, status=200, headers={"Retry-After": "30"})
    await send_request(limiter, OTHER)
    await send_request(limiter, OTHER, status=503, headers={"Retry-After": formatdate(time_from_now(120), usegmt=True)})
    with pytest.raises(HostBusy) as later:
        await send_request(limiter, OTHER)
    assert 110 < later.value.seconds <= 120


def time_from_now(seconds: float) -> float:
    """Return a time of the calendar."""
    return time() + seconds


async def test_a_failed_or_cancelled_request_frees_its_turn() -> None:
    limiter = create_limiter(FakeClock(), max_concurrent=1)
    with pytest.raises(OSError, match="broke"):
        async with limiter.wait_for_turn(HOST, FJORD):
            raise OSError("It broke.")
    held = asyncio.create_task(_hold_turn(limiter))
    waiting = asyncio.create_task(send_request(limiter))
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    held.cancel()
    await asyncio.gather(held, waiting, return_exceptions=True)
    await send_request(limiter)
    assert not limiter._hosts


async def _hold_turn(limiter: HostRateLimiter) -> None:
    async with limiter.wait_for_turn(HOST, FJORD):
        await asyncio.sleep(60)


async def test_idle_hosts_are_forgotten() -> None:
    time = FakeClock()
    limiter = create_limiter(time, spacing_seconds=1.0)
    for number in range(1_000):
        await send_request(limiter, URL(f"https://host-{number}.example/"))
        time.now += 0.5
    assert len(limiter._hosts) < 300, "idle hosts are removed shortly after their request"


async def test_the_delay_of_one_caller_blocks_no_other() -> None:
    time = FakeClock()
    limiter = create_limiter(time)
    await send_request(limiter, status=429, headers={"Retry-After": "4"})
    sleeping, finished = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        sleeping.set()
        await finished.wait()
        time.now += seconds

    limiter.sleep = sleep
    waiting = asyncio.create_task(send_request(limiter))
    await sleeping.wait()
    await send_request(limiter, HOST, OAK)
    assert time.now == 100.0
    finished.set()
    await waiting
    assert time.now == 104.0
