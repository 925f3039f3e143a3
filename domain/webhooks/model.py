"""Webhook endpoints, deliveries and their state transitions (docs/conventions.md#deliveries)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Annotated, Final

from domain.audit.model import AuditedFields
from domain.events.model import NOT_SENT_YET, TYPES, LoggedEvent
from domain.kernel.addresses import PORTS, describe_url_refusal
from domain.kernel.enums import StoredEnum
from domain.kernel.errors import InvalidRequest, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import Filter
from domain.kernel.resource import VERSION, audited, changeable, clearable, optional, settable
from domain.kernel.schema import (
    Schema,
    array,
    enum,
    id_schema,
    integer,
    response_object,
    strict_object,
    text,
    timestamp,
    url,
    with_title,
)
from domain.kernel.versions import SUPPORTED

MAX_ENDPOINTS = 20
"""Maximum number of a tenant's endpoints."""
MAX_EVENT_TYPES = 50
"""Maximum number of event types that an endpoint lists."""
MAX_OPEN_DELIVERIES = 50_000
"""Maximum number of open deliveries of one endpoint."""
ALL_TYPES = "*"
"""Wildcard that subscribes to all event types, except those in ON_REQUEST_TYPES."""
SHARD_COUNT = 64
"""Number of shards (parts of the endpoints that are assigned to workers)."""
MAX_STORED_RESPONSE_BYTES = 1024
"""Maximum number of bytes of a receiver's response that are stored; the rest is discarded."""


class PayloadKind(StoredEnum):
    """Kinds of payloads: `thin` contains the names of changed fields, `fat` also contains the object."""

    THIN = "thin"
    FAT = "fat"


class EndpointStatus(StoredEnum):
    """States of an endpoint; only an enabled one receives deliveries."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class DisabledReason(StoredEnum):
    """Reasons for which the service disables an endpoint: status 410 (`gone`), or no success for MAX_FAILING_TIME."""

    GONE = "gone"
    FAILING = "failing"


class DeliveryStatus(StoredEnum):
    """States of a delivery. Pending and sending deliveries are open, the others finished."""

    PENDING = "pending"
    SENDING = "sending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


OPEN_DELIVERY_STATUSES = (DeliveryStatus.PENDING, DeliveryStatus.SENDING)
"""States of open deliveries."""


class AttemptStatus(StoredEnum):
    """Outcomes of an attempt."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


class AttemptFailure(StoredEnum):
    """Reasons for which an attempt failed (docs/conventions.md#deliveries).

    `aborted`: the receiver requested an end of the delivery, or the delivery's events are no longer stored.
    """

    TIMEOUT = "timeout"
    REFUSED_ADDRESS = "refused_address"
    DNS = "dns"
    TLS = "tls"
    CONNECT = "connect"
    HTTP_STATUS = "http_status"
    REDIRECT = "redirect"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of an endpoint by IDs of sources, categories and catalogues; an empty filter matches all."""

    sources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    catalogues: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Remove duplicate IDs without changing the order."""
        for name in ("sources", "categories", "catalogues"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))


@dataclass(frozen=True, slots=True)
class Rotation:
    """Secret rotation: until `expires_at`, the previous secret, which ends in `last4`, signs requests as well."""

    expires_at: datetime
    last4: str


SUBSCRIBABLE = frozenset(name for name, entry in TYPES.items() if "webhooks" in entry.channels)
"""Event types that an endpoint can subscribe to; not `webhook.test`, which is sent on request only."""
_TYPES = ("offer.changed", *sorted(SUBSCRIBABLE - {"offer.changed"}))
MAX_SOURCES = 100
MAX_CATEGORIES = 100
MAX_CATALOGUES = 50
MAX_COALESCE_SECONDS = 300
"""Maximum number of seconds for which a delivery waits, to combine changes (`Endpoint.coalesce_seconds`)."""

