"""The system clock, and a clock that a test sets."""

from datetime import UTC, datetime, timedelta
from time import time_ns


class SystemClock:
    """System clock in UTC."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time_ns() // 1_000_000 / 1000, UTC)


class SettableClock:
    """Clock that stands still until it is set or advanced."""

    def __init__(self, start: datetime | None = None) -> None:
        self._now = start or datetime(2026, 11, 20, 13, 8, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def set(self, moment: datetime) -> None:
        """Set the time (aware, UTC)."""
        self._now = moment

    def advance(self, by: timedelta) -> datetime:
        """Advance the time; return the new time."""
        self._now += by
        return self._now
