"""The event envelope, and the registry of event types with their channels (docs/conventions.md#event-types)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeAlias

from domain.kernel.ids import new_id
from domain.kernel.tenancy import AuditContext

FEED = frozenset({"webhooks", "feed", "stream"})
WEBHOOKS_ONLY = frozenset({"webhooks"})
ON_REQUEST = frozenset[str]()


@dataclass(frozen=True, slots=True)
class EventType:
    """Event type.

    Attributes:
        channels: Channels that carry the type: `webhooks`, `feed`, `stream`.
        area: The part of the service from which the type comes.
        has_sample: Whether test mode can send a sample event of the type.
        is_sent: Whether the service sends the type already. Others can only be subscribed to, or sent as samples.
    """

    name: str
    channels: frozenset[str]
    area: str
    has_sample: bool
    is_sent: bool


_CATALOGUE = "service/catalog"
_BRAND = "service/brand"
_SOURCES = "service/sources"
_WEBHOOKS = "service/webhooks"
_ROWS = (
    # area, channels, types that are sent, types that are not sent yet
    (
        _CATALOGUE, FEED,
        "offer.changed offer.created product.created product.discontinued product.merged product.unmerged product.updated "
        "variant.created variant.merged variant.unmerged variant.updated product.published product.withdrawn",
        "",
    ),
    (_BRAND, FEED, "catalogue.unverified catalogue.verified", ""),
    (_SOURCES, FEED, "source.blocked source.degraded source.recovered", ""),
    (_WEBHOOKS, WEBHOOKS_ONLY, "delivery.disabled", ""),
    (_WEBHOOKS, ON_REQUEST, "webhook.test", ""),
    ("service/billing", WEBHOOKS_ONLY, "credits.exhausted credits.expiring credits.low credits.purchased", ""),
    ("service/usage", WEBHOOKS_ONLY, "usage.threshold_reached", ""),
    ("service/exports", WEBHOOKS_ONLY, "export.completed", ""),
    ("service/proposals", WEBHOOKS_ONLY, "proposal.applied proposal.created", ""),
)  # fmt: skip


def _build_types() -> dict[str, EventType]:
    types = {}
    for area, channels, sent, not_sent_yet in _ROWS:
        for name in f"{sent} {not_sent_yet}".split():
            types[name] = EventType(name, channels, area, has_sample=channels == FEED, is_sent=name in sent.split())
    return dict(sorted(types.items()))


TYPES = _build_types()
NOT_SENT_YET = frozenset(name for name, entry in TYPES.items() if not entry.is_sent)
"""Types that the service does not send yet, for the documentation."""
OFF_THE_FEED = tuple(sorted(name for name, entry in TYPES.items() if "feed" not in entry.channels))
"""Types that the change feed and the stream do not contain."""
_GAPLESS_VERSION_PREFIXES = ("product.", "variant.", "offer.")
"""Prefixes of types whose subjects have an event for every version, so that a gap in versions means a missed event."""


class FieldChange(NamedTuple):
    """Changed field: its dotted path, the old and the new value (None if there is none)."""

    path: str
    old: Any
    new: Any


ChangedField: TypeAlias = tuple[str, Any, Any]
"""A FieldChange as a plain tuple, for code that must be fast."""


def to_omitted_field(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return a changed field as JSON with its values, which are too large, replaced by `"omitted": true`."""
    rest = {name: value for name, value in field.items() if name not in ("path", "old", "new")}
    return {"path": field["path"], **rest, "omitted": True}


@dataclass(frozen=True, slots=True)
class Provenance:
    """Origin of a field's new value: source, method (`mapped`), confidence 0 to 1, time of observation."""

    source: str
    method: str
    confidence: float
    observed_at: datetime