URL: Final[Schema] = url("https://shop.example/hooks/joinery") | {
    "description": "URL to which events are sent by POST. Live mode requires HTTPS on port 443 or 80; test mode also "
    "permits plain HTTP and any port. The address must be public. Redirects are not followed."
}
UNSENT = f"Not sent yet, but available for subscription: {', '.join(f'`{name}`' for name in sorted(NOT_SENT_YET))}."
SUBSCRIBED_TYPES: Final[Schema] = array(
    {"type": "string", "enum": [*_TYPES, ALL_TYPES], "examples": ["offer.changed"]},
    min_items=1,
    max_items=MAX_EVENT_TYPES,
    description='The event types, or `["*"]` for every public type, present and future. ' + UNSENT,
) | {"uniqueItems": True}
FILTERS = strict_object(
    {
        "sources": array(
            id_schema("src"),
            min_items=1,
            max_items=MAX_SOURCES,
            description="Limits events of offers and sources to these sources. Events of products and variants are "
            "not limited.",
        ),
        "categories": array(
            id_schema("ctg"),
            min_items=1,
            max_items=MAX_CATEGORIES,
            description="Limits events of products, variants and offers to these categories and those below them.",
        ),
        "catalogues": array(
            id_schema("cat"),
            min_items=1,
            max_items=MAX_CATALOGUES,
            description="Limits events to these catalogues. A catalogue to which you have no access has no events.",
        ),
    },
    description="Filters of events in addition to `event_types`; an omitted filter matches all events. Filters do not "
    "apply to event types that the change feed does not contain.",
)
PAYLOAD = enum(*PayloadKind) | {
    "description": "`thin` contains the names of changed fields; `fat` also contains the product, variant or offer as "
    "`data.object`, and requires the plan feature `fat_webhooks`."
}
COALESCE = integer(
    0,
    minimum=0,
    maximum=MAX_COALESCE_SECONDS,
    description="Seconds for which each delivery waits, to combine changes of the same product, variant or offer into "
    "one event; 0 sends each change immediately.",
)
API_VERSION = with_title("service_version", enum(*reversed(SUPPORTED.dates))) | {
    "description": "API version that determines the shape of events; defaults to the API version of the request that "
    "creates the endpoint."
}
DESCRIPTION = text("The shop's price cache", max_length=500)
LAST4 = text("KYo=", max_length=4, min_length=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Webhook endpoint.

    Attributes:
        coalesce_seconds: Seconds for which each delivery waits, to combine changes of the same subject; 0 for no wait.
        disabled_for: Reason for which the service disabled the endpoint; None if a user disabled the endpoint, or if the endpoint is enabled.
        secret_last4: The last four characters of the current secret.
        rotation: The last secret rotation; None without one, or once the previous secret is deleted.
        failing_since: Time of the first failed attempt since the last success; None if the last attempt succeeded.
    """

    id: Annotated[str, id_schema("whe")]
    url: Annotated[str, settable(URL, required=True)]
    event_types: Annotated[
        tuple[str, ...],
        settable(SUBSCRIBED_TYPES, required=True, patch={"description": "Replaces the types as a whole."}),
    ]
    filters: Annotated[
        Filters,
        settable(
            FILTERS,
            patch={"description": "Replaces the filters as a whole; `{}` matches all events."},
            response_schema=response_object(
                None,
                dict(FILTERS["properties"]),
                optional=tuple(FILTERS["properties"]),
                description="Filters of events; an empty object matches all events.",
            ),
        ),
    ] = Filters()
    payload: Annotated[PayloadKind, settable(PAYLOAD)] = PayloadKind.THIN
    coalesce_seconds: Annotated[int, settable(COALESCE)] = 0
    api_version: Annotated[str, settable(API_VERSION)]
    description: Annotated[str | None, clearable(DESCRIPTION, "null removes the description.")] = None
    status: Annotated[EndpointStatus, changeable(enum(*EndpointStatus))] = EndpointStatus.ENABLED
    disabled_for: DisabledReason | None = None
    secret_last4: Annotated[str, audited(LAST4)]
    rotation: Rotation | None = None
    version: Annotated[int, VERSION] = 1
    created_at: Annotated[datetime, timestamp()]
    updated_at: Annotated[datetime, timestamp()]
    last_success_at: Annotated[datetime | None, optional(timestamp("When a delivery last succeeded."))] = None
    failing_since: Annotated[
        datetime | None, optional(timestamp("When an attempt first failed since the last success."))
    ] = None

    @property
    def status_reason(self) -> Mapping[str, str] | None:
        """The reason for which the service disabled the endpoint, as an object with a code, or None."""
        return {"code": self.disabled_for} if self.disabled_for is not None else None

    def rotation_at(self, now: datetime) -> Rotation | None:
        """Return the secret rotation that is in progress at `now`, or None."""
        return self.rotation if self.rotation and now < self.rotation.expires_at else None


AUDITED = AuditedFields.from_resource(Endpoint, "webhook_endpoint", "status_reason")


@dataclass(frozen=True, slots=True)
class EncryptedSecrets:
    """Encrypted secret of an endpoint and, during a rotation, the previous one (domain/secrets/ports.py)."""

    current: bytes
    previous: bytes | None = None


@dataclass(frozen=True, slots=True)
class DeliveryAttempt:
    """One POST request of a delivery, and its result.

    Attributes:
        at: When the request was sent.
        failure: Why the attempt failed, or None.
        response_body: The first MAX_STORED_RESPONSE_BYTES of the response as text.
    """

    at: datetime
    status: AttemptStatus
    duration_ms: int
    failure: AttemptFailure | None = None
    response_status: int | None = None
    response_body: str | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AttemptVerdict:
    """Consequences of an attempt for its delivery.

    Attributes:
        status: Status of the delivery after the attempt.
        failure: Why the attempt failed, or None.
        next_attempt_at: When the next attempt is due; None if there is none.
        is_gone: Whether the receiver returned status 410, so that the endpoint must be disabled.
    """

    status: DeliveryStatus
    failure: AttemptFailure | None = None
    next_attempt_at: datetime | None = None
    is_gone: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """Delivery of one event to one endpoint.

    Attributes:
        endpoint: ID of the endpoint.
        event: ID of the event, the latest one if several were combined.
        positions: Positions of the events in the log: several if changes were combined, none for a test event.
        body: The body that was sent; None before the first attempt.
        attempts: The attempts with their results, oldest first; workers do not read stored attempts.
        tries: Number of attempts in the current retry schedule, which determines the next delay.
        next_attempt_at: When the next attempt is due; None while an earlier delivery about the same subject is open.
        attempts_made: Total number of attempts, including those of earlier retry schedules.
        network: Whether the events are in the network log (events of published catalogues), not in the organisation's log.
    """

    id: str
    endpoint: str
    event: str
    type: str
    subject: str
    positions: tuple[int, ...]
    status: DeliveryStatus
    created_at: datetime
    body: bytes | None = None
    attempts: tuple[DeliveryAttempt, ...] = ()
    tries: int = 0
    next_attempt_at: datetime | None = None
    completed_at: datetime | None = None
    attempts_made: int = 0
    network: bool = False

    @classmethod
    def from_event(
        cls, event: LoggedEvent, endpoint: str, at: datetime, next_attempt_at: datetime | None
    ) -> "Delivery":
        """Return a new pending delivery of an event to an endpoint, created at `at`."""
        return cls(
            new_id("dlv"), endpoint, event.id, event.type, event.subject, (event.position,), DeliveryStatus.PENDING, at,
            next_attempt_at=next_attempt_at, network=event.is_from_network,
        )  # fmt: skip

    @property
    def position(self) -> int:
        """Position in the log of the delivered event, the latest one if several were combined; 0 for a test event."""
        return self.positions[-1] if self.positions else 0

    @property
    def is_open(self) -> bool:
        """True if the delivery is pending or sending."""
        return self.status in OPEN_DELIVERY_STATUSES

    def with_event(self, event: LoggedEvent, next_attempt_at: datetime | None) -> "Delivery":
        """Return the delivery with a later event of the same subject added.

        The delivery gets the type of the event, unless the delivery's type ends in `.created`.
        """
        type = self.type if self.type.endswith(".created") else event.type
        positions = (*self.positions, event.position)
        return replace(self, event=event.id, type=type, positions=positions, next_attempt_at=next_attempt_at)

    def with_body(self, body: bytes) -> "Delivery":
        """Return the delivery in the status sending, with the body of the request."""
        return replace(self, status=DeliveryStatus.SENDING, body=body, next_attempt_at=None)

    def with_attempt(self, attempt: DeliveryAttempt | None, verdict: AttemptVerdict, at: datetime) -> "Delivery":
        """Return the delivery after an attempt that ended at `at`; `attempt` is None if nothing could be sent."""
        was_sent = attempt is not None
        return replace(
            self,
            status=verdict.status,
            attempts=(*self.attempts, attempt) if attempt is not None else self.attempts,
            tries=self.tries + was_sent,
            attempts_made=self.attempts_made + was_sent,
            next_attempt_at=verdict.next_attempt_at,
            completed_at=at if verdict.next_attempt_at is None else self.completed_at,
        )

    def with_new_schedule(self, at: datetime) -> "Delivery":
        """Return the delivery as pending, with a new retry schedule that starts at `at`."""
        return replace(self, status=DeliveryStatus.PENDING, tries=0, next_attempt_at=at, completed_at=None)


@dataclass(frozen=True, slots=True)
class DeliveryFilter(Filter):
    """Filter of a list of deliveries; None means any value."""

    status: DeliveryStatus | None = None
    type: str | None = None
    event: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class RecoveryRange:
    """Range of creation times from `since` up to `until`, both included; `until` None means now."""

    since: datetime
    until: datetime | None = None

    def __post_init__(self) -> None:
        """Convert both times to UTC."""
        object.__setattr__(self, "since", self.since.astimezone(UTC))
        object.__setattr__(self, "until", self.until and self.until.astimezone(UTC))


@dataclass(frozen=True, slots=True)
class Recovery:
    """Number of failed deliveries that were requeued, and whether the range contains more that were not requeued."""

    requeued: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """Estimate of an endpoint's future deliveries: the deliveries that past events would have caused.

    Attributes:
        days: Number of days in the past from which the forecast is computed.
        events: Number of matching events in these days.
        peak_per_minute: Number of matching events in the busiest minute.
        deliveries: Number of deliveries after changes are combined according to the endpoint's `coalesce_seconds`.
    """

    days: int
    events: int
    peak_per_minute: int
    deliveries: int


def compute_shard(endpoint: str) -> int:
    """Return the shard number of an endpoint, from the last (random) characters of the endpoint's ID."""
    return sum(map(ord, endpoint[-6:])) % SHARD_COUNT


def refuse_invalid_types(types: tuple[str, ...]) -> None:
    """Raise InvalidRequest if `*` is combined with other event types."""
    if ALL_TYPES in types and len(types) > 1:
        raise InvalidRequest.for_field(
            "event_types",
            "invalid_value",
            "`*` means every type and cannot be combined with other types. Use `*` alone, or omit it.",
        )


_TEST_ADVICE = "To test without a receiver, read the same events from GET /v1/changes."


def refuse_forbidden_url(url: str, allowed_hosts: frozenset[str], *, livemode: bool) -> None:
    """Raise Unprocessable for a URL to which events must not be sent.

    The host must be public or in `allowed_hosts`, and the URL must not contain credentials (`describe_url_refusal`).
    Live mode requires HTTPS and, for a host not in `allowed_hosts`, port 443 or 80.

    Args:
        url: The URL.
        allowed_hosts: Hosts (`host` or `host:port`) that are permitted although their addresses are private.
        livemode: Whether the endpoint is in live mode.
    """
    if livemode and not url.lower().startswith("https://"):
        detail = (
            "In live mode the URL must start with https://. Plain http is allowed in test mode only, with a test key."
        )
        raise Unprocessable.for_field("url", "invalid_value", detail)
    if reason := describe_url_refusal(url, allowed_hosts, PORTS if livemode else None):
        raise Unprocessable.for_field("url", "invalid_value", f"{reason} {_TEST_ADVICE}")


TIMEOUT_SECONDS = 15.0
"""Time limit of one attempt in seconds; the attempt fails if no response has arrived by then."""
RETRY_DELAYS = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=14),
    timedelta(hours=14),
)
"""Delays after failed attempts, which result in eleven attempts over about 2.9 days."""
MAX_FAILING_TIME = timedelta(hours=72)
"""Time without success after which a failing endpoint is disabled."""
MAX_RETRY_AFTER = RETRY_DELAYS[-1]
"""Maximum delay that a receiver can request."""
RETRY_AFTER_STATUSES = frozenset({429, 502, 504})
"""HTTP statuses for which the header Retry-After determines the delay."""
GONE = 410
ABORT_HEADER = ("webhook-delivery", "abort-message")
"""Header and value with which a receiver ends a delivery."""


