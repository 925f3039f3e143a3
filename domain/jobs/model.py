"""A job: what to do, in which lane, when, and who holds it for how long."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from domain.kernel.tenancy import Tenant

_OF: Final = "/"
LANES_OF_ONE: Final = 16
"""How many lanes of one organisation are under way at a time, so that it leaves room for others."""


def lane_of(org: str, lane: str) -> str:
    """What queue and workers call an organisation's lane: it says whose it is, so that its jobs are looked for where they are."""
    return f"{org}{_OF}{lane}"


def parted(lane: str) -> tuple[str | None, str]:
    """Whose lane it is, and what its jobs call it; None for whoever's, as a queue may still name it after an upgrade."""
    org, of, name = lane.partition(_OF)
    return (org, name) if of else (None, lane)


@dataclass(frozen=True, slots=True)
class NewJob:
    """Work to queue. Jobs of one lane run one after the other; `key` (unique while open) makes asking twice harmless."""

    kind: str
    lane: str
    tenant: Tenant
    args: Mapping[str, Any] = field(default_factory=dict)
    key: str | None = None
    run_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that this worker holds until its lease ends. `attempt` fences it: who claims it next has a higher one.

    `lapsed`: whoever held it before let the lease run out, so that attempt may have ended without a word.
    """

    id: str
    kind: str
    lane: str
    tenant: Tenant
    args: Mapping[str, Any]
    attempt: int
    lapsed: bool = False
