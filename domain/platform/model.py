"""Components and their state (docs/conventions.md#service-status)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

COMPONENTS = ("api", "ingestion", "feed", "webhooks", "exports", "assistant")


class ComponentState(StrEnum):
    """States of a component, from best to worst."""

    OPERATIONAL = "operational"
    DEGRADED = "degraded"
    DOWN = "down"


_WORSE = tuple(ComponentState)


def worst_of(states: Iterable[ComponentState]) -> ComponentState:
    """Return the worst of the states; of none, degraded, because the state is unknown."""
    return max(states, key=_WORSE.index, default=ComponentState.DEGRADED)


@dataclass(frozen=True, slots=True)
class DayUptime:
    """The share (0 to 1) of a day's checks that a component passed."""

    day: date
    uptime: float


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the service, its present state and its last days, oldest first."""

    name: str
    state: ComponentState
    days: tuple[DayUptime, ...]


@dataclass(frozen=True, slots=True)
class OperatingFigures:
    """Figures of all organisations that alerts are based on. Ages are in seconds.

    `last_success_age` is the age of the latest successful run of a scheduled source, None without one; `backup_age` is None
    if no backup was ever finished. `model_cost_dollars` is the cost of the last 24 hours.
    """

    sources_scheduled: int
    sources_stale: int
    last_success_age: float | None
    deliveries_waiting: int
    oldest_delivery_age: float
    endpoints_disabled: int
    mail_waiting: int
    oldest_mail_age: float
    backup_age: float | None
    model_cost_dollars: float
