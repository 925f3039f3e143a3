"""The current workload of all organisations, for the operator (docs/operations.md)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

COUNTED_PERIOD = timedelta(hours=1)
"""Period in which requests and deliveries are counted."""
MAX_TENANTS = 30
"""Maximum number of organisations in a result."""
MAX_EXAMINED_TENANTS = 300
"""Maximum number of organisations on each node that are examined: those with the most records today."""
MAX_COUNTED = 2_000
"""Maximum number of requests, and of deliveries, that are counted for each organisation."""
MAX_EXAMINED_JOBS = 50_000
"""Maximum number of open jobs that are examined on each database node."""
MAX_SOURCES = 15
"""Maximum number of sources in a result."""
MAX_EXAMINED_SOURCES = 5_000
"""Maximum number of sources on each node that are examined for the slowest runs, in no particular order."""


@dataclass(frozen=True, slots=True)
class TenantLoad:
    """Load of an organisation in one mode.

    Attributes:
        org: ID of the organisation.
        records: Number of created or changed records today (UTC).
        requests: Number of requests in the last hour, at most MAX_COUNTED.
        deliveries: Number of webhook deliveries in the last hour, at most MAX_COUNTED.
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
    """Source and its newest run.

    Attributes:
        failures: Number of consecutive failed runs.
        reason: Reason for the status of the source; empty without one.
        run_status: Status of the newest run; None without a run.
        seconds: Duration of the newest run, so far if it is open.
    """

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
