"""Sources, their settings and their health status (docs/conventions.md#source)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from domain.audit.model import Audited
from domain.catalogue.model import LicenceBasis
from domain.kernel.enums import StoredEnum
from domain.kernel.errors import Conflict
from domain.kernel.resource import VERSION, audited, changeable, changed, fixed, optional, settable
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    currency,
    enum,
    id_of,
    integer,
    named,
    record,
    strict_object,
    text,
    timestamp,
    url,
)


class SourceKind(StoredEnum):
    """The way data arrives: a connector signs in, a URL is pulled, files are uploaded, records pushed, or mail received."""

    API = "api"
    URL = "url"
    FILE = "file"
    PUSH = "push"
    MAIL = "mail"


class SourceStatus(StoredEnum):
    """The status of a source: its health, and states that people or the service set."""

    ACTIVE = "active"
    DEGRADED = "degraded"
    BLOCKED = "blocked"
    PAUSED = "paused"
    DISABLED = "disabled"


class SourceFault(StoredEnum):
    """The reason why a source is not active."""

    FETCH_FAILED = "fetch_failed"
    FETCH_REFUSED = "fetch_refused"
    CREDENTIALS_REFUSED = "credentials_refused"
    PARSE_FAILED = "parse_failed"
    MAPPING_REQUIRED = "mapping_required"
    SHRINK_REFUSED = "shrink_refused"


FETCHED_KINDS = (SourceKind.API, SourceKind.URL)
HANDED_IN_KINDS = (SourceKind.FILE, SourceKind.MAIL)
"""Kinds whose files may hold a catalogue or stock alone, which is determined by reading them."""
RUNNABLE = frozenset({SourceStatus.ACTIVE, SourceStatus.DEGRADED})


@dataclass(frozen=True, slots=True)
class Schedule:
    """The pull intervals of a source; a stream with None is pulled on request only."""

    interval_minutes: int | None = None
    stock_interval_minutes: int | None = None
    adaptive: bool = False


@dataclass(frozen=True, slots=True)
class StatusReason:
    """The reason for a source's status: a SourceFault or a connector's own code, and a sentence."""

    code: str
    message: str


BOUNDS = {"interval_minutes": (5, 43_200), "stock_interval_minutes": (5, 1_440)}
"""Minimum and maximum minutes between pulls."""
_PLATFORMS = ("shopify", "woocommerce", "bigcommerce", "magento", "squarespace", "custom")
_FORMATS = ("csv", "tsv", "xlsx", "json", "jsonl", "xml", "google_merchant", "json_ld")

CONNECTOR = text("csv", longest=64, description="Selected by kind, platform and format if omitted.")
INBOUND = strict_object(
    {"senders": array(text("orders@vendor.example", longest=320), most=100, description="Addresses that may send.")},
    ("senders",),
    "Data is taken from mail of these senders, at the source's inbound_address.",
)
CONFIG: Final[Schema] = {
    "type": "object",
    "description": "Settings. A connector may add its own; unknown settings are rejected.",
    "properties": {
        "url": url(),
        "platform": named("shop_platform", enum(*_PLATFORMS)),
        "format": enum("csv", *(name for name in _FORMATS if name != "csv")),
        "currency": currency(),
        "decimal": enum("dot", "comma", "auto"),
        "role": enum("supplier", "brand", "retailer", "warehouse"),
        "warehouse": text("Main", longest=200, description="The location of offers without one."),
        "price_code": text("TRADE", longest=200, description="The price column to use if there are several."),
        "media_base_url": url("https://cdn.vendor.example/pictures")
        | {
            "maxLength": 1024,
            "pattern": r"^https?://[^?#\s]+$",
            "x-words": "an address that starts with http:// or https:// and has no query, no fragment and no spaces",
            "description": "The folder of images that the data names by file name only.",
        },
        "inbound": INBOUND,
    },
    "maxProperties": 50,
    "examples": [{"url": "https://vendor.example/feed.csv", "format": "csv", "currency": "usd", "role": "supplier"}],
}
SCHEDULE = strict_object(
    {
        "interval_minutes": integer(1440, least=BOUNDS["interval_minutes"][0], most=BOUNDS["interval_minutes"][1]),
        "stock_interval_minutes": integer(
            60, least=BOUNDS["stock_interval_minutes"][0], most=BOUNDS["stock_interval_minutes"][1]
        ),
        "adaptive": boolean(False, "Pull more often while runs find changes, less often while they find none."),
    },
    description="How often the source is pulled; a stream without an interval is pulled on request only.",
)
INBOUND_ADDRESS = text(
    "k3m9x2q7w5t8a4b6c2d9@in.joinery.example", longest=320, description="Present with config.inbound."
)
STATUS_REASON = named(
    "source_status_reason",
    record(None, {"code": enum(*SourceFault), "message": text("The feed answered 404.", longest=2000)}),
)
_WHEN_REASON = "Present if the status has a reason."


@dataclass(frozen=True, slots=True)
class Ladder:
    """The numbers of consecutive failed runs after which a source is degraded and blocked."""

    degraded_after: int = 3
    blocked_after: int = 10


def _stopped(status: "SourceStatus") -> str:
    if status == SourceStatus.DISABLED:
        return "The service has disabled this source. Contact the operator."
    why = "; status_reason says why. Mend that, then" if status == SourceStatus.BLOCKED else "; first"
    return f"The source is {status}{why} set its status to active (PATCH /v1/sources/{{id}})."


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A connection to a vendor's data. `config` is the wire object as given; credentials are stored sealed elsewhere.

    `failures` counts failed runs in a row; `next_pull` and `next_stock_pull` are the times of the next scheduled runs;
    `catalogue_at` and `stock_at` are the ends of the last good runs of each stream (freshness); `checked_at` is when a check
    of one item's stock last changed anything.
    """

    id: Annotated[str, id_of("src")]
    catalogue: Annotated[str, id_of("cat")]
    name: Annotated[str, settable(text("Lindgren Möbler feed", longest=200), required=True)]
    kind: Annotated[SourceKind, fixed(enum("url", *(kind for kind in SourceKind if kind != "url")), required=True)]
    connector: Annotated[str, settable(CONNECTOR)]
    config: Annotated[Mapping[str, Any], settable(CONFIG, patch={"description": "Replaces the settings as a whole."})]
    schedule: Annotated[
        Schedule,
        settable(
            SCHEDULE,
            patch={"description": "Replaces the schedule as a whole."},
            answered=record(None, dict(SCHEDULE["properties"]), optional=tuple(BOUNDS)),
        ),
    ] = Schedule()
    status: Annotated[SourceStatus, changeable(enum(*SourceStatus), enum("active", "paused"))] = SourceStatus.ACTIVE
    status_reason: Annotated[StatusReason | None, audited(optional(STATUS_REASON | {"description": _WHEN_REASON}))] = (
        None
    )
    licence_basis: Annotated[LicenceBasis, settable(enum(*LicenceBasis))] = LicenceBasis.UNKNOWN
    first_party: Annotated[
        bool,
        fixed(
            boolean(False, "Defaults to true for vendors, to false for retailers."),
            answered=boolean(False, "The source is the brand's own."),
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
    def runnable(self) -> bool:
        """Return whether runs may start now."""
        return self.status in RUNNABLE

    def refuse_unless_runnable(self) -> None:
        """Raise Conflict for a paused, disabled or blocked source."""
        if not self.runnable:
            raise Conflict(_stopped(self.status))

    def interval(self, stream: str) -> int | None:
        """Return the minutes between pulls of the stream; None if it is not scheduled."""
        return self.schedule.stock_interval_minutes if stream == "stock" else self.schedule.interval_minutes

    def due(self, stream: str) -> datetime | None:
        """Return the time of the stream's next scheduled pull, or None."""
        return self.next_stock_pull if stream == "stock" else self.next_pull

    def next_due(self, stream: str, at: datetime | None) -> "Source":
        """Return the source with the time of the stream's next pull (None: not scheduled)."""
        return replace(self, next_stock_pull=at) if stream == "stock" else replace(self, next_pull=at)

    def expected_minutes(self, stream: str) -> float | None:
        """Return the expected minutes between runs of the stream; an adaptive schedule may have stretched the interval."""
        minutes = self.interval(stream)
        stretched = self.interval_factor.get(stream, 1.0) if self.schedule.adaptive else 1.0
        return None if minutes is None else minutes * max(1.0, stretched)

    def after_success(
        self, stream: str, now: datetime, *, observed_at: datetime | None = None, asked: bool = True
    ) -> "Source":
        """Return the source after a successful run, which updates the stream's freshness and reactivates a degraded source.

        A replay of stored data (`asked` is false) only clears faults of reading.
        """
        held, seen = self.stock_at if stream == "stock" else self.catalogue_at, observed_at or now
        seen = seen if held is None else max(held, seen)
        fresh = replace(self, stock_at=seen) if stream == "stock" else replace(self, catalogue_at=seen)
        if not asked and (self.status_reason is None or self.status_reason.code != SourceFault.PARSE_FAILED):
            return fresh
        if self.status == SourceStatus.DEGRADED:
            return changed(fresh, now, status=SourceStatus.ACTIVE, status_reason=None, failures=0)
        return replace(fresh, failures=0)

    def after_failure(self, reason: StatusReason, now: datetime, ladder: Ladder) -> "Source":
        """Return the source after a failed run: degraded or blocked by the number of failures, or blocked at once if the vendor refused access."""
        failures = self.failures + 1
        refused = reason.code in (SourceFault.FETCH_REFUSED, SourceFault.CREDENTIALS_REFUSED)
        if self.runnable and (refused or failures >= ladder.blocked_after):
            return changed(self, now, status=SourceStatus.BLOCKED, status_reason=reason, failures=failures)
        if self.status == SourceStatus.ACTIVE and failures >= ladder.degraded_after:
            return changed(self, now, status=SourceStatus.DEGRADED, status_reason=reason, failures=failures)
        if self.status == SourceStatus.DEGRADED and self.status_reason and self.status_reason.code != reason.code:
            return changed(self, now, status_reason=reason, failures=failures)
        return replace(self, failures=failures)


AUDITED = Audited.of(Source, "source")


STALE_INTERVALS = 3
"""Number of intervals after which a stream is stale."""


def freshness(observed_at: datetime | None, interval_minutes: float | None, now: datetime) -> dict[str, Any] | None:
    """Return when a stream was last read completely, and whether that is fresh, late (past 1.5 intervals) or stale (past 3).

    A stream without an interval is treated as daily.
    """
    if observed_at is None:
        return None
    age = now - observed_at
    due = timedelta(minutes=interval_minutes or 1440)
    state = "fresh" if age <= due * 1.5 else "late" if age <= due * STALE_INTERVALS else "stale"
    return {"observed_at": observed_at, "age_seconds": max(0, int(age.total_seconds())), "state": state}
