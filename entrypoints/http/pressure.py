"""Load of the process: event loop lag, requests in flight, and requests that wait for database connections."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from sys import maxsize
from time import monotonic

SAMPLE_SECONDS = 0.05
"""Seconds between two samples."""
_WEIGHT = 0.3
"""Weight of the newest sample in the moving average of the event loop's lag."""


@dataclass(frozen=True, slots=True)
class LoadThresholds:
    """Values from which the load level is 1, 2 and 3.

    Attributes:
        lag: Lag of the event loop in seconds.
        in_flight: Number of requests in flight.
        waiting: Number of requests that wait for a database connection.
    """

    lag: tuple[float, float, float] = (0.15, 0.4, 1.0)
    in_flight: tuple[int, int, int] = (256, 512, 1024)
    waiting: tuple[int, int, int] = (32, 96, 256)


NEVER_SHED = LoadThresholds(
    lag=(inf, inf, inf), in_flight=(maxsize, maxsize, maxsize), waiting=(maxsize, maxsize, maxsize)
)
"""Thresholds with which no request is ever rejected, for tests."""


def _compute_level(value: float, thresholds: tuple[float, ...]) -> int:
    return sum(value >= step for step in thresholds)


class Pressure:
    """Measurement of the process's load level, from 0 (none) to 3 (heavy).

    Args:
        waiting: Function that returns how many requests wait for a database connection.
        thresholds: Values from which the levels apply.
    """

    def __init__(self, waiting: Callable[[], int], thresholds: LoadThresholds = LoadThresholds()) -> None:
        self._waiting = waiting
        self._thresholds = thresholds
        self._sampled = 0
        self._min_in_flight = thresholds.in_flight[0]
        self._task: asyncio.Task[None] | None = None
        self.lag = 0.0
        self.in_flight = 0

    @property
    def level(self) -> int:
        """The current load level, from 0 (none) to 3 (heavy)."""
        if self.in_flight < self._min_in_flight:
            return self._sampled
        return max(self._sampled, _compute_level(self.in_flight, self._thresholds.in_flight))

    @contextmanager
    def count_as_waiting(self) -> Iterator[None]:
        """Count a request as waiting instead of in flight, for the duration of the context."""
        self.in_flight -= 1
        try:
            yield
        finally:
            self.in_flight += 1

    def record_sample(self, delay: float) -> None:
        """Update the load level; `delay` is the number of seconds by which this call is late (the event loop's lag)."""
        self.lag += _WEIGHT * (delay - self.lag)
        lag, waiting = (
            _compute_level(self.lag, self._thresholds.lag),
            _compute_level(self._waiting(), self._thresholds.waiting),
        )
        self._sampled = max(lag, waiting)

    async def start(self) -> None:
        """Start sampling the load periodically."""
        self._task = asyncio.create_task(self._sample_periodically(), name="pressure")

    async def stop(self) -> None:
        """Stop sampling the load."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _sample_periodically(self) -> None:
        while True:
            due_at = monotonic() + SAMPLE_SECONDS
            await asyncio.sleep(SAMPLE_SECONDS)
            self.record_sample(max(0.0, monotonic() - due_at))