def evaluate_attempt(
    failure: AttemptFailure | None,
    status: int | None,
    headers: Mapping[str, str],
    attempt_number: int,
    now: datetime,
    delays: Sequence[timedelta] = RETRY_DELAYS,
) -> AttemptVerdict:
    """Return the verdict on an attempt: the status of the delivery, and when the next attempt is due.

    Args:
        failure: Why there was no response; None if there was one.
        status: HTTP status of the response.
        headers: Headers of the response, with lower-case names.
        attempt_number: Number of the attempt in its retry schedule, from 1.
        now: The current time.
        delays: Delays after failed attempts.
    """
    if status is not None and 200 <= status < 300:
        return AttemptVerdict(DeliveryStatus.SUCCEEDED)
    if status is not None:
        failure = AttemptFailure.REDIRECT if 300 <= status < 400 else AttemptFailure.HTTP_STATUS
    if status == GONE:
        return AttemptVerdict(DeliveryStatus.FAILED, failure, is_gone=True)
    if headers.get(ABORT_HEADER[0], "").strip().lower() == ABORT_HEADER[1]:
        return AttemptVerdict(DeliveryStatus.FAILED, AttemptFailure.ABORTED)
    if attempt_number > len(delays):
        return AttemptVerdict(DeliveryStatus.FAILED, failure)
    retry_after = parse_retry_after(headers.get("retry-after"), now) if status in RETRY_AFTER_STATUSES else None
    return AttemptVerdict(
        DeliveryStatus.PENDING, failure, now + (delays[attempt_number - 1] if retry_after is None else retry_after)
    )