@dataclass(slots=True)
class Event:
    """Change of one subject.

    Attributes:
        version: The subject's version after the change.
        data: IDs of the subject and of the objects that contain it, except the catalogue.
        fields: The changed fields.
        provenance: The origin of the new values.
        facets: Kinds of changes of an offer: price, stock, availability.
        is_published: Whether licence holders may read the event: the catalogue is published and the product listed.
        origins: The origin of values that differ from `provenance`, by path.
    """

    type: str
    subject: str
    version: int
    data: Mapping[str, Any]
    id: str = ""
    fields: Sequence[ChangedField] = ()
    provenance: Provenance | None = None
    facets: Sequence[str] | None = None
    source: str | None = None
    catalogue: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    schema_version: int = field(default=1)
    is_published: bool = False
    origins: Mapping[str, Provenance] = field(default_factory=dict)

    def assign_ids(self, context: AuditContext) -> None:
        """Set the event's ID and correlation ID if they are missing.

        Args:
            context: The request or job that caused the event; without a correlation ID in it, the event's ID is used.
        """
        self.id = self.id or new_id("evt")
        self.correlation_id = self.correlation_id or context.correlation_id or self.id

    @property
    def area(self) -> str:
        """The part of the service that the event comes from."""
        return TYPES[self.type].area

    @property
    def product(self) -> str | None:
        """ID of the product that is the subject or contains the subject; None for other types of events."""
        return self.subject if self.type.startswith("product.") else self.data.get("product")

    @property
    def previous_version(self) -> int | None:
        """The version of the subject before the change.

        None for events with the whole subject (at creation and publication), and for subjects without an event per version.
        """
        is_whole = self.version == 1 or self.type.endswith((".created", ".published"))
        return self.version - 1 if self.type.startswith(_GAPLESS_VERSION_PREFIXES) and not is_whole else None


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """Event that was read from a log.

    `body` is the envelope as JSON. `groups` are the field groups that the reader may see (domain/changes/model.py), None
    for all.
    """

    position: int
    id: str
    type: str
    subject: str
    product: str | None
    source: str | None
    catalogue: str | None
    version: int
    time: datetime
    body: bytes
    groups: frozenset[str] | None = None

    @property
    def is_from_network(self) -> bool:
        """True if the event is in the network log (events of published catalogues), so that licences decide who sees it."""
        return self.groups is not None


def sum_body_bytes(events: Sequence[LoggedEvent]) -> int:
    """Return the total size of the events' bodies in bytes."""
    return sum([len(event.body) for event in events])


def limit_events(events: Sequence[LoggedEvent], limit: int, max_bytes: int) -> Sequence[LoggedEvent]:
    """Return the first events: at most `limit`, and only up to the event with which their size reaches `max_bytes`."""
    weight = 0
    for count, event in enumerate(events[:limit], start=1):
        weight += len(event.body)
        if weight >= max_bytes:
            return events[:count]
    return events[:limit]


TIME_ORDER_TOLERANCE = timedelta(days=1)
"""Maximum by which an event may be older than an event at a lower position.

The first releases did not write times in exact order; the differences were hours.
"""


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Position in a log, directly after the event with the number `position` and the time `time` (None if unknown).

    After a restore to an earlier state, a log can have another event with the same number, but with a different time.
    """

    epoch: int = 0
    position: int = 0
    time: datetime | None = None

    def after(self, event: LoggedEvent) -> "LogPosition":
        """Return the position after an event of the same log."""
        return LogPosition(self.epoch, event.position, event.time)

    def contradicts(self, other: "LogPosition") -> bool:
        """Return whether two positions with the same number belong to different events, as their times show."""
        are_known = self.time is not None and other.time is not None
        return self.position == other.position and are_known and self.time != other.time

    def with_position(self, position: int) -> "LogPosition":
        """Return the position with another number, and with unknown time."""
        return self if position == self.position else LogPosition(self.epoch, position)

    @property
    def earliest_later_time(self) -> datetime | None:
        """The earliest possible time of events after the position; None if unknown."""
        return None if self.time is None else self.time - TIME_ORDER_TOLERANCE
