"""Components of the service and their states (docs/conventions.md#service-status)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

COMPONENTS = ("api", "ingestion", "feed", "webhooks", "exports", "assistant")
"""Names of the components of the service, in the order of the status."""


class ComponentState(StrEnum):
    """States of a component, from best to worst."""

    OPERATIONAL = "operational"
    DEGRADED = "degraded"
    DOWN = "down"


_FROM_BEST_TO_WORST = tuple(ComponentState)


def find_worst_state(states: Iterable[ComponentState]) -> ComponentState:
    """Return the worst of the states, or degraded if there are none, because the state is then unknown."""
    return max(states, key=_FROM_BEST_TO_WORST.index, default=ComponentState.DEGRADED)


@dataclass(frozen=True, slots=True)
class DayUptime:
    """Uptime of a component on a day: the fraction (0 to 1) of checks that it passed."""

    day: date
    uptime: float


@dataclass(frozen=True, slots=True)
class Component:
    """Component of the service, with the current state and the uptime on the last days, oldest first."""

    name: str
    state: ComponentState
    days: tuple[DayUptime, ...]


@dataclass(frozen=True, slots=True)
class WorkloadMetrics:
    """Workload metrics of all organisations, on which alerts are based. Ages are in seconds.

    Attributes:
        streams_scheduled: Number of streams of sources that are pulled on a schedule.
        streams_stale: Number of these streams without a successful run for three intervals.
        last_success_age: Age of the most recent successful run of any scheduled source; None without scheduled sources.
            A source without a successful run counts from its creation.
        deliveries_waiting: Number of open webhook deliveries, counted up to a limit on each node.
        oldest_delivery_age: Age of the oldest counted delivery; 0 without deliveries.
        endpoints_disabled: Number of disabled webhook endpoints.
        mail_waiting: Number of outgoing messages that wait to be sent.
        oldest_mail_age: Age of the oldest of these messages; 0 without messages.
        backup_age: Age of the latest backup; None if there is none.
        model_cost_dollars: Cost of language models in the last 24 hours.
    """

    streams_scheduled: int
    streams_stale: int
    last_success_age: float | None
    deliveries_waiting: int
    oldest_delivery_age: float
    endpoints_disabled: int
    mail_waiting: int
    oldest_mail_age: float
    backup_age: float | None
    model_cost_dollars: float
