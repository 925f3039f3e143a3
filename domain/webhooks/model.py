"""Webhook endpoints and deliveries (specification, Webhook endpoint, Webhook delivery rules)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

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
    filters: Filters
    payload: str
    coalesce_seconds: int
    api_version: str
    description: str | None
    status: str
    disabled_for: str | None
    secret_last4: str
    rotation: Rotation | None
    version: int
    created_at: datetime
    updated_at: datetime
    last_success_at: datetime | None = None
    failing_since: datetime | None = None


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
class DeliveryFilter:
    """Which deliveries a list shows; None means any."""

    status: str | None = None
    type: str | None = None
    event: str | None = None

    def matches(self, delivery: Delivery) -> bool:
        """Whether the delivery is asked for."""
        return (
            self.status in (None, delivery.status)
            and self.type in (None, delivery.type)
            and self.event in (None, delivery.event)
        )


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
