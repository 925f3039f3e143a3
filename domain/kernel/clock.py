"""The service's time: one clock a process, set by the database (docs/decisions/0062-one-clock.md)."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

READING_SECONDS = 30.0
"""Seconds after which a new reading is due."""
SKEW = timedelta(seconds=60)
"""Clock skew that is allowed between the signer of a link and its server."""
MAX_OFFSET = 5.0
"""Seconds by which the machine's clock may differ from the service's without a warning."""
_STEPPED = 1.0
"""Seconds between the advances of wall clock and monotonic clock that show that the wall clock was set or the machine slept."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """The time `unix` (seconds since 1970) at `monotonic`; `ahead` is the machine's wall clock less its monotonic one."""

    unix: float
    monotonic: float
    ahead: float
    error: float


class ServiceClock:
    """Clock (ports/clock.py) that is set by readings of the database's clock.

    Between readings it advances by the monotonic clock, so that setting the machine's clock does not change it. Before the
    first reading it is the machine's clock.
    """

    def __init__(self) -> None:
        self._reading: _Reading | None = None

    def now(self) -> datetime:
        """Return the time, aware, in UTC, in whole milliseconds."""
        return datetime.fromtimestamp(self.unix_ms() / 1000, UTC)

    def unix_ms(self) -> int:
        """Return the milliseconds since 1970."""
        return int(self._unix() * 1000)

    def is_stale(self) -> bool:
        """Return whether a reading is due: the last one is old, or the machine's clock was set or slept since."""
        reading, monotonic = self._reading, time.monotonic()
        if reading is None or not 0 <= monotonic - reading.monotonic < READING_SECONDS:
            return True
        return abs(time.time() - monotonic - reading.ahead) > _STEPPED

    def adjust(self, moment: datetime, sent: float, received: float) -> None:
        """Apply a reading, which is exact to half of its round trip.

        A reading that is less exact than the present time and agrees with it is ignored, so that network jitter does not
        move the clock back and forth.

        Args:
            moment: The time read.
            sent: When the reading was requested, by the monotonic clock.
            received: When it was answered, by the monotonic clock.

        """
        middle, error = (sent + received) / 2, (received - sent) / 2
        ahead = time.time() - time.monotonic()
        unix, known = moment.timestamp(), self._reading
        if known is not None:
            expected = known.unix + middle - known.monotonic
            if error >= known.error and abs(expected - unix) <= error + known.error:
                unix, error = expected, known.error
        self._reading = _Reading(unix, middle, ahead, error)

    def offset(self) -> float:
        """Return by how many seconds the machine's wall clock is ahead of the service's."""
        return time.time() - self._unix() if self._reading else 0.0

    def _unix(self) -> float:
        reading = self._reading
        if reading is None:
            return time.time()
        return reading.unix + time.monotonic() - reading.monotonic


CLOCK = ServiceClock()
"""The clock of this process."""


def now() -> datetime:
    """Return the service's time, aware, in UTC."""
    return CLOCK.now()
