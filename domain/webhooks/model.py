"""Webhook endpoints, deliveries and their state transitions (docs/conventions.md#deliveries)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Annotated, Final

from domain.audit.model import Audited
from domain.events.model import NOT_SENT_YET, TYPES, LoggedEvent
from domain.kernel.addresses import PORTS, refusal
from domain.kernel.enums import StoredEnum
from domain.kernel.errors import InvalidRequest, Unprocessable
from domain.kernel.ids import new_id
from domain.kernel.paging import Filter
from domain.kernel.resource import VERSION, audited, changeable, clearable, optional, settable
from domain.kernel.schema import Schema, array, enum, id_of, integer, named, record, strict_object, text, timestamp, url
from domain.kernel.versions import SUPPORTED

MOST_ENDPOINTS = 20
MOST_TYPES = 50
MOST_OPEN = 50_000
"""Maximum open deliveries of one endpoint."""
EVERY_TYPE = "*"
SHARDS = 64
"""Number of parts in which endpoints are assigned to workers."""
STORED_ANSWER = 1024
"""Bytes stored of a receiver's response."""


class PayloadKind(StoredEnum):
    """Kinds of payloads: `thin` names changed fields, `fat` also carries the object."""

    THIN = "thin"
    FAT = "fat"


class EndpointStatus(StoredEnum):
    """States of an endpoint; only an enabled one receives deliveries."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class DisabledReason(StoredEnum):
    """Why the service disabled an endpoint: a response with status 410, or days without success."""

    GONE = "gone"
    FAILING = "failing"


class DeliveryStatus(StoredEnum):
    """States of a delivery. Pending and sending ones are open, the others finished until they are resent."""

    PENDING = "pending"
    SENDING = "sending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


OPEN = (DeliveryStatus.PENDING, DeliveryStatus.SENDING)


class AttemptStatus(StoredEnum):
    """Outcomes of an attempt."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


class AttemptFailure(StoredEnum):
    """Why an attempt failed (docs/conventions.md#deliveries).

    `aborted`: the receiver stopped the delivery, or its events are no longer kept.
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
    """Filters of an endpoint besides event types; an empty tuple means all."""

    sources: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    catalogues: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Remove duplicate ids, keeping their order."""
        for name in ("sources", "categories", "catalogues"):
            object.__setattr__(self, name, tuple(dict.fromkeys(getattr(self, name))))


@dataclass(frozen=True, slots=True)
class Rotation:
    """A rotation, during which the replaced secret signs as well."""

    expires_at: datetime
    last4: str


SUBSCRIBABLE = frozenset(name for name, entry in TYPES.items() if "webhooks" in entry.channels)
"""Types that an endpoint can subscribe to; `webhook.test` is sent on request only."""
_TYPES = ("offer.changed", *sorted(SUBSCRIBABLE - {"offer.changed"}))
MOST_SOURCES = 100
MOST_CATEGORIES = 100
MOST_CATALOGUES = 50
LONGEST_WINDOW = 300

