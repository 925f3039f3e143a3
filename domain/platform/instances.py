"""Running processes, which record heartbeats, and the health of the API according to its failed requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

ROLES = ("api", "runs", "webhooks", "scheduler", "mail")
"""Roles of processes: `runs` executes jobs, `webhooks` delivers webhooks, and `mail` receives mail for sources."""
HEARTBEAT_INTERVAL = 20.0
"""Seconds between two heartbeats."""
HEARTBEAT_TIMEOUT = timedelta(seconds=70)
"""Age of the latest heartbeat from which on a process counts as stopped."""
MIN_FAILURES = 10
"""Minimum number of failed requests for which the API counts as failing."""


@dataclass(frozen=True, slots=True)
class Instance:
    """Running process in one of its roles.

    Attributes:
        instance: ID of the process.
        role: One of ROLES.
        answered: Number of requests with a status below 500 since the previous heartbeat.
        failed: Number of other requests since the previous heartbeat.
    """

    instance: str
    role: str
    answered: int = 0
    failed: int = 0


class RequestTotals(NamedTuple):
    """Numbers of requests of a process since its start: `answered` with a status below 500, `failed` with others."""

    answered: int
    failed: int


def is_serving(instances: Sequence[Instance]) -> bool:
    """Return whether more requests of the API processes were answered than failed."""
    return sum(one.answered for one in instances) > sum(one.failed for one in instances)


def is_idle(instances: Sequence[Instance]) -> bool:
    """Return whether there are API processes, and none of them has received a request."""
    return bool(instances) and not any(one.answered or one.failed for one in instances)


def is_mostly_failing(instances: Sequence[Instance]) -> bool:
    """Return whether more requests of the API processes failed than were answered, and at least MIN_FAILURES failed."""
    answered, failed = sum(one.answered for one in instances), sum(one.failed for one in instances)
    return failed >= MIN_FAILURES and failed > answered
