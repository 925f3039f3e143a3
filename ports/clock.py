"""Clock port, which tests replace."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The wall clock in UTC."""

    def now(self) -> datetime:
        """Return the current time, timezone-aware, in UTC."""
        ...
