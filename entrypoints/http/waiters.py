"""Requests that wait for events, long polls and streams: each is cheap, so an organisation may have many, but not all there are."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from domain.kernel.errors import RateLimited
from entrypoints.http.pressure import Pressure

MOST: Final = 1_000
"""Long polls and streams that one organisation may have open at a process."""


class Waiters:
    """Who waits, by organisation."""

    def __init__(self, pressure: Pressure) -> None:
        self._pressure = pressure
        self._open: Counter[str] = Counter()

    def check(self, org: str) -> None:
        """Raises RateLimited when the organisation has MOST already."""
        if self._open[org] >= MOST:
            raise RateLimited(
                f"Your organisation has {MOST} long polls and streams open; nothing was done.", retry_after=1
            )

    @contextmanager
    def counted(self, org: str) -> Iterator[None]:
        """While one more of the organisation's is open."""
        self._open[org] += 1
        try:
            yield
        finally:
            self._open[org] -= 1
            if not self._open[org]:
                del self._open[org]

    @contextmanager
    def resting(self, org: str) -> Iterator[None]:
        """While a change that is committed waits for what it set going, which presses nobody and is refused nothing."""
        with self.counted(org), self._pressure.idle():
            yield

    @contextmanager
    def polling(self, org: str) -> Iterator[None]:
        """While a long poll only waits, which presses nobody. Raises RateLimited."""
        self.check(org)
        with self.counted(org), self._pressure.idle():
            yield
