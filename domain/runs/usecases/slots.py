"""Room for so many runs at a time, shared fairly among organisations: none holds up the others."""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairSlots:
    """`limit` slots in one process.

    A free slot goes to the organisation that holds the fewest, the one that has waited longest among those. No
    organisation holds more than `most`, which is half of them unless it is given, and at least one.
    """

    def __init__(self, limit: int, most: int | None = None) -> None:
        self._free = limit
        self._most = max(1, limit // 2 if most is None else most)
        self._held: Counter[str] = Counter()
        self._waiting: deque[tuple[str, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def slot(self, org: str) -> AsyncIterator[None]:
        """One of the slots, as soon as it is the organisation's turn."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (org, turn)
        self._waiting.append(entry)
        self._grant()
        try:
            await turn
            yield
        finally:
            if entry in self._waiting:
                self._waiting.remove(entry)
            else:
                self._free += 1
                self._held[org] -= 1
                if not self._held[org]:
                    del self._held[org]
                self._grant()

    def _grant(self) -> None:
        while self._free:
            able = [(org, turn) for org, turn in self._waiting if not turn.done() and self._held[org] < self._most]
            if not able:
                return
            entry = min(able, key=lambda one: self._held[one[0]])  # the first of the least: they wait in order
            self._waiting.remove(entry)
            self._free -= 1
            self._held[entry[0]] += 1
            entry[1].set_result(None)