def parse_retry_after(text: str | None, now: datetime) -> timedelta | None:
    """Return the delay that a Retry-After header requests as seconds or as a date (RFC 9110 §10.2.3).

    Returns None if the header is missing or invalid, and at most MAX_RETRY_AFTER.
    """
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), MAX_RETRY_AFTER)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return min(max(moment - now, timedelta()), MAX_RETRY_AFTER)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def has_failed_too_long(failing_since: datetime | None, now: datetime) -> bool:
    """Return whether an endpoint has failed for MAX_FAILING_TIME, so that another failed attempt disables it."""
    return failing_since is not None and now - failing_since >= MAX_FAILING_TIME


def find_disabling_reason(
    verdict: AttemptVerdict, failing_since: datetime | None, now: datetime
) -> DisabledReason | None:
    """Return the reason for which the endpoint must be disabled after an attempt with this verdict, or None."""
    if verdict.is_gone:
        return DisabledReason.GONE
    if verdict.status != DeliveryStatus.SUCCEEDED and has_failed_too_long(failing_since, now):
        return DisabledReason.FAILING
    return None


CATEGORY_FILTERED_PREFIXES = ("product.", "variant.", "offer.")
"""Prefixes of the event types to which category filters apply."""
SOURCE_FILTERED_PREFIXES = ("offer.", "source.")
"""Prefixes of the event types to which source filters apply."""
ON_REQUEST_TYPES = frozenset(name for name, entry in TYPES.items() if not entry.channels)
"""Event types that are sent on request only."""
WEBHOOK_ONLY_TYPES = frozenset(name for name in SUBSCRIBABLE if "feed" not in TYPES[name].channels)
"""Event types that only webhooks carry, not the change feed."""


