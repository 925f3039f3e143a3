"""Sources, their settings and their health status (docs/conventions.md#source)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import Annotated, Any, Final

from domain.audit.model import AuditedFields
from domain.catalogue.licences import ReadableCatalogue
from domain.catalogue.model import LicenceBasis
from domain.kernel.clock_schedule import WEEKDAYS, ClockSchedule
from domain.kernel.enums import StoredEnum
from domain.kernel.errors import Conflict
from domain.kernel.resource import VERSION, audited, changeable, optional, set_at_creation, settable, with_changes
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    currency,
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
from domain.kernel.tenancy import Tenant


class SourceKind(StoredEnum):
    """Ways in which a source receives data.

    `api`: a connector signs in to the vendor's API; `url`: a URL is fetched; `file`: users upload files; `push`: a
        program sends
    records; `mail`: the vendor sends email.
    """

    API = "api"
    URL = "url"
    FILE = "file"
    PUSH = "push"
    MAIL = "mail"


class SourceStatus(StoredEnum):
    """Statuses of a source: three levels of health, `paused` (by a user) and `disabled` (by the service)."""

    ACTIVE = "active"
    DEGRADED = "degraded"
    BLOCKED = "blocked"
    PAUSED = "paused"
    DISABLED = "disabled"


class SourceFault(StoredEnum):
    """Reasons for which a source is degraded or blocked."""

    FETCH_FAILED = "fetch_failed"
    FETCH_REFUSED = "fetch_refused"
    CREDENTIALS_REFUSED = "credentials_refused"
    PARSE_FAILED = "parse_failed"
    MAPPING_REQUIRED = "mapping_required"
    SHRINK_REFUSED = "shrink_refused"


NETWORK_CONNECTOR = "network"
"""Connector that reads the products of another organisation's published catalogue, as a licence permits."""
CORRECTIONS_CONNECTOR = "corrections"
"""Connector of the source that is the origin of values that people have corrected; no data can be imported into it."""
FETCHED_KINDS = (SourceKind.API, SourceKind.URL)
"""Kinds of sources that are pulled."""
FILE_KINDS = (SourceKind.FILE, SourceKind.MAIL)
"""Kinds of sources that receive files, each of which may contain a catalogue or only stock."""
RUNNABLE_STATUSES = frozenset({SourceStatus.ACTIVE, SourceStatus.DEGRADED})
"""Statuses of sources whose runs may start."""


class Weekday(StoredEnum):
    """Weekdays of a schedule, from Monday as in ISO 8601."""

    MONDAY = "mon"
    TUESDAY = "tue"
    WEDNESDAY = "wed"
    THURSDAY = "thu"
    FRIDAY = "fri"
    SATURDAY = "sat"
    SUNDAY = "sun"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times at which a source's streams are pulled; a stream without any is pulled on request only.

    Attributes:
        interval_minutes: Interval of the catalogue in minutes.
        stock_interval_minutes: Interval of stock in minutes.
        adaptive: Whether intervals become shorter while runs find changes, and longer while they find none.
        at: Clock times (HH:MM) at which the catalogue is pulled, instead of an interval.
        weekdays: Weekdays on which the clock times apply; None for all.
        time_zone: Name of the time zone of clock times and weekdays in the IANA database; None for UTC.
    """

    interval_minutes: int | None = None
    stock_interval_minutes: int | None = None
    adaptive: bool = False
    at: tuple[str, ...] | None = None
    weekdays: tuple[Weekday, ...] | None = None
    time_zone: str | None = None

    def list_clock_schedules(self, stream: str) -> Sequence[ClockSchedule]:
        """Return the schedules of the stream's clock times; empty if the stream has none."""
        if stream == "stock":
            return ()
        order = list(Weekday)
        weekdays = tuple(order.index(day) + 1 for day in self.weekdays) if self.weekdays else WEEKDAYS
        times = map(time.fromisoformat, self.at or ())
        return [ClockSchedule(at.hour, at.minute, self.time_zone or "UTC", weekdays) for at in times]

    def find_next_clock_time(self, stream: str, after: datetime) -> datetime | None:
        """Return the stream's first clock time later than `after`; None if the stream has no clock times."""
        return min((clock.find_next(after) for clock in self.list_clock_schedules(stream)), default=None)


@dataclass(frozen=True, slots=True)
class StatusReason:
    """Reason for the status of a source: a code (a SourceFault, or one that a connector defines) and a message."""

    code: str
    message: str


