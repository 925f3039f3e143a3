"""Processes that tell that they are alive, and what their requests say of the service."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

ROLES: Final = ("api", "runs", "webhooks", "scheduler", "mail")
HEARTBEAT_INTERVAL: Final = 20.0
"""Seconds between two heartbeats."""
HEARTBEAT_TIMEOUT: Final = timedelta(seconds=70)
"""After three heartbeats that did not come a process counts as gone."""
MIN_FAILURES: Final = 10
"""Requests from which on their share of failures says something."""


@dataclass(frozen=True, slots=True)
class Instance:
    """A process in one role, one of ROLES.

    `answered` and `failed` count requests since its last heartbeat: those below 500, and the others.
    """

    instance: str
    role: str
    answered: int = 0
    failed: int = 0


class RequestTotals(NamedTuple):
    """Requests of a process since it started: those below 500, and the others."""

    answered: int
    failed: int


def is_serving(apis: Sequence[Instance]) -> bool:
    """Return whether the instances answered more requests than they failed."""
    return sum(one.answered for one in apis) > sum(one.failed for one in apis)


def is_mostly_failing(apis: Sequence[Instance]) -> bool:
    """Return whether most requests failed, of at least `MIN_FAILURES` failures."""
    answered, failed = sum(one.answered for one in apis), sum(one.failed for one in apis)
    return failed >= MIN_FAILURES and failed > answered
