"""The service's present workload across all organisations, for its operator (docs/operations.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

WINDOW = timedelta(hours=1)
"""Period in which requests and deliveries are counted."""
TENANTS = 30
"""Maximum organisations shown, highest load first."""
LOOKED_AT = 300
"""Maximum organisations examined, of those with usage or storage today."""
COUNTED = 2_000
"""Maximum requests or deliveries counted of each, which bounds the cost of a query."""
JOBS = 50_000
"""Maximum open jobs examined per node."""
SOURCES = 15
LOOKED_SOURCES = 5_000


@dataclass(frozen=True, slots=True)
class TenantLoad:
    """Load of an organisation in one mode.

    `records` are today's (UTC); `requests` and `deliveries` those of the last hour, COUNTED at most.
    """

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
    """A source and its newest run with its duration so far; `failures` are consecutive failed runs."""

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
