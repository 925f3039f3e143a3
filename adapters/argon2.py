"""Argon2id on a thread of its own, behind everything else the machine has to do, and never more of it than is served soon."""

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
"""How far the thread stands back behind those that answer requests (nice(2), which Linux has for each thread)."""
PATIENCE = 5.0
"""Seconds after which it is not begun any more: on a busy machine the thread gets little."""
_NOBODYS = "the password of nobody"


@dataclass(frozen=True, slots=True)
class Cost:
    """What one hash costs: passes over `memory` KiB in `lanes`. ADR 56 has how long that takes."""

    passes: int = 2
    memory: int = 47_104
    lanes: int = 1


class Argon2Passwords:
    """Passwords (domain/people/ports.py). `waiting` calls may wait for the one thread; at 80 ms each they do so for some 3 s."""

    def __init__(self, cost: Cost = Cost(), *, waiting: int = 40, patience: float = PATIENCE) -> None:
        self._hasher = PasswordHasher(
            time_cost=cost.passes, memory_cost=cost.memory, parallelism=cost.lanes, type=Type.ID
        )
        self._thread = ThreadPoolExecutor(1, "passwords", initializer=_stand_back)
        self._most, self._at_hand, self._lock = waiting, 0, threading.Lock()
        self._patience = patience
        self._nobodys: str | None = None

    async def hash(self, password: str) -> str:
        return await self._run(partial(self._hasher.hash, password))

    async def verify(self, encoded: str | None, password: str) -> bool:
        return await self._run(partial(self._verified, encoded, password))

    def is_outdated(self, encoded: str) -> bool:
        return self._hasher.check_needs_rehash(encoded)

    def close(self) -> None:
        """End the thread, once it has done what it is doing."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        if self._at_hand > self._most:
            raise _overloaded()
        until = monotonic() + self._patience

        def begun() -> T:
            if monotonic() > until:
                raise _overloaded()
            return work()

        with self._lock:
            self._at_hand += 1
        future = self._thread.submit(begun)
        # It counts until the thread is done with it, whether or not anybody still waits for the answer.
        future.add_done_callback(self._done)
        return await wrap_future(future)

    def _done(self, _: "Future[Any]") -> None:
        with self._lock:
            self._at_hand -= 1

    def _verified(self, encoded: str | None, password: str) -> bool:
        # Made with whatever comes first, so that the first of nobody's takes no longer than others.
        self._nobodys = self._nobodys or self._hasher.hash(_NOBODYS)
        try:
            same = self._hasher.verify(encoded if encoded is not None else self._nobodys, password)
        except (VerificationError, InvalidHashError):
            return False
        return same and encoded is not None


def _overloaded() -> Overloaded:
    return Overloaded("Too many people sign in at this moment; try again in a few seconds.", retry_after=3)


def _stand_back() -> None:
    if hasattr(os, "setpriority"):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
