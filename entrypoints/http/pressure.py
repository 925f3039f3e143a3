"""How hard the process is pressed, measured: the event loop's lag, requests in flight, waiting for connections."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf
from sys import maxsize
from time import monotonic

PERIOD = 0.05
"""Seconds between two looks."""
_WEIGHT = 0.3


@dataclass(frozen=True, slots=True)
class Thresholds:
    """From where on each level holds: (light, middling, heavy). Lag in seconds, the others in requests."""

    lag: tuple[float, float, float] = (0.15, 0.4, 1.0)
    in_flight: tuple[int, int, int] = (256, 512, 1024)
    waiting: tuple[int, int, int] = (32, 96, 256)


CALM = Thresholds(lag=(inf, inf, inf), in_flight=(maxsize, maxsize, maxsize), waiting=(maxsize, maxsize, maxsize))
"""Nothing is ever shed, however slow the machine: for applications inside tests."""


def _reached(value: float, steps: tuple[float, ...]) -> int:
    return sum(value >= step for step in steps)


class Pressure:
    """`level` is 0 (none) to 3 (heavy). `waiting` tells how many requests wait for a database connection."""

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
        """The pressure now."""
        if self.in_flight < self._light:
            return self._sampled
        return max(self._sampled, _reached(self.in_flight, self._thresholds.in_flight))

    @contextmanager
    def idle(self) -> Iterator[None]:
        """A request in flight that only waits for something to happen presses nobody."""
        self.in_flight -= 1
        try:
            yield
        finally:
            self.in_flight += 1

    def sample(self, late: float) -> None:
        """Take one look: `late` is by how many seconds the loop came too late to it."""
        self.lag += _WEIGHT * (late - self.lag)
        lag, waiting = _reached(self.lag, self._thresholds.lag), _reached(self._waiting(), self._thresholds.waiting)
        self._sampled = max(lag, waiting)

    async def start(self) -> None:
        """Look again and again, until stopped."""
        self._task = asyncio.create_task(self._watch(), name="pressure")

    async def stop(self) -> None:
        """Stop looking."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _watch(self) -> None:
        while True:
            due = monotonic() + PERIOD
            await asyncio.sleep(PERIOD)
            self.sample(max(0.0, monotonic() - due))
