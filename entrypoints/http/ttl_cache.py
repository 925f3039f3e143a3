"""Answers remembered for half a second, so that a busy credential does not cost a database query per request."""

import asyncio
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Final, Generic, TypeVar

T = TypeVar("T")

LIFETIME: Final = 0.5
"""Seconds from the moment of asking; a revocation acts within one second (docs/conventions.md#authentication)."""
MOST_FOUND: Final = 10_000
MOST_MISSING: Final = 1_000
"""Bounds, so that guessed credentials cannot fill the memory or push the real ones out."""

Entry = tuple[T | None, float]


class TtlCache(Generic[T]):
    """What was found, or not, under a digest. Requests that ask at the same time ask once."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._found: dict[bytes, Entry[T]] = {}
        self._missing: dict[bytes, Entry[T]] = {}
        self._asking: dict[bytes, asyncio.Future[T | None]] = {}

    def get(self, digest: bytes) -> Entry[T] | None:
        """The remembered answer, or None when there is none in force."""
        entry = self._found.get(digest) or self._missing.get(digest)
        return entry if entry is not None and entry[1] > self._clock() else None

    def has_seen(self, digest: bytes) -> bool:
        """Whether something was found under the digest, lately if not now."""
        return digest in self._found

    async def ask(self, digest: bytes, find: Callable[[], Awaitable[T | None]]) -> T | None:
        """The answer of `find`, which is asked at most once at a time per digest."""
        if (running := self._asking.get(digest)) is not None:
            return await asyncio.shield(running)
        future = asyncio.ensure_future(self._find(digest, find))
        self._asking[digest] = future
        future.add_done_callback(lambda _: self._asking.pop(digest, None))
        return await asyncio.shield(future)

    async def _find(self, digest: bytes, find: Callable[[], Awaitable[T | None]]) -> T | None:
        until = self._clock() + LIFETIME
        answer = await find()
        self._forget(digest)
        kept, most = (self._missing, MOST_MISSING) if answer is None else (self._found, MOST_FOUND)
        while len(kept) >= most:
            del kept[next(iter(kept))]
        kept[digest] = (answer, until)
        return answer

    def _forget(self, digest: bytes) -> None:
        self._found.pop(digest, None)
        self._missing.pop(digest, None)
