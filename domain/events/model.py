"""The event envelope and the registry of types with their channels (docs/conventions.md#event-types)."""

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
    """An event type: its channels, its part of the service, and whether test mode can send a sample.

    `is_sent`: the service sends the type already. Other types can be subscribed to, and are sent as samples at most.
    """

    name: str
    channels: frozenset[str]
    area: str
    sample: bool
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
        "variant.created variant.merged variant.unmerged variant.updated",
        "product.published product.withdrawn",
    ),
    (_BRAND, FEED, "", "catalogue.verified catalogue.unverified"),
    (_SOURCES, FEED, "source.blocked source.degraded source.recovered", ""),
    (_WEBHOOKS, WEBHOOKS_ONLY, "delivery.disabled", ""),
    (_WEBHOOKS, ON_REQUEST, "webhook.test", ""),
    ("service/billing", WEBHOOKS_ONLY, "", "credits.exhausted credits.expiring credits.low credits.purchased"),
    ("service/usage", WEBHOOKS_ONLY, "usage.threshold_reached", ""),
    ("service/exports", WEBHOOKS_ONLY, "export.completed", ""),
    ("service/proposals", WEBHOOKS_ONLY, "", "proposal.applied proposal.created"),
)  # fmt: skip


def _types() -> dict[str, EventType]:
    types = {}
    for area, channels, sent, not_sent_yet in _ROWS:
        for name in f"{sent} {not_sent_yet}".split():
            types[name] = EventType(name, channels, area, sample=channels == FEED, is_sent=name in sent.split())
    return dict(sorted(types.items()))


TYPES = _types()
NOT_SENT_YET = frozenset(name for name, entry in TYPES.items() if not entry.is_sent)
"""Types that the service does not send yet, for the documentation."""
OFF_THE_FEED = tuple(sorted(name for name, entry in TYPES.items() if "feed" not in entry.channels))
"""Types that are excluded from the change feed and the stream."""
_COUNTED = ("product.", "variant.", "offer.")
"""Subjects whose every version has an event, so that a gap in versions means a missed event."""


class FieldChange(NamedTuple):
    """A changed field: dotted path, old and new value (None for none)."""

    path: str
    old: Any
    new: Any


Changed: TypeAlias = tuple[str, Any, Any]
"""Plain tuple of FieldChange, for hot loops."""


def omitted(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return a changed field as JSON without its values, which are too large; readers fetch the object instead."""
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
    """A change of one subject.

    `data` holds the ids of the subject and its parents except `catalogue`; `fields` the changed fields. `version` is
    the subject's version after the change; `facets` groups an offer's changes (price, stock, availability). `network`
    marks events for licence holders: the catalogue is published and the product listed. `origins` holds, by path, the
    provenance of fields that have their own.
    """

    type: str
    subject: str
    version: int
    data: Mapping[str, Any]
    id: str = ""
    fields: Sequence[Changed] = ()
    provenance: Provenance | None = None
    facets: Sequence[str] | None = None
    source: str | None = None
    catalogue: str | None = None
    correlation_id: str | None = None
    causation_id: str | None = None
    schema_version: int = field(default=1)
    network: bool = False
    origins: Mapping[str, Provenance] = field(default_factory=dict)

    def identify(self, context: AuditContext) -> None:
        """Set id and correlation id where they are missing.

        Args:
            context: The request or job that caused the event. Without one the event correlates with itself.
        """
        self.id = self.id or new_id("evt")
        self.correlation_id = self.correlation_id or context.correlation_id or self.id

    @property
    def area(self) -> str:
        """The part of the service that the event comes from."""
        return TYPES[self.type].area

    @property
    def product(self) -> str | None:
        """The product that the event is about: the subject itself or its parent."""
        return self.subject if self.type.startswith("product.") else self.data.get("product")

    @property
    def previous_version(self) -> int | None:
        """The version of the subject's last event, for types in which every version has one; None for the first."""
        return self.version - 1 if self.version > 1 and self.type.startswith(_COUNTED) else None


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """A stored event.

    `body` is the envelope's bytes. `groups` are the field groups that the reader may see (domain/changes/model.py);
    None for all.
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
    def of_network(self) -> bool:
        """True if the event is in the network log and restricted by licences."""
        return self.groups is not None


def weight_of(events: Sequence[LoggedEvent]) -> int:
    """Return the total bytes of the events' bodies."""
    return sum([len(event.body) for event in events])


def within(events: Sequence[LoggedEvent], limit: int, most_bytes: int) -> Sequence[LoggedEvent]:
    """Return the first `limit` events, or fewer: up to the one with which their bodies reach `most_bytes`."""
    weight = 0
    for count, event in enumerate(events[:limit], start=1):
        weight += len(event.body)
        if weight >= most_bytes:
            return events[:count]
    return events[:limit]


FURTHEST_BACK = timedelta(days=1)
"""Tolerance of the order of times, which in the first releases followed positions only within hours."""


@dataclass(frozen=True, slots=True)
class LogPosition:
    """A place in a log: after the event at `position`, dated `time` (None if unknown).

    A log that went back in time has another event or none there; the time reveals that.
    """

    epoch: int = 0
    position: int = 0
    time: datetime | None = None

    def behind(self, event: LoggedEvent) -> "LogPosition":
        """Return the position after an event of the same log."""
        return LogPosition(self.epoch, event.position, event.time)

    def differs(self, other: "LogPosition") -> bool:
        """Return whether the same number denotes another event in the other position's log."""
        known = self.time is not None and other.time is not None
        return self.position == other.position and known and self.time != other.time

    def at(self, position: int) -> "LogPosition":
        """Return another position of the same log, with unknown time."""
        return self if position == self.position else LogPosition(self.epoch, position)

    @property
    def since(self) -> datetime | None:
        """The earliest time of later events; None if unknown."""
        return None if self.time is None else self.time - FURTHEST_BACK
