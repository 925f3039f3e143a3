"""Components and their state (docs/conventions.md#service-status)."""

from dataclasses import dataclass
from datetime import date
from typing import Final

COMPONENTS: Final = ("api", "ingestion", "feed", "webhooks", "exports", "assistant")
STATES: Final = ("operational", "degraded", "down")


@dataclass(frozen=True, slots=True)
class DayUptime:
    """The share (0 to 1) of a day's checks that a component passed."""

    day: date
    uptime: float


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the service, its state now and its last days, oldest first."""

    name: str
    state: str
    days: tuple[DayUptime, ...]
