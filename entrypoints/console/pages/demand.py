"""Page of demand, for vendors: totals, daily numbers, products and searches without results."""

from domain.demand.model import PERIODS, SignalType
from domain.orgs.model import VENDOR
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.translation import N_
from entrypoints.http.exchange import Response

_PAGE_SIZE = 20

pages = Pages("/console/demand", section="Catalogue", scope="analytics:read", organisation_kind=VENDOR)


@pages.register_get(title=N_("Demand"))
async def show_demand(page: PageContext) -> Response:
    """Show the demand for the vendor's products in a period."""
    period = page.query.get("period")
    filters = {"period": period if period in PERIODS else "30d"}
    stats = await page.api.get("/v1/vendor/stats", **filters)
    days_by_type = {}
    for kind in SignalType:
        if stats["totals"][kind]:
            series = await page.api.get("/v1/vendor/stats/series", metric=kind, **filters)
            days_by_type[kind.value] = [(point["at"], point.get("value")) for point in series["points"]]
    products = await page.get_filtered_page("/v1/vendor/stats/products", _PAGE_SIZE, filters)
    return page.render(
        "demand/show.html", stats=stats, days_by_type=days_by_type, products=products, filters=filters, periods=PERIODS
    )
