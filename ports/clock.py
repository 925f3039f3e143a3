"""The current time, as a port, so that tests can set it."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """Wall clock in UTC."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""
        ...
