"""Time, so that tests can set it."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The wall clock in UTC."""

    def now(self) -> datetime:
        """The time now, aware, in UTC."""
        ...
