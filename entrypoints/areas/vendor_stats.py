"""Statistics for vendors: GET /v1/vendor/stats, /v1/vendor/stats/products and /v1/vendor/stats/series."""

from adapters.api_json import demand as wire
from domain.demand.usecases.statistics import VendorStatsService
from domain.orgs.model import VENDOR
from entrypoints.operations.operation import Area, Read, ReadContext, Reply


async def read_stats(context: ReadContext[VendorStatsService]) -> Reply:
    """Return the totals of a period."""
    stats = await context.service.get_stats(context.tx, context.query.get("period", "30d"))
    return context.build_resource_reply(wire.STATS, stats)


async def list_products(context: ReadContext[VendorStatsService]) -> Reply:
    """Return a page of the totals by product."""
    period = context.query.get("period", "30d")
    page = await context.service.page_products(context.tx, period, context.page_request)
    return context.build_list_reply(wire.PRODUCT_STATS, page)


async def read_series(context: ReadContext[VendorStatsService]) -> Reply:
    """Return the sums of one type of signals by day or week."""
    query = context.query
    series = await context.service.get_series(
        context.tx, query.get("metric", "view"), query.get("period", "30d"), query.get("interval", "day")
    )
    return context.build_resource_reply(wire.SERIES, series)


AREA = Area(
    "vendor_stats",
    "Vendor statistics",
    "Demand for a vendor's products over all organisations. At least five organisations are behind every number.",
    create_service=VendorStatsService,
    operations=(
        Read(
            id="vendor_stats.read",
            path="/v1/vendor/stats",
            summary="Read demand statistics",
            description="Returns the number of signals about your products by type, and the most frequent searches without results. For vendors.",
            handler=read_stats,
            scope="analytics:read",
            organisation_kind=VENDOR,
            reply=wire.STATS.schema,
            query={"period": wire.PERIOD_PARAMETER},
        ),
        Read(
            id="vendor_stats.list_products",
            path="/v1/vendor/stats/products",
            summary="List demand statistics by product",
            description="Returns the totals of each product for which at least five organisations sent signals on a day, newest product first. "
            "For vendors.",
            handler=list_products,
            scope="analytics:read",
            organisation_kind=VENDOR,
            reply=wire.PRODUCT_STATS.list_schema,
            paging="forward",
            query={"period": wire.PERIOD_PARAMETER},
            no_dataset_reason="The numbers are sums over other organisations' signals.",
        ),
        Read(
            id="vendor_stats.read_series",
            path="/v1/vendor/stats/series",
            summary="Read demand statistics by day or week",
            description="Returns the number of signals of one type by day or week. A point without `value` has signals of fewer than five "
            "organisations, or none. For vendors.",
            handler=read_series,
            scope="analytics:read",
            organisation_kind=VENDOR,
            reply=wire.SERIES.schema,
            query={"metric": wire.METRIC, "period": wire.PERIOD_PARAMETER, "interval": wire.INTERVAL},
        ),
    ),
)
