"""The pace of requests to a host: turns, spacing, and hosts that send Retry-After."""

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
NOBODY, OAK = HostCaller("org_fjord"), HostCaller("org_oak")
SIGNED = HostCaller("org_fjord", frozenset({"an account, whose limit is its own"}))


class Time:
    """A clock that moves by what is slept."""

    def __init__(self) -> None:
        self.now = 100.0

    def clock(self) -> float:
        """Seconds."""
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Move on."""
        self.now += seconds


def pace(time: Time, **bounds: float) -> HostRateLimiter:
    """Return a pace on that clock, without spacing by default."""
    return HostRateLimiter(HostBounds(**{"spacing_seconds": 0.0} | bounds), time.clock, time.sleep)  # type: ignore[arg-type]


async def send(
    made: HostRateLimiter,
    url: URL = HOST,
    asker: HostCaller = NOBODY,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> None:
    """One request that is answered so."""
    async with made.wait_for_turn(url, asker) as report:
        report(status, headers or {})


async def test_requests_to_one_host_are_spaced() -> None:
    time = Time()
    made, begun = pace(time, spacing_seconds=0.25), []
    for url in (HOST, URL("https://vendor.example/b.csv"), OTHER, HOST):
        async with made.wait_for_turn(url, NOBODY):
            begun.append(time.now)
    assert begun == [100.0, 100.25, 100.25, 100.5]
    time.now += 10
    await send(made)
    assert time.now == 110.5, "rare requests do not wait"


async def test_concurrent_requests_to_one_host_are_bounded() -> None:
    made, running, most, gate = pace(Time(), max_concurrent=4, max_per_caller=2), 0, 0, asyncio.Event()

    async def one(url: URL, asker: HostCaller = NOBODY) -> None:
        nonlocal running, most
        async with made.wait_for_turn(url, asker):
            running += 1
            most = max(most, running)
            await gate.wait()
            running -= 1

    tasks = [asyncio.create_task(one(HOST)) for _ in range(5)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert running == 2, "no organisation has more than its share"
    others = [asyncio.create_task(one(HOST, OAK)) for _ in range(3)]
    for _ in range(5):
        await asyncio.sleep(0)
    assert running == 4
    elsewhere = asyncio.create_task(one(OTHER))
    for _ in range(5):
        await asyncio.sleep(0)
    assert running == 5, "no host waits for another"
    gate.set()
    await asyncio.gather(*tasks, *others, elsewhere)
    assert most == 5 and not made._hosts


async def test_a_caller_that_waits_too_long_gets_an_error() -> None:
    made = pace(Time(), max_concurrent=1, max_wait_seconds=0.01)
    async with made.wait_for_turn(HOST, NOBODY):
        with pytest.raises(HostBusy) as busy:
            await send(made)
        assert busy.value.seconds == 0.01
        await send(made, HOST, SIGNED)
    await send(made)


@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after_of_a_host_is_respected(status: int) -> None:
    time = Time()
    made = pace(time)
    await send(made, status=status, headers={"Retry-After": "30"})
    with pytest.raises(HostBusy) as busy:
        await send(made)
    assert busy.value.seconds == 30
    await send(made, OTHER)
    await send(made, HOST, SIGNED)
    await send(made, HOST, OAK)
    time.now += 26
    await send(made)
    assert time.now == 130, "a breath is waited for"
    await send(made)


async def test_retry_after_is_bounded_and_may_be_invalid() -> None:
    time = Time()
    made = pace(time)
    await send(made, status=429, headers={"Retry-After": "999999"})
    with pytest.raises(HostBusy) as busy:
        await send(made)
    assert busy.value.seconds == 600
    for value in ("", "soon", "-1", "9" * 40, formatdate(0, usegmt=True)):
        await send(made, OTHER, status=429, headers={"Retry-After": value})
    await send(made, OTHER, status=200, headers={"Retry-After": "30"})
    await send(made, OTHER)
    await send(made, OTHER, status=503, headers={"Retry-After": formatdate(time_from_now(120), usegmt=True)})
    with pytest.raises(HostBusy) as later:
        await send(made, OTHER)
    assert 110 < later.value.seconds <= 120


def time_from_now(seconds: float) -> float:
    """As the calendar has it."""
    return time() + seconds


async def test_a_failed_or_cancelled_request_frees_its_turn() -> None:
    made = pace(Time(), max_concurrent=1)
    with pytest.raises(OSError, match="broke"):
        async with made.wait_for_turn(HOST, NOBODY):
            raise OSError("It broke.")
    held = asyncio.create_task(_held(made))
    waiting = asyncio.create_task(send(made))
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    held.cancel()
    await asyncio.gather(held, waiting, return_exceptions=True)
    await send(made)
    assert not made._hosts


async def _held(made: HostRateLimiter) -> None:
    async with made.wait_for_turn(HOST, NOBODY):
        await asyncio.sleep(60)


async def test_hosts_that_are_idle_are_forgotten() -> None:
    time = Time()
    made = pace(time, spacing_seconds=1.0)
    for number in range(1_000):
        await send(made, URL(f"https://host-{number}.example/"))
        time.now += 0.5
    assert len(made._hosts) < 300, "in the end, though each is kept for a moment after its request"


async def test_the_delay_of_one_caller_blocks_no_other() -> None:
    time = Time()
    made = pace(time)
    await send(made, status=429, headers={"Retry-After": "4"})
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        asleep.set()
        await awake.wait()
        time.now += seconds

    made.sleep = sleep
    waiting = asyncio.create_task(send(made))
    await asleep.wait()
    await send(made, HOST, OAK)
    assert time.now == 100.0
    awake.set()
    await waiting
    assert time.now == 104.0
