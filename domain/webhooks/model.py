"""Webhook endpoints and deliveries (specification, Webhook endpoint, Webhook delivery rules)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final, TypedDict

from domain.audit.model import Audited
from domain.kernel.paging import Filter

MOST_ENDPOINTS: Final = 20
MOST_TYPES: Final = 50
MOST_OPEN: Final = 50_000
"""Deliveries of one endpoint that are on their way at a time."""
EVERY_TYPE: Final = "*"
PAYLOADS: Final = ("thin", "fat")
STATUSES: Final = ("enabled", "disabled")
REASONS: Final = ("gone", "failing")
DELIVERY_STATUSES: Final = ("pending", "sending", "succeeded", "failed")
OPEN: Final = ("pending", "sending")
SHARDS: Final = 64
"""Into how many parts endpoints are dealt out to workers."""
STORED_ANSWER: Final = 1024
"""Bytes of a receiver's answer that are kept."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Which events an endpoint wants beside their types; an empty tuple means everything."""

    sources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    catalogues: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Each id once, in the order given."""
        for name in ("sources", "categories", "catalogues"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))


@dataclass(frozen=True, slots=True)
class Rotation:
    """The replaced secret goes on signing beside the new one until then."""

    expires_at: datetime
    last4: str


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a tenant's events are POSTed. `disabled_for` is `gone` or `failing` when the service disabled it.

    `failing_since` is the first failed attempt since the last success.
    """

    id: str
    url: str
    event_types: tuple[str, ...]
    api_version: str
    secret_last4: str
    created_at: datetime
    updated_at: datetime
    filters: Filters = Filters()
    payload: str = "thin"
    coalesce_seconds: int = 0
    description: str | None = None
    status: str = "enabled"
    disabled_for: str | None = None
    rotation: Rotation | None = None
    version: int = 1
    last_success_at: datetime | None = None
    failing_since: datetime | None = None

    @property
    def status_reason(self) -> Mapping[str, str] | None:
        """Why the service disabled it."""
        return {"code": self.disabled_for} if self.disabled_for is not None else None

    def rotation_at(self, now: datetime) -> Rotation | None:
        """The rotation while its overlap lasts."""
        return self.rotation if self.rotation and now < self.rotation.expires_at else None

    def changed(self, now: datetime, **changes: Any) -> "Endpoint":
        """The endpoint with those fields changed, one version on."""
        return replace(self, version=self.version + 1, updated_at=now, **changes)


class EndpointSettings(TypedDict, total=False):
    """What people set of an endpoint; what is left out stays, or is filled in. `event_types` and `filters` as wholes."""

    url: str
    event_types: tuple[str, ...]
    filters: Filters
    payload: str
    coalesce_seconds: int
    api_version: str
    description: str | None
    status: str


AUDITED: Final = Audited(
    "webhook_endpoint",
    (
        "url", "event_types", "filters", "payload", "coalesce_seconds", "api_version", "status", "secret_last4",
        "description", "status_reason",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class SealedSecrets:
    """The endpoint's secret, and during a rotation's overlap the one before; both sealed (ports/secrets.py)."""

    current: bytes
    previous: bytes | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One POST. `status` is succeeded or failed; `failure` a reason of decisions.md §2 when it failed.

    `response_body` is the first 1 KiB of the answer, as text.
    """

    at: datetime
    status: str
    duration_ms: int
    failure: str | None = None
    response_status: int | None = None
    response_body: str | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class Delivery:
    """One event for one endpoint. `body` is what was sent, None before the first attempt.

    `positions` are those of the events in the log, several when changes were combined, none for a test. `tries` counts
    the attempts of the present schedule; `next_attempt_at` is None while an earlier event of the subject is on its way.
    """

    id: str
    endpoint: str
    event: str
    type: str
    subject: str
    positions: tuple[int, ...]
    status: str
    created_at: datetime
    body: bytes | None = None
    attempts: Sequence[Attempt] = ()
    tries: int = 0
    next_attempt_at: datetime | None = None
    completed_at: datetime | None = None
    made: int = 0
    """Attempts in all, those of earlier schedules too."""

    @property
    def position(self) -> int:
        """Where in the log the latest event stands; 0 for a test."""
        return self.positions[-1] if self.positions else 0


@dataclass(frozen=True, slots=True)
class DeliveryFilter(Filter):
    """Which deliveries a list shows; None means any."""

    status: str | None = None
    type: str | None = None
    event: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class RecoveryRange:
    """Deliveries made in [since, until]; None for now."""

    since: datetime
    until: datetime | None = None

    def __post_init__(self) -> None:
        """In UTC."""
        object.__setattr__(self, "since", self.since.astimezone(UTC))
        object.__setattr__(self, "until", self.until and self.until.astimezone(UTC))


@dataclass(frozen=True, slots=True)
class Recovery:
    """How many failed deliveries are on their way again; `has_more`: others of the range wait for these."""

    requeued: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """What an endpoint would have got in the last `days`: events, the most in one minute, and POSTs after combining."""

    days: int
    events: int
    peak_per_minute: int
    deliveries: int


def shard_of(endpoint: str) -> int:
    """Which of the SHARDS an endpoint belongs to: its id's last characters are random."""
    return sum(map(ord, endpoint[-6:])) % SHARDS
