"""Signals within one process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator


class _SignalListener:
    def __init__(self) -> None:
        self.said = asyncio.Event()
        self._words: set[str] = set()

    def hear(self, word: str) -> None:
        """Something was said."""
        self._words.add(word)
        self.said.set()

    def payloads(self) -> frozenset[str]:
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
        self._listeners: dict[str, list[_SignalListener]] = {}

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: str) -> AsyncIterator[_SignalListener]:
        """Listen from now on."""
        listener = _SignalListener()
        self._listeners.setdefault(channel, []).append(listener)
        try:
            yield listener
        finally:
            self._listeners[channel].remove(listener)

    def tell(self, channel: str, word: str = "") -> None:
        """Say something to everyone who listens on the channel."""
        for listener in self._listeners.get(channel, ()):
            listener.hear(word)
