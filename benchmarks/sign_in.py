"""What signing in costs, and what API reads notice of twenty people who sign in at once.

`python -m benchmarks.sign_in [SECONDS]`. The application is in memory and called without a network: a read is the whole pipeline
and little else, so that whatever hashing takes from it shows. Hashes have the cost that the service has.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from adapters.argon2 import Argon2Passwords
from adapters.memory import MemoryLimits
from domain.kernel.errors import DomainError
from domain.people.usecases.accounts import Accounts
from domain.people.usecases.sessions import Visitor
from tests.http.fakes import World, running

AT_ONCE = 20
PAUSE = 0.004
"""Seconds between two reads."""


async def hash_times(passwords: Argon2Passwords, rounds: int = 20) -> list[float]:
    """Seconds of CPU a verification, one after the other."""
    encoded, found = await passwords.hash("correct horse battery staple"), []
    for _ in range(rounds):
        began = time.process_time()
        await passwords.verify(encoded, "correct horse battery staple")
        found.append(time.process_time() - began)
    return found


async def read_times(world: World, seconds: float) -> list[float]:
    """Seconds a read of the organisation, and the wait for the loop before it."""
    client, found, over = await world.client("Elm"), [], time.perf_counter() + seconds
    while time.perf_counter() < over:
        due = time.perf_counter() + PAUSE
        await asyncio.sleep(PAUSE)
        answer = await client.get("/v1/org")
        assert answer.status == 200
        found.append(time.perf_counter() - due)
    return found


async def signing_in(world: World, number: int, told: list[str]) -> None:
    """Somebody who tries again and again, each time from elsewhere, for another account."""
    turn = 0
    while True:
        turn += 1
        visitor, email = Visitor(f"10.{number}.{turn // 250}.{turn % 250}"), f"{number}.{turn}@fjord.example"
        try:
            await world.dependencies[Accounts].sign_in.by_password(email, "guess", visitor, "")
        except DomainError as error:
            told.append(type(error).__name__)
            await asyncio.sleep(0.1 if error.code == "overloaded" else 0)


async def beside(world: World, people: int, seconds: float) -> tuple[list[float], list[str]]:
    """The reads' seconds, and how each try ended."""
    told: list[str] = []
    tasks = [asyncio.create_task(signing_in(world, number, told)) for number in range(people)]
    await asyncio.sleep(0.3)
    told.clear()
    try:
        return await read_times(world, seconds), told
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def said(title: str, values: list[float]) -> None:
    """A line of the figure."""
    ordered = sorted(values)
    print(
        f"{title:<44} p50 {statistics.median(ordered) * 1e3:6.2f} ms   p95 {ordered[int(len(ordered) * 0.95)] * 1e3:6.2f} ms"
        f"   worst {ordered[-1] * 1e3:6.1f} ms   of {len(ordered)}"
    )


async def main(seconds: float) -> None:
    """A line a figure."""
    passwords = Argon2Passwords()
    said("CPU of one verification", await hash_times(passwords))
    ways: list[tuple[str, Callable[[World], Awaitable[tuple[list[float], list[str]]]]]] = [
        ("a read, nobody signs in", lambda world: beside(world, 0, seconds)),
        (f"a read beside {AT_ONCE} who sign in", lambda world: beside(world, AT_ONCE, seconds)),
        (f"a read beside {10 * AT_ONCE} who sign in", lambda world: beside(world, 10 * AT_ONCE, seconds)),
    ]
    for title, way in ways:
        async with running(passwords=passwords, limits=MemoryLimits()) as world:
            values, told = await way(world)
        said(title, values)
        if told:
            refused = told.count("Overloaded")
            print(f"{'':<44} {(len(told) - refused) / seconds:.1f} tries a second; {refused} were told to come again")
    passwords.close()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 8.0))
