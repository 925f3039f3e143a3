"""How often a host is asked: turns, moments between them, and hosts that ask to be left alone."""

import asyncio
from collections.abc import Mapping
from email.utils import formatdate
from time import time

import pytest
from yarl import URL

from adapters.http.errors import HostBusy
from adapters.http.pacing import Asker, HostBounds, HostPace

pytestmark = pytest.mark.asyncio
HOST, OTHER = URL("https://vendor.example/a.csv"), URL("https://other.example/a.csv")
NOBODY, OAK = Asker("org_fjord"), Asker("org_oak")
SIGNED = Asker("org_fjord", frozenset({"an account, whose limit is its own"}))


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


def pace(time: Time, **bounds: float) -> HostPace:
    """A pace on that clock, without a moment between unless it is asked for."""
    return HostPace(HostBounds(**{"spacing": 0.0} | bounds), time.clock, time.sleep)  # type: ignore[arg-type]


async def ask(
    made: HostPace,
    url: URL = HOST,
    asker: Asker = NOBODY,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> None:
    """One request that is answered so."""
    async with made.turn(url, asker) as told:
        told(status, headers or {})


async def test_a_moment_lies_between_two_requests_to_one_host() -> None:
    time = Time()
    made, begun = pace(time, spacing=0.25), []
    for url in (HOST, URL("https://vendor.example/b.csv"), OTHER, HOST):
        async with made.turn(url, NOBODY):
            begun.append(time.now)
    assert begun == [100.0, 100.25, 100.25, 100.5]
    time.now += 10
    await ask(made)
    assert time.now == 110.5, "who asks seldom waits for nothing"


async def test_only_so_many_ask_a_host_at_once() -> None:
    made, running, most, gate = pace(Time(), at_once=4, each=2), 0, 0, asyncio.Event()

    async def one(url: URL, asker: Asker = NOBODY) -> None:
        nonlocal running, most
        async with made.turn(url, asker):
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


async def test_whose_turn_does_not_come_comes_back_later() -> None:
    made = pace(Time(), at_once=1, patience=0.01)
    async with made.turn(HOST, NOBODY):
        with pytest.raises(HostBusy) as busy:
            await ask(made)
        assert busy.value.seconds == 0.01
        await ask(made, HOST, SIGNED)
    await ask(made)


@pytest.mark.parametrize("status", [429, 503])
async def test_a_host_that_asks_for_it_is_left_alone(status: int) -> None:
    time = Time()
    made = pace(time)
    await ask(made, status=status, headers={"Retry-After": "30"})
    with pytest.raises(HostBusy) as busy:
        await ask(made)
    assert busy.value.seconds == 30
    await ask(made, OTHER)
    await ask(made, HOST, SIGNED)
    await ask(made, HOST, OAK)
    time.now += 26
    await ask(made)
    assert time.now == 130, "a breath is waited for"
    await ask(made)


async def test_what_hosts_ask_for_is_bounded_and_may_be_nonsense() -> None:
    time = Time()
    made = pace(time)
    await ask(made, status=429, headers={"Retry-After": "999999"})
    with pytest.raises(HostBusy) as busy:
        await ask(made)
    assert busy.value.seconds == 600
    for value in ("", "soon", "-1", "9" * 40, formatdate(0, usegmt=True)):
        await ask(made, OTHER, status=429, headers={"Retry-After": value})
    await ask(made, OTHER, status=200, headers={"Retry-After": "30"})
    await ask(made, OTHER)
    await ask(made, OTHER, status=503, headers={"Retry-After": formatdate(time_from_now(120), usegmt=True)})
    with pytest.raises(HostBusy) as later:
        await ask(made, OTHER)
    assert 110 < later.value.seconds <= 120


def time_from_now(seconds: float) -> float:
    """As the calendar has it."""
    return time() + seconds


async def test_a_request_that_fails_or_is_given_up_frees_its_turn() -> None:
    made = pace(Time(), at_once=1)
    with pytest.raises(OSError, match="broke"):
        async with made.turn(HOST, NOBODY):
            raise OSError("It broke.")
    held = asyncio.create_task(_held(made))
    waiting = asyncio.create_task(ask(made))
    for _ in range(3):
        await asyncio.sleep(0)
    waiting.cancel()
    held.cancel()
    await asyncio.gather(held, waiting, return_exceptions=True)
    await ask(made)
    assert not made._hosts


async def _held(made: HostPace) -> None:
    async with made.turn(HOST, NOBODY):
        await asyncio.sleep(60)


async def test_hosts_that_are_idle_are_forgotten() -> None:
    time = Time()
    made = pace(time, spacing=1.0)
    for number in range(1_000):
        await ask(made, URL(f"https://host-{number}.example/"))
        time.now += 0.5
    assert len(made._hosts) < 300, "in the end, though each rests for a moment after it was asked"


async def test_a_breath_of_ones_own_holds_nobody_up() -> None:
    time = Time()
    made = pace(time)
    await ask(made, status=429, headers={"Retry-After": "4"})
    asleep, awake = asyncio.Event(), asyncio.Event()

    async def sleep(seconds: float) -> None:
        asleep.set()
        await awake.wait()
        time.now += seconds

    made.sleep = sleep
    waiting = asyncio.create_task(ask(made))
    await asleep.wait()
    await ask(made, HOST, OAK)
    assert time.now == 100.0
    awake.set()
    await waiting
    assert time.now == 104.0
