"""Signals within one process."""

import contextlib
from collections.abc import AsyncIterator

from ports.signals import Channel, SignalListener


class MemorySignals:
    """Signals (ports/signals.py); `notify` is the other side."""

    def __init__(self) -> None:
        self._listeners: dict[Channel, list[SignalListener]] = {}

    @contextlib.asynccontextmanager
    async def subscribe(self, channel: Channel) -> AsyncIterator[SignalListener]:
        listener = SignalListener()
        self._listeners.setdefault(channel, []).append(listener)
        try:
            yield listener
        finally:
            self._listeners[channel].remove(listener)

    def notify(self, channel: Channel, payload: str = "") -> None:
        """Say something to everyone who listens on the channel."""
        for listener in self._listeners.get(channel, ()):
            listener.hear(payload)
