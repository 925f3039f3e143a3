"""Use cases that read a vendor's statistics."""

from domain.demand.model import SignalType
from domain.demand.ports import VendorStatsStore
from domain.demand.statistics import ProductAmounts, VendorSeries, VendorStats, build_series, find_period
from domain.kernel.paging import Page, PageRequest
from ports.unit_of_work import Tx

MAX_TOP_QUERIES = 20
"""Maximum number of queries in the statistics."""


class VendorStatsService:
    """Statistics of a vendor over all organisations, as sums of released cells."""

    async def get_stats(self, tx: Tx, period: str) -> VendorStats:
        """Return the totals of the period."""
        store, days = tx[VendorStatsStore], find_period(period, tx.now)
        amounts = await store.sum_by_type(*days)
        totals = {kind.value: 0 for kind in SignalType} | {one.type: one.amount for one in amounts}
        return VendorStats(
            period,
            max((one.organisations for one in amounts), default=0),
            any(one.suppressed for one in amounts),
            totals,
            await store.list_top_queries(MAX_TOP_QUERIES, *days),
        )

    async def page_products(self, tx: Tx, period: str, page_request: PageRequest) -> Page[ProductAmounts]:
        """Return the totals of each product of which cells were released."""
        return await tx[VendorStatsStore].page_products(page_request, *find_period(period, tx.now))

    async def get_series(self, tx: Tx, metric: str, period: str, interval: str) -> VendorSeries:
        """Return the sums of one type of signals by `interval`, which is `day` or `week`."""
        kind, (since, until) = SignalType(metric), find_period(period, tx.now)
        amounts = await tx[VendorStatsStore].sum_by_day(kind, since, until)
        return build_series(kind, since, until, amounts, weekly=interval == "week")
