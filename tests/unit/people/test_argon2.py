"""Hashing by argon2id: one thread, a bounded queue, and the same work for unknown users (adapters/argon2)."""

import asyncio
import threading
from typing import Any

import pytest

from adapters.argon2 import Argon2Passwords, HashCost
from domain.kernel.errors import Overloaded

pytestmark = pytest.mark.asyncio
LEAST = HashCost(1, 8)


async def test_a_hash_verifies_only_its_password() -> None:
    passwords = Argon2Passwords(LEAST)
    encoded, other = await passwords.hash("Grüße aus Öland"), await passwords.hash("Grüße aus Öland")
    assert encoded.startswith("$argon2id$") and encoded != other
    assert await passwords.verify(encoded, "Grüße aus Öland") and not await passwords.verify(encoded, "Grüße aus Åland")
    for nonsense in ("", "$argon2id$broken", "plain"):
        assert not await passwords.verify(nonsense, "plain")
    passwords.close()


async def test_an_unknown_user_costs_a_verification() -> None:
    passwords, verified = Argon2Passwords(LEAST), []
    real = passwords._hasher

    class Counting:
        def verify(self, encoded: str, password: str) -> bool:
            verified.append(encoded)
            return real.verify(encoded, password)

        def __getattr__(self, name: str) -> Any:
            return getattr(real, name)

    passwords._hasher = Counting()  # type: ignore[assignment]
    assert not await passwords.verify(None, "dummy password") and not await passwords.verify(None, "x")
    assert len(verified) == 2 and all(one.startswith("$argon2id$") for one in verified)
    passwords.close()


async def test_a_hash_of_another_cost_is_outdated() -> None:
    passwords, dearer = Argon2Passwords(LEAST), Argon2Passwords(HashCost(2, 16))
    encoded = await passwords.hash("a")
    assert not passwords.is_outdated(encoded) and dearer.is_outdated(encoded) and await dearer.verify(encoded, "a")
    passwords.close()
    dearer.close()


async def test_the_queue_is_bounded_and_counts_cancelled_waiters() -> None:
    passwords, goes_on = Argon2Passwords(LEAST, max_waiting_calls=2), threading.Event()
    blocking = asyncio.create_task(passwords._run_in_thread(lambda: goes_on.wait(10)))
    waiting = [asyncio.create_task(passwords.verify(None, "x")) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(Overloaded) as refused:
        await passwords.verify(None, "x")
    assert refused.value.retry_after
    blocking.cancel()
    await asyncio.gather(blocking, return_exceptions=True)
    with pytest.raises(Overloaded):
        await passwords.hash("x")
    goes_on.set()
    assert await asyncio.gather(*waiting) == [False, False]
    assert await passwords.hash("x")
    passwords.close()


async def test_a_cancelled_waiter_costs_no_hash() -> None:
    passwords = Argon2Passwords(LEAST, max_wait_seconds=0)
    with pytest.raises(Overloaded):
        await passwords.verify(None, "x")
    passwords.close()
