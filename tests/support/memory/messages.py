"""Queue and signals of processes in memory."""

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable

from domain.kernel.errors import Unavailable
from ports.signals import Channel, SignalListener


class MemoryQueue:
    """Queue (domain/jobs/ports.py) in memory; `serve` is the worker's side."""

    def __init__(self) -> None:
        self._lanes: dict[str, None] = {}
        self._epoch = secrets.token_hex(16)
        self._filled = asyncio.Event()
        self.lost = False
        """Set to have it behave as a queue that cannot be reached."""

    async def notify(self, lane: str) -> None:
        self._check()
        self._lanes[lane] = None
        self._filled.set()

    async def get_epoch(self) -> str:
        self._check()
        return self._epoch

    async def is_healthy(self) -> bool:
        return not self.lost

    def forget(self) -> None:
        self._lanes.clear()
        self._epoch = secrets.token_hex(16)

    def take(self) -> str | None:
        lane = next(iter(self._lanes), None)
        if lane is not None:
            del self._lanes[lane]
        return lane

    async def serve(self, start_lane: Callable[[str], Awaitable[None]], stop: asyncio.Event) -> None:
        stopped = asyncio.ensure_future(stop.wait())
        try:
            while not stop.is_set():
                self._check()
                while (lane := self.take()) is not None:
                    await start_lane(lane)
                self._filled.clear()
                filled = asyncio.ensure_future(self._filled.wait())
                await asyncio.wait((filled, stopped), timeout=1, return_when=asyncio.FIRST_COMPLETED)
                filled.cancel()
        finally:
            stopped.cancel()

    def _check(self) -> None:
        if self.lost:
            raise Unavailable("The queue is lost.")


class MemorySignals:
    """Signals (ports/signals.py) in memory; `notify` sends them."""

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
        """Send the payload to all subscribers of the channel."""
        for listener in self._listeners.get(channel, ()):
            listener.receive(payload)
