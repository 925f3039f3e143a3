"""JSON of sources and of the bodies that create and change them (docs/conventions.md#source)."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from adapters.api_json.resource import Body, JsonResource
from adapters.api_json.runs import PROBLEM
from domain.ingestion.model import MappingTier, UnmappedReason
from domain.kernel.resource import RenderContext, computed, optional
from domain.kernel.schema import (
    array,
    boolean,
    enum,
    failure,
    integer,
    map_schema,
    nullable,
    response_object,
    strict_object,
    text,
    timestamp,
    url,
    with_title,
)
from domain.sources.model import Source
from domain.sources.source_test import MAX_PROBLEMS, MAX_RECORDS, SourceTest

_MAX_CELL_LENGTH = 500
FRESHNESS = response_object(
    None,
    {
        "observed_at": timestamp(),
        "age_seconds": integer(1260, minimum=0),
        "state": enum("fresh", "late", "stale"),
    },
)


def _render_freshness(source: Source, view: RenderContext) -> Mapping[str, Any]:
    """Return the freshness of each stream by name; None for a stream that no run has imported successfully."""
    return {stream: source.compute_freshness(stream, view.now) for stream in ("catalogue", "stock")}


def _reset_ages(source: dict[str, Any]) -> dict[str, Any]:
    """Return the source with all ages set to 0 for the ETag, because ages change even if the source does not."""
    streams = source["freshness"].items()
    return source | {"freshness": {name: stream and {**stream, "age_seconds": 0} for name, stream in streams}}


SOURCE = JsonResource.from_dataclass(
    Source,
    "source",
    {
        "freshness": computed(
            response_object(None, {"catalogue": nullable(FRESHNESS), "stock": nullable(FRESHNESS)}), _render_freshness
        ),
        "next_run_at": optional(
            computed(
                timestamp() | {"description": "When the next scheduled pull of the catalogue is due."},
                lambda source, _: source.next_pull,
            )
        ),
        "next_stock_run_at": optional(
            computed(
                timestamp() | {"description": "When the next scheduled pull of stock is due."},
                lambda source, _: source.next_stock_pull,
            )
        ),
    },
    path="/v1/sources/{id}",
    etag_source=_reset_ages,
)
CREDENTIALS = Body(
    strict_object(
        {
            "credentials": {
                "type": "object",
                "description": "Credentials that conform to the connector's credentials schema; encrypted at rest and never returned.",
                "minProperties": 1,
                "maxProperties": 50,
                "examples": [{"token": "shpat_example"}],
            }
        },
        ("credentials",),
    ),
    lambda body: body["credentials"],
)
SOURCE_TEST = JsonResource[SourceTest](
    "source_test",
    {
        "ok": boolean(),
        "status": optional(integer(200, description="The HTTP status of the source's response.")),
        "served_by": nullable(
            text(
                "admin_graphql",
                description="Name of the source's API that returned the data; null if the connector uses only one API.",
            )
        ),
        "final_url": optional(url()),
        "content_type": optional(text("text/csv")),
        "bytes_read": integer(48213, minimum=0),
        "sample": computed(
            array(
                map_schema({}, {"SKU": "LM-1001", "Title": "Oak dining table"}),
                max_items=MAX_RECORDS,
                description="The first records. Their keys are the feed's column names.",
            ),
            lambda test, _: [_render_sample_value(entry) for entry in test.sample],
        ),
        "mapping": optional(
            computed(
                response_object(
                    None,
                    {
                        "columns": array(
                            with_title(
                                "tested_column",
                                response_object(
                                    None, {"column": text("SKU"), "field": text("sku"), "tier": enum(*MappingTier)}
                                ),
                            )
                        ),
                        "unmapped": array(
                            with_title(
                                "tested_unmapped_column",
                                response_object(None, {"column": text("Memo"), "reason": enum(*UnmappedReason)}),
                            )
                        ),
                        "missing": array(text("sku"), description="Required fields that no column is mapped to."),
                    },
                    description="The column mapping of the first table; omitted for pushed records.",
                ),
                lambda test, _: test.mapping,
            )
        ),
        "problems": array(
            PROBLEM,
            description=f"The first {MAX_PROBLEMS} problems in the first 50 rows or records; further problems are omitted.",
        ),
        "duration_ms": integer(412, minimum=0),
        "failure": optional(failure("fetch_failed", "The server returned 503.", "Present if ok is false.")),
    },
)


def _render_sample_value(value: Any) -> Any:
    """Return the value with strings of at most _MAX_CELL_LENGTH characters and decimals as JSON numbers."""
    if isinstance(value, str):
        return value if len(value) <= _MAX_CELL_LENGTH else value[: _MAX_CELL_LENGTH - 1] + "…"
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return {str(name): _render_sample_value(part) for name, part in value.items()}
    return [_render_sample_value(part) for part in value] if isinstance(value, list) else value
