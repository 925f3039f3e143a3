"""Cost of signing in, and the delay of API reads during many sign-ins: `python -m benchmarks.sign_in [SECONDS]`.

The application is in memory and called without a network. A read is little more than the pipeline, so that the
influence of password hashing is visible. Hashes have the same cost parameters as in the service.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable

from adapters.argon2 import Argon2Passwords
from adapters.memory_limits import MemoryLimits
from domain.kernel.errors import DomainError
from domain.people.usecases.auth_services import AuthServices
from domain.people.usecases.sessions import ClientInfo
from tests.http.application import ApplicationHarness, run_application

CONCURRENT_SIGN_INS = 20
PAUSE = 0.004
"""Seconds between two reads."""


async def measure_verifications(passwords: Argon2Passwords, rounds: int = 20) -> list[float]:
    """Verify a password repeatedly; return the CPU seconds of each verification."""
    password_hash, cpu_times = await passwords.hash("correct horse battery staple"), []
    for _ in range(rounds):
        cpu_before = time.process_time()
        await passwords.verify(password_hash, "correct horse battery staple")
        cpu_times.append(time.process_time() - cpu_before)
    return cpu_times


async def measure_reads(application: ApplicationHarness, seconds: float) -> list[float]:
    """Read the organisation repeatedly; return the seconds of each read, including the delay by a blocked event loop."""
    client, durations, deadline = await application.create_client("Elm"), [], time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        due = time.perf_counter() + PAUSE
        await asyncio.sleep(PAUSE)
        response = await client.get("/v1/org")
        assert response.status == 200
        durations.append(time.perf_counter() - due)
    return durations


async def attempt_sign_ins(application: ApplicationHarness, number: int, outcomes: list[str]) -> None:
    """Attempt sign-ins with a wrong password until cancelled, each from another address for another account.

    Args:
        application: Application in memory.
        number: Number of the client.
        outcomes: List to which the name of each error is appended.
    """
    attempt = 0
    while True:
        attempt += 1
        origin, email = (
            ClientInfo(f"10.{number}.{attempt // 250}.{attempt % 250}"),
            f"{number}.{attempt}@fjord.example",
        )
        try:
            await application.dependencies[AuthServices].sign_in.by_password(email, "guess", origin, "")
        except DomainError as error:
            outcomes.append(type(error).__name__)
            await asyncio.sleep(0.1 if error.code == "overloaded" else 0)


async def read_during_sign_ins(
    application: ApplicationHarness, clients: int, seconds: float
) -> tuple[list[float], list[str]]:
    """Measure reads while `clients` clients attempt sign-ins; return the seconds of each read, and the errors of attempts."""
    outcomes: list[str] = []
    tasks = [asyncio.create_task(attempt_sign_ins(application, number, outcomes)) for number in range(clients)]
    await asyncio.sleep(0.3)
    outcomes.clear()
    try:
        return await measure_reads(application, seconds), outcomes
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def print_times(title: str, values: list[float]) -> None:
    """Print median, 95th percentile and maximum."""
    ordered = sorted(values)
    print(
        f"{title:<44} p50 {statistics.median(ordered) * 1e3:6.2f} ms   p95 {ordered[int(len(ordered) * 0.95)] * 1e3:6.2f} ms"
        f"   max {ordered[-1] * 1e3:6.1f} ms   {len(ordered)} measurements"
    )


async def main(seconds: float) -> None:
    """Run all measurements."""
    passwords = Argon2Passwords()
    print_times("CPU of a password verification", await measure_verifications(passwords))
    scenarios: list[tuple[str, Callable[[ApplicationHarness], Awaitable[tuple[list[float], list[str]]]]]] = [
        ("read, no sign-ins", lambda application: read_during_sign_ins(application, 0, seconds)),
        (
            f"read, {CONCURRENT_SIGN_INS} concurrent sign-ins",
            lambda application: read_during_sign_ins(application, CONCURRENT_SIGN_INS, seconds),
        ),
        (
            f"read, {10 * CONCURRENT_SIGN_INS} concurrent sign-ins",
            lambda application: read_during_sign_ins(application, 10 * CONCURRENT_SIGN_INS, seconds),
        ),
    ]
    for title, scenario in scenarios:
        async with run_application(passwords=passwords, limits=MemoryLimits()) as application:
            durations, outcomes = await scenario(application)
        print_times(title, durations)
        if outcomes:
            refused = outcomes.count("Overloaded")
            print(
                f"{'':<44} {(len(outcomes) - refused) / seconds:.1f} attempts a second; {refused} rejected because of overload"
            )
    passwords.close()


if __name__ == "__main__":
    asyncio.run(main(float(sys.argv[1]) if len(sys.argv) > 1 else 8.0))
