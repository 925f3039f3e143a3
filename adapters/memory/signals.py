"""Signals within one process."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

from ports.signals import Channel, Heard


class _SignalListener:
    def __init__(self) -> None:
        self.said = asyncio.Event()
        self._payloads: set[str] = set()

    def hear(self, payload: str) -> None:
        """Something was said."""
        self._payloads.add(payload)
        self.said.set()

    def heard(self) -> Heard:
        """What was said since this was last asked."""
        payloads, self._payloads = self._payloads, set()
        return Heard.of(payloads)

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
    """Signals (ports/signals.py); `notify` is the other side."""

    def __init__(self) -> None:
        self._listeners: dict[Channel, list[_SignalListener]] = {}

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: Channel) -> AsyncIterator[_SignalListener]:
        listener = _SignalListener()
        self._listeners.setdefault(channel, []).append(listener)
        try:
            yield listener
        finally:
            self._listeners[channel].remove(listener)

    def notify(self, channel: Channel, payload: str = "") -> None:
        """Say something to everyone who listens on the channel."""
        for listener in self._listeners.get(channel, ()):
            listener.hear(payload)
