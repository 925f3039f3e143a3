"""The JSON of sources: what is answered, what is sent to make and change one (docs/conventions.md#source)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from adapters.wire.resource import Body, Resource
from adapters.wire.runs import PROBLEM
from domain.catalogue.model import LicenceBasis
from domain.ingestion.model import MappingTier, UnmappedReason
from domain.kernel.resource import View, changeable, computed, fixed, optional, settable
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    currency,
    enum,
    failure,
    id_of,
    integer,
    map_of,
    named,
    nullable,
    record,
    strict_object,
    text,
    timestamp,
    url,
)
from domain.sources.model import Source, SourceFault, SourceKind, SourceStatus, freshness
from domain.sources.schedules import BOUNDS
from domain.sources.testing import RECORDS, SourceTest

_PLATFORMS: Final = ("shopify", "woocommerce", "bigcommerce", "magento", "squarespace", "custom")
_FORMATS: Final = ("csv", "tsv", "xlsx", "json", "jsonl", "xml", "google_merchant", "json_ld")
_LONGEST_CELL: Final = 500

NAME: Final = text("Lindgren Möbler feed", longest=200)
CONNECTOR: Final = text("csv", longest=64, description="Chosen by kind, platform and format when it is left out.")
INBOUND: Final = strict_object(
    {"senders": array(text("orders@vendor.example", longest=320), most=100, description="Addresses that may send.")},
    ("senders",),
    "Data is taken from mail of these senders, at the source's inbound_address.",
)
CONFIG: Final[Schema] = {
    "type": "object",
    "description": "Settings. A connector may add its own; what it does not know is refused.",
    "properties": {
        "url": url(),
        "platform": named("shop_platform", enum(*_PLATFORMS)),
        "format": enum("csv", *(name for name in _FORMATS if name != "csv")),
        "currency": currency(),
        "decimal": enum("dot", "comma", "auto"),
        "role": enum("supplier", "brand", "retailer", "warehouse"),
        "warehouse": text("Main", longest=200, description="The location of offers that name none."),
        "price_code": text("TRADE", longest=200, description="Which price column to take when there are several."),
        "media_base_url": url("https://cdn.vendor.example/pictures")
        | {
            "maxLength": 1024,
            "pattern": r"^https?://[^?#\s]+$",
            "x-words": "an address that starts with http:// or https:// and has no query, no fragment and no spaces",
            "description": "The folder in which pictures lie that the data gives by their file names alone.",
        },
        "inbound": INBOUND,
    },
    "maxProperties": 50,
    "examples": [{"url": "https://vendor.example/feed.csv", "format": "csv", "currency": "usd", "role": "supplier"}],
}
SCHEDULE: Final = strict_object(
    {
        "interval_minutes": integer(1440, least=BOUNDS["interval_minutes"][0], most=BOUNDS["interval_minutes"][1]),
        "stock_interval_minutes": integer(
            60, least=BOUNDS["stock_interval_minutes"][0], most=BOUNDS["stock_interval_minutes"][1]
        ),
        "adaptive": boolean(False, "Pull more often while runs find changes, less often while they find none."),
    },
    description="How often the source is pulled; a stream without an interval is pulled on request only.",
)
LICENCE_BASIS: Final = enum(*LicenceBasis)
FRESHNESS: Final = record(
    None,
    {
        "observed_at": timestamp(),
        "age_seconds": integer(1260, least=0),
        "state": enum("fresh", "late", "stale"),
    },
)


def _freshness(source: Source, view: View) -> Mapping[str, Any]:
    """How fresh each stream is; null before its first good run."""
    return {
        "catalogue": freshness(source.catalogue_at, source.expected_minutes("catalogue"), view.now),
        "stock": freshness(source.stock_at, source.expected_minutes("stock"), view.now),
    }


def _without_ages(source: dict[str, Any]) -> dict[str, Any]:
    """Return the source without the ages of its streams, which grow with the time alone."""
    streams = source["freshness"].items()
    return source | {"freshness": {name: one and {**one, "age_seconds": 0} for name, one in streams}}


STATUS_REASON: Final = named(
    "source_status_reason",
    record(None, {"code": enum(*SourceFault), "message": text("The feed answered 404.", longest=2000)}),
)
SOURCE: Final = Resource[Source](
    "source",
    {
        "id": id_of("src"),
        "catalogue": id_of("cat"),
        "name": settable(NAME, required=True),
        "kind": fixed(enum("url", *(kind for kind in SourceKind if kind != "url")), required=True),
        "connector": settable(CONNECTOR),
        "config": settable(CONFIG, patch={"description": "Replaces the settings as a whole."}),
        "schedule": settable(
            SCHEDULE,
            patch={"description": "Replaces the schedule as a whole."},
            answered=record(
                None, dict(SCHEDULE["properties"]), optional=("interval_minutes", "stock_interval_minutes")
            ),
        ),
        "status": changeable(enum(*SourceStatus), enum("active", "paused")),
        "status_reason": optional(
            STATUS_REASON | {"description": "Present while there is something to say about the status."}
        ),
        "licence_basis": settable(LICENCE_BASIS),
        "first_party": fixed(
            boolean(False, "Defaults to true for vendors, to false for retailers."),
            answered=boolean(False, "The source is the brand's own."),
        ),
        "has_credentials": boolean(False, "Credentials themselves are never returned."),
        "freshness": computed(
            record(None, {"catalogue": nullable(FRESHNESS), "stock": nullable(FRESHNESS)}), _freshness
        ),
        "inbound_address": optional(
            text("k3m9x2q7w5t8a4b6c2d9@in.joinery.example", longest=320, description="Present with config.inbound.")
        ),
        "version": integer(3, least=1, description="What If-Match compares."),
        "created_at": timestamp(),
        "updated_at": timestamp(),
    },
    path="/v1/sources/{id}",
    etag_source=_without_ages,
)
CREDENTIALS: Final = Body(
    strict_object(
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
    ),
    lambda body: body["credentials"],
)
SOURCE_TEST: Final = Resource[SourceTest](
    "source_test",
    {
        "ok": boolean(),
        "status": optional(integer(200, description="The HTTP status that the source answered.")),
        "served_by": nullable(text("admin_graphql", description="Null for a connector with one API.")),
        "final_url": optional(url()),
        "content_type": optional(text("text/csv")),
        "bytes_read": integer(48213, least=0),
        "sample": computed(
            array(
                map_of({}, {"SKU": "LM-1001", "Title": "Oak dining table"}),
                most=RECORDS,
                description="The first records, as the feed names its columns.",
            ),
            lambda test, _: [_cell(entry) for entry in test.sample],
        ),
        "mapping": optional(
            computed(
                record(
                    None,
                    {
                        "columns": array(
                            named(
                                "tested_column",
                                record(None, {"column": text("SKU"), "field": text("sku"), "tier": enum(*MappingTier)}),
                            )
                        ),
                        "unmapped": array(
                            named(
                                "tested_unmapped_column",
                                record(None, {"column": text("Memo"), "reason": enum(*UnmappedReason)}),
                            )
                        ),
                        "missing": array(text("sku"), description="What a run cannot do without."),
                    },
                    description="What the first table's columns mean; not of pushed records.",
                ),
                lambda test, _: test.mapping,
            )
        ),
        "problems": array(PROBLEM, description="What could not be read of the first fifty rows, up to a hundred."),
        "duration_ms": integer(412, least=0),
        "failure": optional(failure("fetch_failed", "The server answered 503.", "Present when ok is false.")),
    },
)


def _cell(value: Any) -> Any:
    """A cell small enough to show; exact decimals become numbers."""
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_CELL else value[: _LONGEST_CELL - 1] + "…"
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {str(name): _cell(part) for name, part in value.items()}
    return [_cell(part) for part in value] if isinstance(value, list) else value
