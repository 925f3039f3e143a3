"""JSON of sources and of the bodies that create and change them (docs/conventions.md#source)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from adapters.wire.resource import Body, Resource
from adapters.wire.runs import PROBLEM
from domain.ingestion.model import MappingTier, UnmappedReason
from domain.kernel.resource import View, computed, optional
from domain.kernel.schema import (
    array,
    boolean,
    enum,
    failure,
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
from domain.sources.model import Source, freshness
from domain.sources.testing import RECORDS, SourceTest

_MAX_CELL_LENGTH = 500
FRESHNESS = record(
    None,
    {
        "observed_at": timestamp(),
        "age_seconds": integer(1260, least=0),
        "state": enum("fresh", "late", "stale"),
    },
)


def _freshness(source: Source, view: View) -> Mapping[str, Any]:
    """Return the freshness of each stream; None before its first successful run."""
    return {
        "catalogue": freshness(source.catalogue_at, source.expected_minutes("catalogue"), view.now),
        "stock": freshness(source.stock_at, source.expected_minutes("stock"), view.now),
    }


def _without_ages(source: dict[str, Any]) -> dict[str, Any]:
    """Return the source with the ages of its streams set to 0, since they change with time only."""
    streams = source["freshness"].items()
    return source | {"freshness": {name: stream and {**stream, "age_seconds": 0} for name, stream in streams}}


SOURCE = Resource.of(
    Source,
    "source",
    {"freshness": computed(record(None, {"catalogue": nullable(FRESHNESS), "stock": nullable(FRESHNESS)}), _freshness)},
    path="/v1/sources/{id}",
    etag_source=_without_ages,
)
CREDENTIALS = Body(
    strict_object(
        {
            "credentials": {
                "type": "object",
                "description": "Credentials in the form that the connector requires; encrypted at rest and never returned.",
                "minProperties": 1,
                "maxProperties": 50,
                "examples": [{"token": "shpat_example"}],
            }
        },
        ("credentials",),
    ),
    lambda body: body["credentials"],
)
SOURCE_TEST = Resource[SourceTest](
    "source_test",
    {
        "ok": boolean(),
        "status": optional(integer(200, description="The HTTP status of the source's response.")),
        "served_by": nullable(text("admin_graphql", description="Null for a connector with one API.")),
        "final_url": optional(url()),
        "content_type": optional(text("text/csv")),
        "bytes_read": integer(48213, least=0),
        "sample": computed(
            array(
                map_of({}, {"SKU": "LM-1001", "Title": "Oak dining table"}),
                most=RECORDS,
                description="The first records, by the feed's column names.",
            ),
            lambda test, _: [_shorten(entry) for entry in test.sample],
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
                        "missing": array(text("sku"), description="Required fields that no column is mapped to."),
                    },
                    description="The column mapping of the first table; omitted for pushed records.",
                ),
                lambda test, _: test.mapping,
            )
        ),
        "problems": array(PROBLEM, description="Cells of the first 50 rows that could not be read, at most 100."),
        "duration_ms": integer(412, least=0),
        "failure": optional(failure("fetch_failed", "The server answered 503.", "Present if ok is false.")),
    },
)


def _shorten(value: Any) -> Any:
    """Return a value with shortened strings and with decimals as JSON numbers."""
    if isinstance(value, str):
        return value if len(value) <= _MAX_CELL_LENGTH else value[: _MAX_CELL_LENGTH - 1] + "…"
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {str(name): _shorten(part) for name, part in value.items()}
    return [_shorten(part) for part in value] if isinstance(value, list) else value
