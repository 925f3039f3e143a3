"""The JSON of sources: what is answered, what is sent to make and change one (specification, Source)."""

from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from adapters.wire.schema import (
    Schema,
    array,
    closed,
    currency,
    flag,
    id_of,
    instant,
    integer,
    list_of,
    map_of,
    nullable,
    present,
    record,
    text,
    timestamp,
    url,
    word,
)
from domain.sources.model import KINDS, LICENCE_BASES, STATUSES, Source, freshness
from domain.sources.schedules import BOUNDS, as_given
from domain.sources.testing import RECORDS, SourceTest

_PLATFORMS: Final = ("shopify", "woocommerce", "bigcommerce", "magento", "squarespace", "custom")
_FORMATS: Final = ("csv", "tsv", "xlsx", "json", "jsonl", "xml", "google_merchant", "json_ld")
_REASONS: Final = (
    "fetch_failed", "fetch_refused", "credentials_refused", "parse_failed", "mapping_required", "shrink_refused",
)  # fmt: skip
_LONGEST_CELL: Final = 500

NAME: Final = text("Lindgren Möbler feed", longest=200)
CONNECTOR: Final = text("csv", longest=64, description="Chosen by kind, platform and format when it is left out.")
INBOUND: Final = closed(
    {"senders": array(text("orders@vendor.example", longest=320), most=100, description="Addresses that may send.")},
    ("senders",),
    "Data is taken from mail of these senders, at the source's inbound_address.",
)
CONFIG: Final[Schema] = {
    "type": "object",
    "description": "Settings. A connector may add its own; what it does not know is refused.",
    "properties": {
        "url": url(),
        "platform": word(*_PLATFORMS),
        "format": word("csv", *(name for name in _FORMATS if name != "csv")),
        "currency": currency(),
        "decimal": word("dot", "comma", "auto"),
        "role": word("supplier", "brand", "retailer", "warehouse"),
        "warehouse": text("Main", longest=200, description="The location of offers that name none."),
        "price_code": text("TRADE", longest=200, description="Which price column to take when there are several."),
        "inbound": INBOUND,
    },
    "maxProperties": 50,
    "examples": [{"url": "https://vendor.example/feed.csv", "format": "csv", "currency": "usd", "role": "supplier"}],
}
SCHEDULE: Final = closed(
    {
        "interval_minutes": integer(1440, least=BOUNDS["interval_minutes"][0], most=BOUNDS["interval_minutes"][1]),
        "stock_interval_minutes": integer(
            60, least=BOUNDS["stock_interval_minutes"][0], most=BOUNDS["stock_interval_minutes"][1]
        ),
        "adaptive": flag(False, "Pull more often while runs find changes, less often while they find none."),
    },
    description="How often the source is pulled; a stream without an interval is pulled on request only.",
)
LICENCE_BASIS: Final = word(*LICENCE_BASES)
FRESHNESS: Final = record(
    None,
    {
        "observed_at": timestamp(),
        "age_seconds": integer(1260, least=0),
        "state": word("fresh", "late", "stale"),
    },
)
SOURCE: Final = record(
    "source",
    {
        "id": id_of("src"),
        "catalogue": id_of("cat"),
        "name": NAME,
        "kind": word("url", *(kind for kind in KINDS if kind != "url")),
        "connector": CONNECTOR,
        "config": CONFIG,
        "schedule": record(
            None, dict(SCHEDULE["properties"]), optional=("interval_minutes", "stock_interval_minutes")
        ),
        "status": word(*STATUSES),
        "status_reason": record(
            None, {"code": word(*_REASONS), "message": text("The feed answered 404.", longest=2000)},
            description="Present while there is something to say about the status.",
        ),
        "licence_basis": LICENCE_BASIS,
        "first_party": flag(False, "The source is the brand's own."),
        "has_credentials": flag(False, "Credentials themselves are never returned."),
        "freshness": record(None, {"catalogue": nullable(FRESHNESS), "stock": nullable(FRESHNESS)}),
        "inbound_address": text(
            "k3m9x2q7w5t8a4b6c2d9@in.joinery.example", longest=320, description="Present with config.inbound."
        ),
        "version": integer(3, least=1, description="What If-Match compares."),
        "created_at": timestamp(),
        "updated_at": timestamp(),
    },
    optional=("status_reason", "inbound_address"),
)  # fmt: skip
SOURCES: Final = list_of(SOURCE)
CREATE: Final = closed(
    {
        "name": NAME,
        "kind": SOURCE["properties"]["kind"],
        "connector": CONNECTOR,
        "config": CONFIG,
        "schedule": SCHEDULE,
        "licence_basis": LICENCE_BASIS,
        "first_party": flag(False, "Defaults to true for vendors, to false for retailers."),
    },
    ("name", "kind"),
)
PATCH: Final = closed(
    {
        "name": NAME,
        "connector": CONNECTOR,
        "config": CONFIG | {"description": "Replaces the settings as a whole."},
        "schedule": SCHEDULE | {"description": "Replaces the schedule as a whole."},
        "status": word("active", "paused"),
        "licence_basis": LICENCE_BASIS,
    },
)
CREDENTIALS: Final = closed(
    {
        "credentials": {
            "type": "object",
            "description": "In the form that the source's connector asks for; sealed at rest and never shown again.",
            "minProperties": 1,
            "maxProperties": 50,
            "examples": [{"token": "shpat_example"}],
        }
    },
    ("credentials",),
)
SOURCE_TEST: Final = record(
    "source_test",
    {
        "ok": flag(),
        "status": integer(200, description="The HTTP status that the source answered."),
        "served_by": nullable(text("admin_graphql", description="The API that answered, of connectors with several.")),
        "final_url": url(),
        "content_type": text("text/csv"),
        "bytes_read": integer(48213, least=0),
        "sample": array(
            map_of({}, {"SKU": "LM-1001", "Title": "Oak dining table"}),
            most=RECORDS,
            description="The first records, as the feed names its columns.",
        ),
        "duration_ms": integer(412, least=0),
        "failure": record(
            None,
            {"code": text("fetch_failed"), "message": text("The server answered 503.", longest=2000)},
            description="Present when ok is false.",
        ),
    },
    optional=("status", "final_url", "content_type", "failure"),
)


