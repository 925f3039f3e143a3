"""Clocks: the machine's own, and one that a test sets."""

from datetime import UTC, datetime, timedelta
from time import time_ns


class SystemClock:
    """The machine's wall clock in UTC."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time_ns() // 1_000_000 / 1000, UTC)


class SettableClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 11, 20, 13, 8, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def set(self, moment: datetime) -> None:
        """Set the time (aware, UTC)."""
        self._now = moment

    def advance(self, by: timedelta) -> datetime:
        """Move the time on; answers the new time."""
        self._now += by
        return self._now
