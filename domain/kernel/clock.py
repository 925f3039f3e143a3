"""The service's time: each process sets its clock by the database's clock (docs/decisions/0062-database-clock.md)."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

READING_INTERVAL_SECONDS = 30.0
"""Seconds after a reading of the database's clock until the next one is due."""
MAX_CLOCK_SKEW = timedelta(seconds=60)
"""Maximum difference between the clocks of the process that signs a link and the one that serves it."""
MAX_OFFSET = 5.0
"""Seconds by which the machine's clock may differ from the service's without a warning."""
_MAX_DRIFT_SECONDS = 1.0
"""Maximum change of the wall clock's difference to the monotonic clock; above it, the wall clock was set."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reading of the database's clock.

    Attributes:
        unix: The database's time in seconds since 1970.
        monotonic: The machine's monotonic clock at the time of the reading.
        wall_minus_monotonic: The machine's wall clock minus the monotonic clock, in seconds.
        error: Maximum error of `unix`, in seconds.
    """

    unix: float
    monotonic: float
    wall_minus_monotonic: float
    error: float


class ServiceClock:
    """Clock (ports/clock.py) that shows the time of the database's clock.

    Between readings of the database's clock it follows the monotonic clock, so that setting the machine's clock does not
    change it. Before the first reading it shows the machine's time.
    """

    def __init__(self) -> None:
        self._reading: _Reading | None = None

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC, in whole milliseconds."""
        return datetime.fromtimestamp(self.unix_ms() / 1000, UTC)

    def unix_ms(self) -> int:
        """Return the current time in milliseconds since 1970."""
        return int(self._compute_unix_time() * 1000)

    def needs_reading(self) -> bool:
        """Return whether the database's clock must be read: the last reading is old, or the machine's clock was set since."""
        # a machine that was suspended is recognised as well, because its monotonic clock stops
        reading, monotonic = self._reading, time.monotonic()
        if reading is None or not 0 <= monotonic - reading.monotonic < READING_INTERVAL_SECONDS:
            return True
        return abs(time.time() - monotonic - reading.wall_minus_monotonic) > _MAX_DRIFT_SECONDS

    def apply_reading(self, database_time: datetime, sent_at: float, received_at: float) -> None:
        """Set the clock by a reading of the database's clock, unless an earlier, more exact reading agrees with it.

        The maximum error of a reading is half of the query's duration.

        Args:
            database_time: The time that the database returned.
            sent_at: When the query was sent, by the monotonic clock.
            received_at: When the response was received, by the monotonic clock.
        """
        middle, error = (sent_at + received_at) / 2, (received_at - sent_at) / 2
        wall_minus_monotonic = time.time() - time.monotonic()
        unix, known = database_time.timestamp(), self._reading
        if known is not None:
            expected = known.unix + middle - known.monotonic
            if error >= known.error and abs(expected - unix) <= error + known.error:
                unix, error = expected, known.error
        self._reading = _Reading(unix, middle, wall_minus_monotonic, error)

    def compute_offset(self) -> float:
        """Return the machine's wall clock minus the service's clock, in seconds."""
        return time.time() - self._compute_unix_time() if self._reading else 0.0

    def _compute_unix_time(self) -> float:
        reading = self._reading
        if reading is None:
            return time.time()
        return reading.unix + time.monotonic() - reading.monotonic


CLOCK = ServiceClock()
"""The clock of this process."""


def now() -> datetime:
    """Return the service's current time, timezone-aware, in UTC."""
    return CLOCK.now()