STALE_INTERVALS = 3
"""Number of intervals or clock times without a complete run after which a stream is stale."""
INTERVAL_BOUNDS = {"interval_minutes": (5, 43_200), "stock_interval_minutes": (5, 1_440)}
"""Minimum and maximum of each interval, in minutes."""
_PLATFORMS = ("shopify", "woocommerce", "bigcommerce", "magento", "squarespace", "custom")
_FORMATS = ("csv", "tsv", "xlsx", "json", "jsonl", "xml", "google_merchant", "json_ld")

CONNECTOR = text(
    "csv", max_length=64, description="If omitted, the connector is selected by kind, platform and format."
)
INBOUND = strict_object(
    {
        "senders": array(
            text("orders@vendor.example", max_length=320),
            max_items=100,
            description="Email addresses from which messages are accepted.",
        )
    },
    ("senders",),
    "Accept mail from these senders at the source's inbound_address.",
)
CONFIG: Final[Schema] = {
    "type": "object",
    "description": "Settings of the source. Connectors define further settings; unknown settings are rejected.",
    "properties": {
        "url": url(),
        "platform": with_title("shop_platform", enum(*_PLATFORMS)),
        "format": enum("csv", *(name for name in _FORMATS if name != "csv")),
        "currency": currency(),
        "decimal": enum("dot", "comma", "auto"),
        "role": enum("supplier", "brand", "retailer", "warehouse"),
        "warehouse": text("Main", max_length=200, description="Default location of offers, for data that states none."),
        "price_code": text("TRADE", max_length=200, description="The price column to use if there are several."),
        "media_base_url": url("https://cdn.vendor.example/pictures")
        | {
            "maxLength": 1024,
            "pattern": r"^https?://[^?#\s]+$",
            "x-words": "an address that starts with http:// or https:// and has no query, no fragment and no spaces",
            "description": "Base URL of images that the data states by file name only.",
        },
        "inbound": INBOUND,
    },
    "maxProperties": 50,
    "examples": [{"url": "https://vendor.example/feed.csv", "format": "csv", "currency": "usd", "role": "supplier"}],
}
MAX_CLOCK_TIMES = 24
"""Maximum number of clock times of a schedule."""
SCHEDULE = strict_object(
    {
        "interval_minutes": integer(
            1440, minimum=INTERVAL_BOUNDS["interval_minutes"][0], maximum=INTERVAL_BOUNDS["interval_minutes"][1]
        ),
        "stock_interval_minutes": integer(
            60,
            minimum=INTERVAL_BOUNDS["stock_interval_minutes"][0],
            maximum=INTERVAL_BOUNDS["stock_interval_minutes"][1],
        ),
        "adaptive": boolean(False, "Pull more often while runs find changes, less often while they find none."),
        "at": array(
            text("06:30", max_length=5)
            | {"pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$", "x-words": "a time from 00:00 to 23:59, such as 06:30"},
            min_items=1,
            max_items=MAX_CLOCK_TIMES,
            description="Clock times at which the catalogue is pulled, instead of interval_minutes.",
        ),
        "weekdays": array(
            with_title("weekday", enum(*Weekday)),
            min_items=1,
            max_items=len(Weekday),
            description="Weekdays on which the clock times apply; all if omitted.",
        ),
        "time_zone": text(
            "Europe/Berlin",
            max_length=64,
            description="IANA time zone of the clock times and weekdays; UTC if omitted.",
        ),
    },
    description="When the source is pulled; a stream without an interval or clock times is pulled on request only.",
) | {"examples": [{"interval_minutes": 1440, "stock_interval_minutes": 60, "adaptive": False}]}
INBOUND_ADDRESS = text(
    "k3m9x2q7w5t8a4b6c2d9@in.joinery.example",
    max_length=320,
    description="Address to which the vendor sends mail; present if config.inbound is set.",
)
STATUS_REASON = with_title(
    "source_status_reason",
    response_object(None, {"code": enum(*SourceFault), "message": text("The feed answered 404.", max_length=2000)}),
)
_WHEN_REASON = "The failure that made the source degraded or blocked; absent if there is none."


@dataclass(frozen=True, slots=True)
class HealthThresholds:
    """Numbers of consecutive failed runs after which a source is degraded or blocked."""

    degraded_after: int = 3
    blocked_after: int = 10


