"""Credentials that nobody here has seen: looked up together, one statement at a time, however many are tried.

A key that was just made works at once; guessed ones cost the database no more than PACE statements a second, and one
connection.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Final, Generic, TypeVar

from domain.kernel.errors import Overloaded

T = TypeVar("T")

PACE: Final = 50
"""Statements a second, once as many were sent at a stretch."""
AT_ONCE: Final = 500
"""Credentials in one statement."""
MOST: Final = 5_000
"""Credentials that wait; whoever comes then is told to come again."""


class Strangers(Generic[T]):
    """`find` answers what is known of one digest, `find_all` which of many are known."""

    def __init__(
        self,
        find: Callable[[bytes], Awaitable[T | None]],
        find_all: Callable[[Collection[bytes]], Awaitable[Mapping[bytes, T]]],
    ) -> None:
        self._find, self._find_all = find, find_all
        self._waiting: dict[bytes, asyncio.Future[T | None]] = {}
        self._working: asyncio.Task[None] | None = None
        self._allowance, self._counted = float(PACE), 0.0

    async def ask(self, digest: bytes) -> T | None:
        """What is known of the digest. Raises Overloaded, or what `find` raises."""
        answer = self._waiting.get(digest)
        if answer is None:
            if len(self._waiting) >= MOST:
                raise Overloaded(retry_after=2)
            answer = self._waiting[digest] = asyncio.get_running_loop().create_future()
        if self._working is None:
            self._working = asyncio.create_task(self._work(), name="strangers")
        return await asyncio.shield(answer)

    async def _work(self) -> None:
        try:
            while self._waiting:
                await self._paced()
                batch = {digest: self._waiting.pop(digest) for digest in list(self._waiting)[:AT_ONCE]}
                await self._look_up(batch)
        finally:
            self._working = None

    async def _paced(self) -> None:
        now = asyncio.get_running_loop().time()
        self._allowance = min(float(PACE), self._allowance + (now - self._counted) * PACE)
        self._counted = now
        if self._allowance < 1:
            await asyncio.sleep((1 - self._allowance) / PACE)
        self._allowance -= 1

    async def _look_up(self, batch: Mapping[bytes, asyncio.Future[T | None]]) -> None:
        known: dict[bytes, T | None]
        try:
            if len(batch) == 1:
                known = {digest: await self._find(digest) for digest in batch}
            else:
                known = dict(await self._find_all(batch.keys()))
        except Exception as error:
            for answer in batch.values():
                answer.set_exception(error)
                answer.exception()  # whoever asked may have left
        else:
            for digest, answer in batch.items():
                answer.set_result(known.get(digest))
