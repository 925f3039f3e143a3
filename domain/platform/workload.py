"""What the service has on its hands, over all organisations, as its operator looks at it (docs/operations.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

WINDOW = timedelta(hours=1)
"""Of which requests and deliveries are told."""
TENANTS = 30
"""So many are shown, those with most to do first."""
LOOKED_AT = 300
"""So many organisations are looked at: those that used or kept anything today."""
COUNTED = 2_000
"""Up to so many requests or deliveries of each are counted, so that looking costs the same whatever there is."""
JOBS = 50_000
"""Up to so many open jobs of a node are looked at."""
SOURCES = 15
LOOKED_SOURCES = 5_000


@dataclass(frozen=True, slots=True)
class TenantLoad:
    """An organisation in one mode. `records` today (UTC); `requests` and `deliveries` of the last hour, COUNTED at most."""

    org: str
    livemode: bool
    name: str
    plan: str
    records: int
    stored_bytes: int
    requests: int
    deliveries: int


@dataclass(frozen=True, slots=True)
class SourceLoad:
    """A source and its newest run: how long that took, or takes; `failures` are runs that failed in a row."""

    org: str
    livemode: bool
    id: str
    name: str
    connector: str
    status: str
    failures: int
    reason: str
    run_status: str | None
    started_at: datetime | None
    seconds: float | None
