"""Load of the process, measured by event loop lag, requests in flight and requests waiting for connections."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from sys import maxsize
from time import monotonic

PERIOD = 0.05
"""Seconds between two samples."""
_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Thresholds of the three levels (light, middling, heavy): lag in seconds, the others in requests."""

    lag: tuple[float, float, float] = (0.15, 0.4, 1.0)
    in_flight: tuple[int, int, int] = (256, 512, 1024)
    waiting: tuple[int, int, int] = (32, 96, 256)


CALM = Thresholds(lag=(inf, inf, inf), in_flight=(maxsize, maxsize, maxsize), waiting=(maxsize, maxsize, maxsize))
"""Thresholds that never shed a request, for tests."""


def _level_of(value: float, steps: tuple[float, ...]) -> int:
    return sum(value >= step for step in steps)


class Pressure:
    """Current load level from 0 (none) to 3 (heavy). `waiting` returns how many requests wait for a connection."""

    def __init__(self, waiting: Callable[[], int], thresholds: Thresholds = Thresholds()) -> None:
        self._waiting = waiting
        self._thresholds = thresholds
        self._sampled = 0
        self._light = thresholds.in_flight[0]
        self._task: asyncio.Task[None] | None = None
        self.lag = 0.0
        self.in_flight = 0

    @property
    def level(self) -> int:
        """Current level."""
        if self.in_flight < self._light:
            return self._sampled
        return max(self._sampled, _level_of(self.in_flight, self._thresholds.in_flight))

    @contextmanager
    def idle(self) -> Iterator[None]:
        """Exclude a request from those in flight while it only waits."""
        self.in_flight -= 1
        try:
            yield
        finally:
            self.in_flight += 1

    def sample(self, late: float) -> None:
        """Update the level; `late` is the delay of this sample in seconds."""
        self.lag += _WEIGHT * (late - self.lag)
        lag, waiting = _level_of(self.lag, self._thresholds.lag), _level_of(self._waiting(), self._thresholds.waiting)
        self._sampled = max(lag, waiting)

    async def start(self) -> None:
        """Start sampling."""
        self._task = asyncio.create_task(self._sample_periodically(), name="pressure")

    async def stop(self) -> None:
        """Stop sampling."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _sample_periodically(self) -> None:
        while True:
            due = monotonic() + PERIOD
            await asyncio.sleep(PERIOD)
            self.sample(max(0.0, monotonic() - due))
