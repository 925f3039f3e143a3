"""Webhook endpoints and deliveries, and from which state to which they go (docs/conventions.md#deliveries)."""

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
"""Deliveries of one endpoint that are on their way at a time."""
EVERY_TYPE = "*"
SHARDS = 64
"""Into how many parts endpoints are dealt out to workers."""
STORED_ANSWER = 1024
"""Bytes of a receiver's answer that are kept."""


class PayloadKind(StoredEnum):
    """Whether a delivery names what changed, or carries the object as well."""

    THIN = "thin"
    FAT = "fat"


class EndpointStatus(StoredEnum):
    """Only an enabled endpoint gets anything."""

    ENABLED = "enabled"
    DISABLED = "disabled"


class DisabledReason(StoredEnum):
    """Why the service disabled an endpoint: it answered 410, or nothing succeeded for days."""

    GONE = "gone"
    FAILING = "failing"


class DeliveryStatus(StoredEnum):
    """Pending and sending ones are open; the others are finished, until they are asked for again."""

    PENDING = "pending"
    SENDING = "sending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


OPEN = (DeliveryStatus.PENDING, DeliveryStatus.SENDING)


class AttemptStatus(StoredEnum):
    """How one POST ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"


class AttemptFailure(StoredEnum):
    """Why an attempt failed (docs/conventions.md#deliveries); `aborted`: the receiver asked for no more, or nothing is left to send."""

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


SUBSCRIBABLE = frozenset(name for name, entry in TYPES.items() if "webhooks" in entry.channels)
"""The types that an endpoint can ask for; `webhook.test` is sent on request alone."""
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
    """Where a tenant's events are POSTed. `disabled_for` is set when the service disabled it.

    `failing_since` is the first failed attempt since the last success.
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
        """Why the service disabled it."""
        return {"code": self.disabled_for} if self.disabled_for is not None else None

    def rotation_at(self, now: datetime) -> Rotation | None:
        """Return the rotation during its overlap, or None."""
        return self.rotation if self.rotation and now < self.rotation.expires_at else None


AUDITED = Audited.of(Endpoint, "webhook_endpoint", "status_reason")


@dataclass(frozen=True, slots=True)
class SealedSecrets:
    """The endpoint's secret, and during a rotation's overlap the one before; both sealed (domain/secrets/ports.py)."""

    current: bytes
    previous: bytes | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One POST. `response_body` is the first 1 KiB of the answer, as text."""

    at: datetime
    status: AttemptStatus
    duration_ms: int
    failure: AttemptFailure | None = None
    response_status: int | None = None
    response_body: str | None = None
    response_headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Verdict:
    """`status` of the delivery after an attempt, why that failed, and when the next one is due.

    `gone` disables the endpoint.
    """

    status: DeliveryStatus
    failure: AttemptFailure | None = None
    next_attempt_at: datetime | None = None
    gone: bool = False


@dataclass(frozen=True, slots=True)
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
    status: DeliveryStatus
    created_at: datetime
    body: bytes | None = None
    attempts: tuple[Attempt, ...] = ()
    tries: int = 0
    next_attempt_at: datetime | None = None
    completed_at: datetime | None = None
    made: int = 0
    """Attempts in all, those of earlier schedules too."""
    network: bool = False
    """The positions are those of the network log."""

    @classmethod
    def of(cls, event: LoggedEvent, endpoint: str, at: datetime, next_attempt_at: datetime | None) -> "Delivery":
        """Return what an event becomes for an endpoint."""
        return cls(
            new_id("dlv"), endpoint, event.id, event.type, event.subject, (event.position,), DeliveryStatus.PENDING, at,
            next_attempt_at=next_attempt_at, network=event.of_network,
        )  # fmt: skip

    @property
    def position(self) -> int:
        """Return where in the log the latest event stands; 0 for a test."""
        return self.positions[-1] if self.positions else 0

    @property
    def is_open(self) -> bool:
        """Return whether it is on its way."""
        return self.status in OPEN

    def joined(self, event: LoggedEvent, next_attempt_at: datetime | None) -> "Delivery":
        """With a later event of its subject combined into it: what was made stays made."""
        type = self.type if self.type.endswith(".created") else event.type
        positions = (*self.positions, event.position)
        return replace(self, event=event.id, type=type, positions=positions, next_attempt_at=next_attempt_at)

    def sending(self, body: bytes) -> "Delivery":
        """While it is POSTed."""
        return replace(self, status=DeliveryStatus.SENDING, body=body, next_attempt_at=None)

    def attempted(self, attempt: Attempt | None, verdict: Verdict, at: datetime) -> "Delivery":
        """After an attempt, or after none when there was nothing to send."""
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
        """On its way again, with a fresh schedule."""
        return replace(self, status=DeliveryStatus.PENDING, tries=0, next_attempt_at=at, completed_at=None)


@dataclass(frozen=True, slots=True)
class DeliveryFilter(Filter):
    """Which deliveries a list shows; None means any."""

    status: DeliveryStatus | None = None
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
    """Return which of the SHARDS an endpoint belongs to: its id's last characters are random."""
    return sum(map(ord, endpoint[-6:])) % SHARDS


def refuse_types(types: tuple[str, ...]) -> None:
    """Raise InvalidRequest for `*` together with other types."""
    if EVERY_TYPE in types and len(types) > 1:
        raise InvalidRequest.of(
            "event_types", "invalid_value", "Give `*` alone, for it means every type; or leave it out."
        )


_WITHOUT = "For a first try without a receiver, read the same events from GET /v1/changes."


def refuse_url(url: str, allowed: frozenset[str], *, livemode: bool) -> None:
    """Raise Unprocessable for a URL that must not be requested; test mode accepts plain HTTP and any port."""
    if livemode and not url.lower().startswith("https://"):
        detail = "In live mode the URL must start with https://. Plain http is taken in test mode, by a test key."
        raise Unprocessable.of("url", "invalid_value", detail)
    if reason := refusal(url, allowed, PORTS if livemode else None):
        raise Unprocessable.of("url", "invalid_value", f"{reason} {_WITHOUT}")


TIMEOUT = 15.0
"""Seconds within which a 2xx answer is a success."""
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
"""What each failed attempt waits for the next: eleven attempts over about 2.9 days."""
FAILING_FOR = timedelta(hours=72)
"""An endpoint whose attempts have failed for so long, without a success, is disabled."""
LONGEST_ASKED = DELAYS[-1]
"""A receiver may ask for no longer a pause than the schedule's own longest."""
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
    asked = asked_pause(headers.get("retry-after"), now) if status in ASKS else None
    return Verdict(DeliveryStatus.PENDING, failure, now + (delays[tries - 1] if asked is None else asked))


def asked_pause(text: str | None, now: datetime) -> timedelta | None:
    """Return how long a Retry-After (RFC 9110 §10.2.3) asks to wait, seconds or an HTTP date; None for none or nonsense."""
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
    """Return whether an endpoint whose attempt has just failed is to be disabled."""
    return failing_since is not None and now - failing_since >= FAILING_FOR


def disabled_for(verdict: Verdict, failing_since: datetime | None, now: datetime) -> DisabledReason | None:
    """Why an endpoint is disabled after an attempt with that verdict; None for one that is not."""
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
    """Return whether the endpoint subscribes to the type; `*` is every type but those sent on request alone."""
    if EVERY_TYPE in endpoint.event_types:
        return type not in ON_REQUEST
    return type in endpoint.event_types


def narrowed_by_category(endpoint: Endpoint, event: LoggedEvent) -> bool:
    """Return whether `matches` looks at where the event's product is filed."""
    return bool(endpoint.filters.categories) and event.type.startswith(FILED)


def matches(endpoint: Endpoint, event: LoggedEvent, filed: bool) -> bool:
    """Return whether the event goes to the endpoint. `filed`: its product is filed under or below a wanted category.

    Sources narrow offers and events of sources themselves; categories narrow products, variants and offers;
    catalogues narrow everything that has to do with one. Types that only webhooks carry are narrowed by type alone.
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
