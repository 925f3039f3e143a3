"""Ports of demand: a retailer's counts, a vendor's cells, and the release of cells across organisations."""

from collections.abc import Collection, Mapping, Sequence
from datetime import date, datetime
from typing import Protocol

from domain.demand.cells import Cell, CellSummary
from domain.demand.model import DemandDay, SignalCount, SignalType
from domain.demand.statistics import DayAmount, ProductAmounts, QueryAmount, TypeAmount
from domain.kernel.paging import Page, PageRequest


class DemandStore(Protocol):
    """Counts of an organisation's signals."""

    async def find_own_products(self, product_ids: Collection[str]) -> Collection[str]:
        """Return those of the products that are in the organisation's own catalogue."""
        ...

    async def find_own_variants(self, variant_ids: Collection[str]) -> Collection[str]:
        """Return those of the variants that are in the organisation's own catalogue."""
        ...

    async def find_publishers(self, product_ids: Collection[str]) -> Mapping[str, str | None]:
        """Map each published product to the organisation that published it, or to None if that is this organisation."""
        ...

    async def add_signal_ids(self, signal_ids: Collection[str]) -> Collection[str]:
        """Store IDs of signals for 24 hours, and return those that were not stored before."""
        ...

    async def add_counts(self, counts: Sequence[SignalCount]) -> None:
        """Add the counts to those of the same hour, vendor, subject and type."""
        ...


class VendorStatsStore(Protocol):
    """Released cells of a vendor, and those of search misses, which are the same for all vendors."""

    async def add_cells(self, day: date, cells: Sequence[Cell]) -> None:
        """Store the cells of a day, unless the day has cells already or the vendor was deleted."""
        ...

    async def sum_by_type(self, since: date, until: date) -> Sequence[TypeAmount]:
        """Return the sums of the cells from `since` to `until` (both included) by type of signals."""
        ...

    async def sum_by_day(self, kind: SignalType, since: date, until: date) -> Sequence[DayAmount]:
        """Return the sum of each day with released cells, oldest first."""
        ...

    async def page_products(self, page_request: PageRequest, since: date, until: date) -> Page[ProductAmounts]:
        """Return the sums of each product with released cells, newest product first."""
        ...

    async def list_top_queries(self, limit: int, since: date, until: date) -> Sequence[QueryAmount]:
        """Return the most frequent queries of released search misses."""
        ...


class DemandUpkeep(Protocol):
    """Signals of all organisations, for the scheduler. All methods raise Unavailable."""

    async def list_days(self, before: date) -> Sequence[DemandDay]:
        """Return the days before `before` for which signals are stored, oldest first."""
        ...

    async def summarise_subjects(self, day: DemandDay, kind: SignalType) -> Mapping[str, CellSummary]:
        """Return the contributions of organisations other than the vendor to each subject with enough of them for a cell."""
        ...

    async def summarise_rest(self, day: DemandDay, kind: SignalType, released: Collection[str]) -> CellSummary:
        """Return the contributions of organisations other than the vendor to all subjects that are not in `released`."""
        ...

    async def add_query_cells(self, livemode: bool, day: date, cells: Sequence[Cell]) -> None:
        """Store the cells of search misses of a day, unless the day has cells already."""
        ...

    async def remove_signals(self, day: DemandDay) -> None:
        """Delete the counts of signals of a day."""
        ...

    async def delete_expired(self, now: datetime) -> None:
        """Delete IDs of signals, and cells, whose retention has ended."""
        ...
