"""Running processes, as known from their heartbeats, and the health that their requests show."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

ROLES = ("api", "runs", "webhooks", "scheduler", "mail")
HEARTBEAT_INTERVAL = 20.0
"""Seconds between two heartbeats."""
HEARTBEAT_TIMEOUT = timedelta(seconds=70)
"""Age of the latest heartbeat from which a process counts as stopped: three heartbeats are missing."""
MIN_FAILURES = 10
"""Failed requests from which their share is significant."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A process in one role, one of ROLES.

    `answered` and `failed` count requests since its last heartbeat: those with a status below 500, and the others.
    """

    instance: str
    role: str
    answered: int = 0
    failed: int = 0


class RequestTotals(NamedTuple):
    """Requests of a process since it started: those with a status below 500, and the others."""

    answered: int
    failed: int


def is_serving(apis: Sequence[Instance]) -> bool:
    """Return whether more requests were answered than failed."""
    return sum(one.answered for one in apis) > sum(one.failed for one in apis)


def is_idle(apis: Sequence[Instance]) -> bool:
    """Return whether instances are running and none of them had a request."""
    return bool(apis) and not any(one.answered or one.failed for one in apis)


def is_mostly_failing(apis: Sequence[Instance]) -> bool:
    """Return whether most requests failed, at least MIN_FAILURES."""
    answered, failed = sum(one.answered for one in apis), sum(one.failed for one in apis)
    return failed >= MIN_FAILURES and failed > answered
