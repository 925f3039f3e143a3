"""JSON of demand: signals, their receipt, and statistics for vendors (docs/demand.md)."""

from collections.abc import Mapping
from typing import Any, Final

from adapters.api_json.resource import Body, JsonResource
from domain.demand.model import MAX_SIGNALS, PERIODS, PRODUCT_SIGNAL_TYPES, DemandReceipt, DemandSignal, SignalType
from domain.demand.statistics import ProductAmounts, VendorSeries, VendorStats
from domain.kernel.resource import computed, optional
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    enum,
    id_schema,
    integer,
    parse_time,
    response_object,
    strict_object,
    text,
    timestamp,
    with_title,
)

SIGNAL: Final = with_title(
    "demand_signal",
    strict_object(
        {
            "id": text(
                "sess-81-view-3",
                max_length=100,
                description="Your ID of the signal. A signal with an ID that you sent in the last 24 hours is not counted again.",
            ),
            "type": enum(*SignalType),
            "product": id_schema("prod", "The product; required unless your own catalogue has the variant."),
            "variant": id_schema("var"),
            "query": text(
                "oak sideboard",
                max_length=500,
                description="The text that was searched without results, 2 to 100 characters; only of `search_miss`.",
            ),
            "quantity": integer(
                1, minimum=1, maximum=1_000_000, description="Number of items; not part of the statistics."
            ),
            "region": text("US-CA", max_length=6, description="Region of the customer; not part of the statistics.")
            | {
                "pattern": "^[A-Z]{2}(-[A-Z0-9]{1,3})?$",
                "x-words": "a code of ISO 3166-1 or 3166-2, such as US or US-CA",
            },
            "occurred_at": timestamp("When it happened, within the last seven days."),
        },
        ("type", "occurred_at"),
    ),
)
_EXAMPLE = {"id": "q-81", "type": "search_miss", "query": "oak sideboard", "occurred_at": "2026-11-20T13:08:00.123Z"}


def _build_signals_body(items: Schema) -> Schema:
    """Return the schema of the body, whose signals have the schema `items`."""
    return with_title(
        "demand_signals",
        strict_object({"signals": array(items, max_items=MAX_SIGNALS, min_items=1)}, ("signals",)),
    )


SIGNALS_BODY: Final = Body[list[Any]](
    _build_signals_body(SIGNAL | {"examples": [_EXAMPLE]}),
    lambda value: list(value["signals"]),
    accepted_schema=_build_signals_body({}),
)
"""Body with signals, which are validated one by one, so that an invalid one is rejected alone."""
RECEIPT: Final = JsonResource[DemandReceipt](
    "demand_receipt",
    {
        "accepted": integer(998, minimum=0, description="Number of accepted signals."),
        "duplicates": integer(1, minimum=0, description="Number of signals whose ID was sent before."),
        "rejected": computed(
            array(
                response_object(
                    None,
                    {
                        "index": integer(17, minimum=0, description="Position in `signals`, from 0."),
                        "code": text("not_found"),
                        "detail": text("product: This product does not exist, or you cannot see it. Check the ID."),
                    },
                )
            ),
            lambda receipt, _: [
                {"index": one.index, "code": one.code, "detail": one.detail} for one in receipt.rejected
            ],
        ),
    },
)

PERIOD: Final = with_title("stats_period", enum(*PERIODS)) | {
    "description": "The days (UTC) until the last day whose signals are complete: 13 hours after its end."
}
PERIOD_PARAMETER: Final = PERIOD | {"default": "30d"}
METRIC: Final = enum(*SignalType) | {"default": "view", "description": "The type of the signals."}
INTERVAL: Final = with_title("stats_interval", enum("day", "week")) | {
    "default": "day",
    "description": "A point for each day, or for each week from Monday.",
}
_COUNT = integer(1250, minimum=0)


def _build_totals(names: tuple[SignalType, ...]) -> Schema:
    return response_object(
        None, dict.fromkeys(names, _COUNT), description="Number of signals by type, of at least five organisations."
    )


STATS: Final = JsonResource[VendorStats](
    "vendor_stats",
    {
        "period": PERIOD,
        "organisations": integer(
            10,
            minimum=0,
            description="At least so many organisations are behind the largest number of a day, in steps of five.",
        ),
        "suppressed": boolean(
            True, "Whether signals were left out of `totals`, because fewer than five organisations sent them."
        ),
        "totals": _build_totals(tuple(SignalType)),
        "top_queries": computed(
            array(
                response_object(None, {"query": text("oak sideboard"), "count": _COUNT}),
                description="Most frequent searches without results, of all retailers.",
            ),
            lambda stats, _: [{"query": one.query, "count": one.count} for one in stats.top_queries],
        ),
    },
)
PRODUCT_STATS: Final = JsonResource[ProductAmounts](
    "vendor_product_stats",
    {
        "product": id_schema("prod"),
        "title": optional(text("Oak sideboard Alva")),
        "totals": computed(
            _build_totals(PRODUCT_SIGNAL_TYPES),
            lambda row, _: {kind.value: getattr(row, kind) for kind in PRODUCT_SIGNAL_TYPES},
        ),
    },
)
POINT: Final = JsonResource[Any](
    None,
    {
        "at": computed(
            {"type": "string", "format": "date", "examples": ["2026-11-20"]}, lambda point, _: point.at.isoformat()
        ),
        "value": optional(_COUNT | {"description": "Omitted if fewer than five organisations sent signals, or none."}),
    },
)
SERIES: Final = JsonResource[VendorSeries](
    "vendor_stats_series",
    {
        "metric": enum(*SignalType),
        "points": computed(
            array(POINT.schema, description="The days or weeks of the period, oldest first."),
            lambda series, view: [POINT.render(point, view) for point in series.points],
        ),
    },
)


def build_signal(index: int, value: Mapping[str, Any]) -> DemandSignal:
    """Return the signal at the position `index`, whose JSON conforms to SIGNAL."""
    names = ("id", "product", "variant", "query")
    parts = {name: value.get(name) for name in names}
    return DemandSignal(index, SignalType(value["type"]), parse_time(value["occurred_at"]), **parts)