def to_wire(source: Source, now: datetime) -> dict[str, Any]:
    """A source as it stands now."""
    wire: dict[str, Any] = {
        "object": "source",
        "id": source.id,
        "catalogue": source.catalogue,
        "name": source.name,
        "kind": source.kind,
        "connector": source.connector,
        "config": dict(source.config),
        "schedule": as_given(source.schedule),
        "status": source.status,
        "licence_basis": source.licence_basis,
        "first_party": source.first_party,
        "has_credentials": source.has_credentials,
        "freshness": {
            "catalogue": _fresh(source.catalogue_at, source.schedule.interval_minutes, now),
            "stock": _fresh(source.stock_at, source.schedule.stock_interval_minutes, now),
        },
        "version": source.version,
        "created_at": instant(source.created_at),
        "updated_at": instant(source.updated_at),
    }
    reason = source.status_reason
    told = {"code": reason.code, "message": reason.message} if reason else None
    return wire | present(status_reason=told, inbound_address=source.inbound_address)


def _fresh(observed_at: datetime | None, interval_minutes: int | None, now: datetime) -> dict[str, Any] | None:
    value = freshness(observed_at, interval_minutes, now)
    return value | {"observed_at": instant(value["observed_at"])} if value else None


def test_to_wire(test: SourceTest) -> dict[str, Any]:
    """What a test of a source answers."""
    wire: dict[str, Any] = {
        "object": "source_test",
        "ok": test.ok,
        "served_by": test.served_by,
        "bytes_read": test.bytes_read,
        "sample": [{name: _cell(value) for name, value in entry.items()} for entry in test.sample],
        "duration_ms": test.duration_ms,
    }
    failure = {"code": test.failure.code, "message": test.failure.message} if test.failure else None
    return wire | present(status=test.status, final_url=test.final_url, content_type=test.content_type, failure=failure)


def _cell(value: Any) -> Any:
    """A cell small enough to show; exact decimals become numbers."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_CELL else value[: _LONGEST_CELL - 1] + "…"
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, dict):
        return {str(name): _cell(part) for name, part in value.items()}
    return [_cell(part) for part in value] if isinstance(value, list) else value
