"""Argon2id password hashing in a low-priority thread with a bounded queue."""

import os
import threading
from asyncio import wrap_future
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from argon2 import PasswordHasher, Type
from argon2.exceptions import InvalidHashError, VerificationError

from domain.kernel.errors import Overloaded

T = TypeVar("T")
NICENESS = 5
"""Niceness of the hashing thread (nice(2), on Linux per thread), so that threads that serve requests have priority."""
MAX_WAIT_SECONDS = 5.0
"""Maximum seconds that a call waits for the hashing thread; a call that waited longer raises Overloaded."""
_DUMMY = "dummy password"
"""Password whose hash is verified for unknown accounts."""


@dataclass(frozen=True, slots=True)
class HashCost:
    """Cost of an Argon2 hash (docs/decisions, ADR 56).

    Attributes:
        passes: The number of passes over the memory.
        memory_kib: The memory in KiB.
        threads: The number of threads.
    """

    passes: int = 2
    memory_kib: int = 47_104
    threads: int = 1


class Argon2Passwords:
    """Password hasher (port PasswordHasher in domain/people/ports.py).

    Each hash takes about 80 ms.

    Args:
        cost: The cost of new hashes.
        max_waiting_calls: Maximum calls that wait for the thread; further calls raise Overloaded.
        max_wait_seconds: Maximum seconds that a call waits for the thread; a call that waited longer raises Overloaded.
    """

    def __init__(
        self, cost: HashCost = HashCost(), *, max_waiting_calls: int = 40, max_wait_seconds: float = MAX_WAIT_SECONDS
    ) -> None:
        self._hasher = PasswordHasher(
            time_cost=cost.passes, memory_cost=cost.memory_kib, parallelism=cost.threads, type=Type.ID
        )
        self._thread = ThreadPoolExecutor(1, "passwords", initializer=_lower_priority)
        self._max_pending, self._pending, self._lock = max_waiting_calls, 0, threading.Lock()
        self._max_wait_seconds = max_wait_seconds
        self._dummy_hash: str | None = None

    async def hash(self, password: str) -> str:
        return await self._run_in_thread(partial(self._hasher.hash, password))

    async def verify(self, password_hash: str | None, password: str) -> bool:
        return await self._run_in_thread(partial(self._verify_password, password_hash, password))

    def is_outdated(self, password_hash: str) -> bool:
        return self._hasher.check_needs_rehash(password_hash)

    def close(self) -> None:
        """Stop the thread after its current call."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run_in_thread(self, work: Callable[[], T]) -> T:
        """Run a function in the hashing thread and return its result. Raises Overloaded."""
        if self._pending > self._max_pending:
            raise _build_overloaded()
        deadline = monotonic() + self._max_wait_seconds

        def run_in_time() -> T:
            if monotonic() > deadline:
                raise _build_overloaded()
            return work()

        with self._lock:
            self._pending += 1
        future = self._thread.submit(run_in_time)
        # A call counts until the thread has finished it, even if its caller was cancelled.
        future.add_done_callback(self._decrement_pending)
        return await wrap_future(future)

    def _decrement_pending(self, _: "Future[Any]") -> None:
        with self._lock:
            self._pending -= 1

    def _verify_password(self, encoded: str | None, password: str) -> bool:
        """Return whether the password has the hash; for an unknown account (None), return False after the same time."""
        # Computed on the first call of either kind, so that timing does not reveal an unknown account.
        self._dummy_hash = self._dummy_hash or self._hasher.hash(_DUMMY)
        try:
            matches = self._hasher.verify(encoded if encoded is not None else self._dummy_hash, password)
        except (VerificationError, InvalidHashError):
            return False
        return matches and encoded is not None


def _build_overloaded() -> Overloaded:
    return Overloaded("Too many people are signing in right now. Try again in a few seconds.", retry_after=3)


def _lower_priority() -> None:
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