def _describe_refusal(status: "SourceStatus") -> str:
    if status == SourceStatus.DISABLED:
        return "The service has disabled this source. Contact the operator."
    why = "; status_reason states the reason. Resolve it, then" if status == SourceStatus.BLOCKED else "; first"
    return f"The source is {status}{why} set its status to active (PATCH /v1/sources/{{id}})."


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Connection to a vendor's data.

    Attributes:
        config: The settings as a user entered them; credentials are encrypted and stored separately.
        inbound_address: Address to which the vendor sends mail, if the source accepts mail.
        failures: Number of consecutive failed runs.
        catalogue_at: End of the last successful catalogue run.
        stock_at: End of the last successful stock run.
        next_pull: Time of the next scheduled pull of the catalogue; None if it is not scheduled.
        next_stock_pull: Time of the next scheduled pull of stock; None if it is not scheduled.
        interval_factor: Factor by which an adaptive schedule changes the interval, by stream.
        checked_at: When a stock check, or a run that did not succeed, last changed an item of the source.
    """

    id: Annotated[str, id_schema("src")]
    catalogue: Annotated[str, id_schema("cat")]
    name: Annotated[str, settable(text("Lindgren Möbler feed", max_length=200), required=True)]
    kind: Annotated[
        SourceKind, set_at_creation(enum("url", *(kind for kind in SourceKind if kind != "url")), required=True)
    ]
    connector: Annotated[str, settable(CONNECTOR)]
    config: Annotated[Mapping[str, Any], settable(CONFIG, patch={"description": "Replaces the settings as a whole."})]
    schedule: Annotated[
        Schedule,
        settable(
            SCHEDULE,
            patch={"description": "Replaces the schedule as a whole."},
            response_schema=response_object(
                None,
                dict(SCHEDULE["properties"]),
                optional=tuple(name for name in SCHEDULE["properties"] if name != "adaptive"),
            )
            | {"examples": SCHEDULE["examples"]},
        ),
    ] = Schedule()
    status: Annotated[SourceStatus, changeable(enum(*SourceStatus), enum("active", "paused"))] = SourceStatus.ACTIVE
    status_reason: Annotated[StatusReason | None, audited(optional(STATUS_REASON | {"description": _WHEN_REASON}))] = (
        None
    )
    licence_basis: Annotated[LicenceBasis, settable(enum(*LicenceBasis))] = LicenceBasis.UNKNOWN
    first_party: Annotated[
        bool,
        set_at_creation(
            boolean(False, "Defaults to true for vendors, to false for retailers."),
            response_schema=boolean(
                False, "Whether the source is the vendor's own; its data then takes precedence in merges."
            ),
        ),
    ]
    has_credentials: Annotated[bool, audited(boolean(False, "Credentials themselves are never returned."))] = False
    inbound_address: Annotated[str | None, audited(optional(INBOUND_ADDRESS))] = None
    version: Annotated[int, VERSION] = 1
    created_at: Annotated[datetime, timestamp()]
    updated_at: Annotated[datetime, timestamp()]
    failures: int = 0
    catalogue_at: datetime | None = None
    stock_at: datetime | None = None
    next_pull: datetime | None = None
    next_stock_pull: datetime | None = None
    interval_factor: Mapping[str, float] = field(default_factory=dict)
    checked_at: datetime | None = None

    @property
    def is_runnable(self) -> bool:
        """True if the source is active or degraded, so that runs may start."""
        return self.status in RUNNABLE_STATUSES and self.connector != CORRECTIONS_CONNECTOR

    @property
    def follows_catalogue(self) -> bool:
        """True if the source copies another organisation's published catalogue."""
        return self.connector == NETWORK_CONNECTOR

    @property
    def has_records(self) -> bool:
        """True if the source's data consists of records (docs/push.md), not of tables."""
        return self.kind == SourceKind.PUSH or self.follows_catalogue

    def refuse_unless_runnable(self) -> None:
        """Raise Conflict if the source is paused, disabled or blocked, or contains corrections."""
        if self.connector == CORRECTIONS_CONNECTOR:
            raise Conflict("This source contains the corrections of people. Correct values in the console instead.")
        if not self.is_runnable:
            raise Conflict(_describe_refusal(self.status))

    def get_interval_minutes(self, stream: str) -> int | None:
        """Return the interval between pulls of the stream in minutes; None if the stream is not scheduled."""
        return self.schedule.stock_interval_minutes if stream == "stock" else self.schedule.interval_minutes

    def get_next_pull(self, stream: str) -> datetime | None:
        """Return the time of the stream's next scheduled pull, or None."""
        return self.next_stock_pull if stream == "stock" else self.next_pull

    def schedule_next_pull(self, stream: str, at: datetime | None) -> "Source":
        """Return the source with `at` as the time of the stream's next pull; None means that no pull is scheduled."""
        return replace(self, next_stock_pull=at) if stream == "stock" else replace(self, next_pull=at)

    def compute_expected_minutes(self, stream: str) -> float | None:
        """Return the interval after which a pull of the stream is expected, in minutes; None without a schedule.

        An adaptive schedule can extend this interval but not shorten it.
        """
        minutes = self.get_interval_minutes(stream)
        factor = self.interval_factor.get(stream, 1.0) if self.schedule.adaptive else 1.0
        return None if minutes is None else minutes * max(1.0, factor)

    def compute_freshness(self, stream: str, now: datetime) -> dict[str, Any] | None:
        """Return the time, the age and the freshness of a stream's data: `fresh`, `late` or `stale`.

        Returns None if the stream was never read completely.
        """
        observed_at = self.stock_at if stream == "stock" else self.catalogue_at
        if observed_at is None:
            return None
        fresh_until, late_until = self.find_freshness_limits(stream, observed_at)
        state = "fresh" if now <= fresh_until else "late" if now <= late_until else "stale"
        age = max(0, int((now - observed_at).total_seconds()))
        return {"observed_at": observed_at, "age_seconds": age, "state": state}

    def find_freshness_limits(self, stream: str, observed_at: datetime) -> tuple[datetime, datetime]:
        """Return the times until which data of the stream that was read at `observed_at` is fresh, and until which it is late.

        With an interval, these are 1.5 intervals and STALE_INTERVALS later; a stream without a schedule is expected daily.
        With clock times, data is fresh until the middle between the next time and the one after it, and late until
        STALE_INTERVALS times have passed.
        """
        due = [observed_at]
        while len(due) <= STALE_INTERVALS and (following := self.schedule.find_next_clock_time(stream, due[-1])):
            due.append(following)
        if len(due) > 1:
            return due[1] + (due[2] - due[1]) / 2, due[STALE_INTERVALS]
        interval = timedelta(minutes=self.compute_expected_minutes(stream) or 1440)
        return observed_at + interval * 1.5, observed_at + interval * STALE_INTERVALS

    def with_success(
        self, stream: str, now: datetime, *, observed_at: datetime | None = None, is_pull: bool = True
    ) -> "Source":
        """Return the source after a successful run, which also makes a degraded source active again.

        Args:
            stream: The stream that was read.
            now: The current time.
            observed_at: When the data was fetched; None for `now`.
            is_pull: False for a replay. A replay resets the failures and the status only if the source's status reason
                is `parse_failed`.
        """
        previous, data_time = self.stock_at if stream == "stock" else self.catalogue_at, observed_at or now
        data_time = data_time if previous is None else max(previous, data_time)
        updated = replace(self, stock_at=data_time) if stream == "stock" else replace(self, catalogue_at=data_time)
        if not is_pull and (self.status_reason is None or self.status_reason.code != SourceFault.PARSE_FAILED):
            return updated
        if self.status == SourceStatus.DEGRADED:
            return with_changes(updated, now, status=SourceStatus.ACTIVE, status_reason=None, failures=0)
        return replace(updated, failures=0)

    def with_failure(self, reason: StatusReason, now: datetime, thresholds: HealthThresholds) -> "Source":
        """Return the source after a failed run.

        Too many consecutive failures make the source degraded or blocked; a refusal by the vendor blocks the source at
        once. A source that follows a catalogue is never blocked, because its copies must not outlive the licence.
        """
        failures = self.failures + 1
        was_refused = reason.code in (SourceFault.FETCH_REFUSED, SourceFault.CREDENTIALS_REFUSED)
        may_block = self.is_runnable and not self.follows_catalogue
        if may_block and (was_refused or failures >= thresholds.blocked_after):
            return with_changes(self, now, status=SourceStatus.BLOCKED, status_reason=reason, failures=failures)
        if self.status == SourceStatus.ACTIVE and failures >= thresholds.degraded_after:
            return with_changes(self, now, status=SourceStatus.DEGRADED, status_reason=reason, failures=failures)
        if self.status == SourceStatus.DEGRADED and self.status_reason and self.status_reason.code != reason.code:
            return with_changes(self, now, status_reason=reason, failures=failures)
        return replace(self, failures=failures)


@dataclass(frozen=True, slots=True)
class SourceContents:
    """Numbers of a source's products and offers.

    Attributes:
        source: ID of the source.
        products: Number of products, including discontinued ones, up to the limit of the query.
        sampled_products: Number of the newest products that were examined for merges.
        matched_products: Number of these that are merged with a product of another source.
        sampled_offers: Number of the newest offers that were examined for stock; withdrawn offers are omitted.
        out_of_stock_offers: Number of these that are out of stock.
    """

    source: str
    products: int
    sampled_products: int
    matched_products: int
    sampled_offers: int
    out_of_stock_offers: int


@dataclass(frozen=True, slots=True)
class Follower:
    """Source that follows a catalogue, and whose next run may start.

    Attributes:
        catalogue: What its organisation can read of the catalogue.
        state: The state of the catalogue that its newest run has read; None if no run has read it.
    """

    tenant: Tenant
    source: str
    catalogue: ReadableCatalogue
    state: str | None


AUDITED = AuditedFields.from_resource(Source, "source")
