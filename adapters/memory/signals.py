"""Signals within one process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class _Subscription:
    def __init__(self) -> None:
        self.said = asyncio.Event()
        self._words: set[str] = set()

    def hear(self, word: str) -> None:
        """Something was said."""
        self._words.add(word)
        self.said.set()

    def words(self) -> frozenset[str]:
        """What was said since this was last asked."""
        words, self._words = frozenset(self._words), set()
        return words

    async def wait(self, timeout: float | None) -> bool:
        """True once something was said since the last wait; False when the time (seconds) is over."""
        try:
            async with asyncio.timeout(timeout):
                await self.said.wait()
        except TimeoutError:
            return False
        self.said.clear()
        return True


class MemorySignals:
    """Signals (ports/signals.py); `tell` is the other side."""

    def __init__(self) -> None:
        self._listeners: dict[str, list[_Subscription]] = {}

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[_Subscription]:
        """Listen from now on."""
        subscription = _Subscription()
        self._listeners.setdefault(channel, []).append(subscription)
        try:
            yield subscription
        finally:
            self._listeners[channel].remove(subscription)

    def tell(self, channel: str, word: str = "") -> None:
        """Say something to everyone who listens on the channel."""
        for subscription in self._listeners.get(channel, ()):
            subscription.hear(word)
