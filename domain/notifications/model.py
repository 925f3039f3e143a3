"""Rules about notifications, and the notifications that they send (docs/notifications.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from domain.audit.model import AuditedFields
from domain.kernel.enums import StoredEnum
from domain.kernel.paging import Filter

MAX_RULES_PER_PERSON = 20
"""Maximum number of rules that one person creates in an organisation, in each mode."""
MAX_ITEMS = 50
"""Maximum number of items that a notification lists; `total` counts all of them."""
MAX_FINDINGS = 20_000
"""Maximum number of subjects that wait for one rule's next notification; further ones are only reported as more."""
MIN_INTERVAL = timedelta(minutes=5)
"""Minimum time between two notifications of a rule that sends at once, so that an import does not send many."""
CHECK_INTERVAL = timedelta(minutes=5)
"""Interval at which sources are examined for late sources and new problems."""
MAX_NAME_CHARS = 100
MAX_THRESHOLD = 100_000
"""Maximum threshold in hundredths of a percent."""


class NotificationKind(StoredEnum):
    """Kinds of changes that a rule reports."""

    PRICE_CHANGE = "price_change"
    OUT_OF_STOCK = "out_of_stock"
    BACK_IN_STOCK = "back_in_stock"
    NEW_PRODUCTS = "new_products"
    DISCONTINUED = "discontinued"
    FEED = "feed"
    PROBLEMS = "problems"


SOURCE_KINDS = frozenset({NotificationKind.FEED, NotificationKind.PROBLEMS})
"""Kinds about sources; the others are about products."""


def get_required_scope(kind: NotificationKind) -> str:
    """Return the scope that a person must have to see what a rule of the kind reports."""
    return "sources:read" if kind in SOURCE_KINDS else "products:read"


class NotificationChannel(StoredEnum):
    """Channels: email to the person of the rule, an incoming webhook of Slack, or a signed webhook."""

    EMAIL = "email"
    SLACK = "slack"
    WEBHOOK = "webhook"


class Frequency(StoredEnum):
    """Frequencies with which a rule sends what was found."""

    AT_ONCE = "at_once"
    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"


class StopReason(StoredEnum):
    """Reasons for which a rule was disabled otherwise than by a form.

    `unsubscribed`: the person used the link in an email. `no_access`: the person left the organisation, or the role has
    no access any more. `refused`: the receiver no longer accepts requests. `failing`: all attempts of a notification failed.
    """

    UNSUBSCRIBED = "unsubscribed"
    NO_ACCESS = "no_access"
    REFUSED = "refused"
    FAILING = "failing"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationRule:
    """Rule of a person, or of the organisation if it does not send email.

    Attributes:
        person: ID of the user who created the rule and, for email, receives it.
        threshold: Minimum change of a price in hundredths of a percent.
        prices: Names of the prices that are compared.
        sources: IDs of sources; empty for all.
        brands: Brands; empty for all.
        categories: IDs of categories, which include those below; empty for all.
        address: Encrypted URL and secret of the receiver; None for email.
        address_hint: Part of the URL by which people recognise it.
        send_at: Minute of the day at which daily and weekly digests are sent, in the time zone.
        weekday: Day of weekly digests; Monday is 0.
        time_zone: Name in the IANA database.
        quiet_from: Minute of the day from which nothing is sent; None without quiet hours.
        quiet_until: Minute of the day until which nothing is sent.
        language: Language of texts, unless the person has another preference.
        stopped_for: Why the rule is disabled, if not by a form.
        position: Position in the event log up to which events were examined.
        state: Last observation of each source, by ID.
        checked_at: When sources were last examined.
        due_at: When the next notification is due; None while nothing was found.
        has_overflow: Whether more than MAX_FINDINGS subjects were found since the last notification.
        notified_at: When the newest notification was composed.
    """

    id: str
    person: str
    name: str
    kind: NotificationKind
    threshold: int = 500
    prices: tuple[str, ...] = ("price", "cost", "msrp", "map")
    sources: tuple[str, ...] = ()
    brands: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    channel: NotificationChannel = NotificationChannel.EMAIL
    address: bytes | None = None
    address_hint: str = ""
    frequency: Frequency = Frequency.DAILY
    send_at: int = 8 * 60
    weekday: int = 0
    time_zone: str = "UTC"
    quiet_from: int | None = None
    quiet_until: int | None = None
    language: str = "en"
    enabled: bool = True
    stopped_for: StopReason | None = None
    position: int = 0
    state: Mapping[str, Any] = field(default_factory=dict)
    checked_at: datetime
    due_at: datetime | None = None
    has_overflow: bool = False
    notified_at: datetime | None = None
    version: int = 1
    created_at: datetime
    updated_at: datetime

    @property
    def is_shared(self) -> bool:
        """True if the rule belongs to the organisation, because it does not send email to its person."""
        return self.channel != NotificationChannel.EMAIL


AUDITED = AuditedFields(
    "notification_rule",
    (
        "name", "kind", "threshold", "prices", "sources", "brands", "categories", "channel", "address_hint", "frequency", "send_at",
        "weekday", "time_zone", "quiet_from", "quiet_until", "enabled", "stopped_for",
    ),
)  # fmt: skip


class NotificationStatus(StoredEnum):
    """States of a notification. `sent` means accepted by the receiver or, for email, stored in the outbox."""

    PENDING = "pending"
    SENT = "sent"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """Notification that a rule has sent or will send.

    Attributes:
        total: Number of subjects that were found.
        is_total_exact: Whether `total` is exact; otherwise there are more.
        items: The first MAX_ITEMS subjects, as JSON objects (`findings.build_item`).
        failure: Why the last attempt failed, as a code of `AttemptFailure`, the HTTP status, or a StopReason.
    """

    id: str
    rule: str
    kind: NotificationKind
    status: NotificationStatus = NotificationStatus.PENDING
    total: int
    is_total_exact: bool = True
    items: tuple[Mapping[str, Any], ...]
    attempts: int = 0
    failure: str | None = None
    created_at: datetime
    next_attempt_at: datetime | None = None
    sent_at: datetime | None = None

    @property
    def omitted_count(self) -> int:
        """Number of subjects that the notification does not list."""
        return self.total - len(self.items)


@dataclass(frozen=True, slots=True)
class NotificationFilter(Filter):
    """Filter of a list of notifications."""

    rule: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenChanges:
    """Times at which a person viewed the changes of the catalogue. `id` is the person.

    Attributes:
        since: The end of the previous period, since which changes are new to the person.
        seen_at: The last view.
        hides_steps: Whether the person no longer sees the first steps.
    """

    id: str
    since: datetime
    seen_at: datetime
    hides_steps: bool = False