URL: Final[Schema] = url("https://shop.example/hooks/joinery") | {
    "description": "Where events are POSTed: HTTPS in live mode, in test mode plain HTTP and any port as well. It must "
    "be a public address. Redirects are not followed."
}
UNSENT = f"Not sent yet, but may be subscribed to already: {', '.join(f'`{name}`' for name in sorted(NOT_SENT_YET))}."
SUBSCRIBED_TYPES: Final[Schema] = array(
    {"type": "string", "enum": [*_TYPES, EVERY_TYPE], "examples": ["offer.changed"]},
    least=1,
    most=MOST_TYPES,
    description='The types wanted, or `["*"]` for every public type, present and future. ' + UNSENT,
) | {"uniqueItems": True}
FILTERS = strict_object(
    {
        "sources": array(
            id_of("src"),
            least=1,
            most=MOST_SOURCES,
            description="Of offers' and sources' events only those of these sources. Products' and variants' all come.",
        ),
        "categories": array(
            id_of("ctg"),
            least=1,
            most=MOST_CATEGORIES,
            description="Of products', variants' and offers' events only those filed under or below these.",
        ),
        "catalogues": array(
            id_of("cat"),
            least=1,
            most=MOST_CATALOGUES,
            description="Only events of these catalogues. One that you cannot see has no events for you.",
        ),
    },
    description="Which events are wanted beside their types; a filter that is left out lets everything through. Types "
    "that only webhooks carry are not narrowed.",
)
PAYLOAD = enum(*PayloadKind) | {
    "description": "`thin` names the fields that changed, `fat` also carries the product, variant or offer as `data."
    "object`, and needs the plan feature `fat_webhooks`."
}
COALESCE = integer(
    0,
    least=0,
    most=LONGEST_WINDOW,
    description="Seconds that each delivery waits, combining what changes meanwhile about the same product, variant or "
    "offer into one event; 0 sends every change as it happens.",
)
API_VERSION = named("service_version", enum(*reversed(SUPPORTED.dates))) | {
    "description": "The version whose shape the events have; that of the creating request unless given."
}
DESCRIPTION = text("The shop's price cache", longest=500)
LAST4 = text("KYo=", longest=4, shortest=4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A webhook endpoint.

    `disabled_for` is set if the service disabled it; `failing_since` is the first failed attempt since the last
    success.
    """

    id: Annotated[str, id_of("whe")]
    url: Annotated[str, settable(URL, required=True)]
    event_types: Annotated[
        tuple[str, ...],
        settable(SUBSCRIBED_TYPES, required=True, patch={"description": "Replaces the types as a whole."}),
    ]
    filters: Annotated[
        Filters,
        settable(
            FILTERS,
            patch={"description": "Replaces the filters as a whole; `{}` lets everything through."},
            answered=record(
                None,
                dict(FILTERS["properties"]),
                optional=tuple(FILTERS["properties"]),
                description="Empty when nothing is narrowed.",
            ),
        ),
    ] = Filters()
    payload: Annotated[PayloadKind, settable(PAYLOAD)] = PayloadKind.THIN
    coalesce_seconds: Annotated[int, settable(COALESCE)] = 0
    api_version: Annotated[str, settable(API_VERSION)]
    description: Annotated[str | None, clearable(DESCRIPTION, "null takes it away.")] = None
    status: Annotated[EndpointStatus, changeable(enum(*EndpointStatus))] = EndpointStatus.ENABLED
    disabled_for: DisabledReason | None = None
    secret_last4: Annotated[str, audited(LAST4)]
    rotation: Rotation | None = None
    version: Annotated[int, VERSION] = 1
    created_at: Annotated[datetime, timestamp()]
    updated_at: Annotated[datetime, timestamp()]
    last_success_at: Annotated[datetime | None, optional(timestamp("When a delivery last succeeded."))] = None
    failing_since: Annotated[
        datetime | None, optional(timestamp("The first failed attempt since the last success."))
    ] = None

    @property
    def status_reason(self) -> Mapping[str, str] | None:
        """Why the service disabled the endpoint, or None."""
        return {"code": self.disabled_for} if self.disabled_for is not None else None

    def rotation_at(self, now: datetime) -> Rotation | None:
        """Return the rotation during its overlap, or None."""
        return self.rotation if self.rotation and now < self.rotation.expires_at else None


AUDITED = Audited.of(Endpoint, "webhook_endpoint", "status_reason")


@dataclass(frozen=True, slots=True)
class SealedSecrets:
    """The endpoint's sealed secret and, during a rotation's overlap, the previous one (domain/secrets/ports.py)."""

    current: bytes
    previous: bytes | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One POST. `response_body` is the first 1 KiB of the response as text."""

    at: datetime
    status: AttemptStatus
    duration_ms: int
    failure: AttemptFailure | None = None
    response_status: int | None = None
    response_body: str | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """Status of a delivery after an attempt, why that failed, and when the next one is due.

    `gone` disables the endpoint.
    """

    status: DeliveryStatus
    failure: AttemptFailure | None = None
    next_attempt_at: datetime | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Delivery:
    """One event for one endpoint.

    `body` is what was sent, None before the first attempt. `positions` are those of the events in the log: several if
    changes were combined, none for a test. `tries` counts the attempts of the present schedule; `next_attempt_at` is
    None while an earlier event of the subject is open.
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
    attempts: tuple[Attempt, ...] = ()
    tries: int = 0
    next_attempt_at: datetime | None = None
    completed_at: datetime | None = None
    made: int = 0
    """All attempts, including those of earlier schedules."""
    network: bool = False
    """Whether the positions are those of the network log."""

    @classmethod
    def of(cls, event: LoggedEvent, endpoint: str, at: datetime, next_attempt_at: datetime | None) -> "Delivery":
        """Return the delivery of an event to an endpoint."""
        return cls(
            new_id("dlv"), endpoint, event.id, event.type, event.subject, (event.position,), DeliveryStatus.PENDING, at,
            next_attempt_at=next_attempt_at, network=event.of_network,
        )  # fmt: skip

    @property
    def position(self) -> int:
        """The position of the latest event; 0 for a test."""
        return self.positions[-1] if self.positions else 0

    @property
    def is_open(self) -> bool:
        """True if the delivery is pending or sending."""
        return self.status in OPEN

    def joined(self, event: LoggedEvent, next_attempt_at: datetime | None) -> "Delivery":
        """Return the delivery combined with a later event of its subject; a creation remains one."""
        type = self.type if self.type.endswith(".created") else event.type
        positions = (*self.positions, event.position)
        return replace(self, event=event.id, type=type, positions=positions, next_attempt_at=next_attempt_at)

    def sending(self, body: bytes) -> "Delivery":
        """Return the delivery while it is POSTed."""
        return replace(self, status=DeliveryStatus.SENDING, body=body, next_attempt_at=None)

    def attempted(self, attempt: Attempt | None, verdict: Verdict, at: datetime) -> "Delivery":
        """Return the delivery after an attempt, or after none if there was nothing to send."""
        made = attempt is not None
        return replace(
            self,
            status=verdict.status,
            attempts=(*self.attempts, attempt) if attempt is not None else self.attempts,
            tries=self.tries + made,
            made=self.made + made,
            next_attempt_at=verdict.next_attempt_at,
            completed_at=at if verdict.next_attempt_at is None else self.completed_at,
        )

    def resent(self, at: datetime) -> "Delivery":
        """Return the delivery with a new schedule."""
        return replace(self, status=DeliveryStatus.PENDING, tries=0, next_attempt_at=at, completed_at=None)


@dataclass(frozen=True, slots=True)
class DeliveryFilter(Filter):
    """Filter of a list of deliveries; None means any."""

    status: DeliveryStatus | None = None
    type: str | None = None
    event: str | None = None
    endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class RecoveryRange:
    """Range of creation times [since, until]; `until` None means now."""

    since: datetime
    until: datetime | None = None

    def __post_init__(self) -> None:
        """Convert both times to UTC."""
        object.__setattr__(self, "since", self.since.astimezone(UTC))
        object.__setattr__(self, "until", self.until and self.until.astimezone(UTC))


@dataclass(frozen=True, slots=True)
class Recovery:
    """Number of failed deliveries that were requeued; `has_more`: others of the range must wait."""

    requeued: int
    has_more: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """What an endpoint would have received in the last `days`.

    Events, their maximum per minute, and POSTs after combining.
    """

    days: int
    events: int
    peak_per_minute: int
    deliveries: int


def shard_of(endpoint: str) -> int:
    """Return the shard of an endpoint by the last characters of its id, which are random."""
    return sum(map(ord, endpoint[-6:])) % SHARDS


def refuse_types(types: tuple[str, ...]) -> None:
    """Raise InvalidRequest for `*` together with other types."""
    if EVERY_TYPE in types and len(types) > 1:
        raise InvalidRequest.of(
            "event_types", "invalid_value", "Use `*` alone, because it means every type, or omit it."
        )


_WITHOUT = "For a first try without a receiver, read the same events from GET /v1/changes."


def refuse_url(url: str, allowed: frozenset[str], *, livemode: bool) -> None:
    """Raise Unprocessable for a URL that cannot be used; test mode permits plain HTTP and any port."""
    if livemode and not url.lower().startswith("https://"):
        detail = (
            "In live mode the URL must start with https://. Plain http is allowed in test mode only, with a test key."
        )
        raise Unprocessable.of("url", "invalid_value", detail)
    if reason := refusal(url, allowed, PORTS if livemode else None):
        raise Unprocessable.of("url", "invalid_value", f"{reason} {_WITHOUT}")


TIMEOUT = 15.0
"""Seconds within which a 2xx response counts as success."""
DELAYS = (
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
"""Delays after failed attempts: eleven attempts over about 2.9 days."""
FAILING_FOR = timedelta(hours=72)
"""Time without success after which an endpoint is disabled."""
LONGEST_ASKED = DELAYS[-1]
"""Maximum pause that a receiver can request."""
ASKS = frozenset({429, 502, 504})
"""Statuses whose Retry-After is obeyed."""
GONE = 410
ABORT = ("webhook-delivery", "abort-message")


def judge(
    failure: AttemptFailure | None,
    status: int | None,
    headers: Mapping[str, str],
    tries: int,
    now: datetime,
    delays: Sequence[timedelta] = DELAYS,
) -> Verdict:
    """Return the verdict on the `tries`-th attempt of a schedule (from 1). `headers` have lower-case names."""
    if status is not None and 200 <= status < 300:
        return Verdict(DeliveryStatus.SUCCEEDED)
    if status is not None:
        failure = AttemptFailure.REDIRECT if 300 <= status < 400 else AttemptFailure.HTTP_STATUS
    if status == GONE:
        return Verdict(DeliveryStatus.FAILED, failure, gone=True)
    if headers.get(ABORT[0], "").strip().lower() == ABORT[1]:
        return Verdict(DeliveryStatus.FAILED, AttemptFailure.ABORTED)
    if tries > len(delays):
        return Verdict(DeliveryStatus.FAILED, failure)
    retry_after = asked_pause(headers.get("retry-after"), now) if status in ASKS else None
    return Verdict(DeliveryStatus.PENDING, failure, now + (delays[tries - 1] if retry_after is None else retry_after))


def asked_pause(text: str | None, now: datetime) -> timedelta | None:
    """Return the pause of a Retry-After header (RFC 9110 §10.2.3).

    The header has seconds or a date; None if it is missing or invalid.
    """
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), LONGEST_ASKED)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return min(max(moment - now, timedelta()), LONGEST_ASKED)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def is_failing(failing_since: datetime | None, now: datetime) -> bool:
    """Return whether an endpoint whose attempt has just failed must be disabled."""
    return failing_since is not None and now - failing_since >= FAILING_FOR


def disabled_for(verdict: Verdict, failing_since: datetime | None, now: datetime) -> DisabledReason | None:
    """Return why an endpoint is disabled after an attempt with that verdict, or None."""
    if verdict.gone:
        return DisabledReason.GONE
    if verdict.status != DeliveryStatus.SUCCEEDED and is_failing(failing_since, now):
        return DisabledReason.FAILING
    return None


FILED = ("product.", "variant.", "offer.")
OF_A_SOURCE = ("offer.", "source.")
ON_REQUEST = frozenset(name for name, entry in TYPES.items() if not entry.channels)
WEBHOOKS_ONLY = frozenset(name for name in SUBSCRIBABLE if "feed" not in TYPES[name].channels)


def matches_type(endpoint: Endpoint, type: str) -> bool:
    """Return whether the endpoint subscribes to the type; `*` excludes types sent on request only."""
    if EVERY_TYPE in endpoint.event_types:
        return type not in ON_REQUEST
    return type in endpoint.event_types


def narrowed_by_category(endpoint: Endpoint, event: LoggedEvent) -> bool:
    """Return whether `matches` depends on the categories of the event's product."""
    return bool(endpoint.filters.categories) and event.type.startswith(FILED)


def matches(endpoint: Endpoint, event: LoggedEvent, filed: bool) -> bool:
    """Return whether the event goes to the endpoint.

    `filed`: its product is in or below a wanted category. Source filters apply to events of offers and sources,
    category filters to those of products, variants and offers, catalogue filters to all that have one. Types that only
    webhooks carry are filtered by type only.
    """
    if not matches_type(endpoint, event.type):
        return False
    if event.type in WEBHOOKS_ONLY:
        return True
    filters = endpoint.filters
    if filters.catalogues and event.catalogue not in filters.catalogues:
        return False
    if filters.sources and event.type.startswith(OF_A_SOURCE) and event.source not in filters.sources:
        return False
    return filed or not narrowed_by_category(endpoint, event)
