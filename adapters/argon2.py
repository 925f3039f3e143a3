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
NICE = 5
"""Niceness of the thread, so that threads that serve requests go first (nice(2), which Linux has per thread)."""
PATIENCE = 5.0
"""Seconds that a call may wait in the queue; on a busy machine the thread gets little time."""
_DUMMY = "the password of nobody"


@dataclass(frozen=True, slots=True)
class Cost:
    """Argon2 parameters: passes over `memory` KiB in `lanes`. ADR 56 states the duration."""

    passes: int = 2
    memory: int = 47_104
    lanes: int = 1


class Argon2Passwords:
    """Passwords (domain/people/ports.py). At most `waiting` calls wait for the thread; at 80 ms each that is about 3 s."""

    def __init__(self, cost: Cost = Cost(), *, waiting: int = 40, patience: float = PATIENCE) -> None:
        self._hasher = PasswordHasher(
            time_cost=cost.passes, memory_cost=cost.memory, parallelism=cost.lanes, type=Type.ID
        )
        self._thread = ThreadPoolExecutor(1, "passwords", initializer=_lower_priority)
        self._max_pending, self._pending, self._lock = waiting, 0, threading.Lock()
        self._patience = patience
        self._dummy_hash: str | None = None

    async def hash(self, password: str) -> str:
        return await self._run(partial(self._hasher.hash, password))

    async def verify(self, encoded: str | None, password: str) -> bool:
        return await self._run(partial(self._verify, encoded, password))

    def is_outdated(self, encoded: str) -> bool:
        return self._hasher.check_needs_rehash(encoded)

    def close(self) -> None:
        """Stop the thread after its current call."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._pending > self._max_pending:
            raise _overloaded()
        deadline = monotonic() + self._patience

        def run_in_time() -> T:
            if monotonic() > deadline:
                raise _overloaded()
            return work()

        with self._lock:
            self._pending += 1
        future = self._thread.submit(run_in_time)
        # A call counts deadline the thread has finished it, even if its caller was cancelled.
        future.add_done_callback(self._release)
        return await wrap_future(future)

    def _release(self, _: "Future[Any]") -> None:
        with self._lock:
            self._pending -= 1

    def _verify(self, encoded: str | None, password: str) -> bool:
        # Computed on the first call of either kind, so that timing does not reveal an unknown account.
        self._dummy_hash = self._dummy_hash or self._hasher.hash(_DUMMY)
        try:
            matches = self._hasher.verify(encoded if encoded is not None else self._dummy_hash, password)
        except (VerificationError, InvalidHashError):
            return False
        return matches and encoded is not None


def _overloaded() -> Overloaded:
    return Overloaded("Too many people are signing in right now. Try again in a few seconds.", retry_after=3)


def _lower_priority() -> None:
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