def matches_type(endpoint: Endpoint, type: str) -> bool:
    """Return whether the endpoint subscribes to the event type; `*` excludes types that are sent on request only."""
    if ALL_TYPES in endpoint.event_types:
        return type not in ON_REQUEST_TYPES
    return type in endpoint.event_types


def depends_on_category(endpoint: Endpoint, event: LoggedEvent) -> bool:
    """Return whether a category filter of the endpoint applies to the event."""
    return bool(endpoint.filters.categories) and event.type.startswith(CATEGORY_FILTERED_PREFIXES)


def matches_endpoint(endpoint: Endpoint, event: LoggedEvent, is_in_category: bool) -> bool:
    """Return whether the event matches the endpoint's types and filters.

    Source filters apply to events of offers and sources. Category filters apply to events of products, variants and
    offers. Catalogue filters apply to all events and exclude events without a catalogue. No filter applies to the
    types in WEBHOOK_ONLY_TYPES.

    Args:
        endpoint: The endpoint.
        event: The event.
        is_in_category: Whether the event's product is in one of the filtered categories, or below one.
    """
    if not matches_type(endpoint, event.type):
        return False
    if event.type in WEBHOOK_ONLY_TYPES:
        return True
    filters = endpoint.filters
    if filters.catalogues and event.catalogue not in filters.catalogues:
        return False
    if filters.sources and event.type.startswith(SOURCE_FILTERED_PREFIXES) and event.source not in filters.sources:
        return False
    return is_in_category or not depends_on_category(endpoint, event)
