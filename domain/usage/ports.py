"""Ports of usage: entries that are added in the transactions that cause usage, and totals by day."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.usage.meters import DayUsage, Threshold


class UsageMeters(Protocol):
    """Storage of usage in a tenant's transaction.

    Concurrent calls of `reserve` for one meter wait for each other; `add_usage` does not wait for them.
    """

    async def add_usage(self, meter: str, amount: int, cause: str) -> None:
        """Add the amount to today's usage.

        Args:
            meter: The meter.
            amount: The amount.
            cause: ID of the cause, such as a run; if the cause has a reservation, the amount counts on the reservation's
                day.
        """
        ...

    async def reserve(self, meter: str, amount: int, cause: str, included: int) -> bool:
        """Reserve an amount of this month's quota; return False if the quota does not suffice.

        Args:
            meter: The meter.
            amount: The amount that the cause may use.
            cause: ID of the cause, such as a run.
            included: The quota of the meter in a month.
        """
        ...

    async def release(self, meter: str, cause: str) -> None:
        """Release the unused part of the reservation of the cause `cause`."""
        ...

    async def get_month_usage(self, month: date) -> Mapping[str, int]:
        """Return the usage in the month by meter; meters without usage may be omitted."""
        ...

    async def list_days(self, meters: Sequence[str], since: date, until: date) -> Sequence[DayUsage]:
        """Return the usage of these meters by day from `since` to `until` (both included), oldest first.

        Days without usage are omitted.
        """
        ...

    async def get_last_level(self, meter: str, before: date) -> DayUsage | None:
        """Return the last recorded amount of a gauge, such as the meter `sources`, before the day `before`, or None."""
        ...

    async def aggregate(self) -> None:
        """Move usage entries that no longer change from the entries to the totals of their days.

        These are all entries without a reservation, and entries whose reservation has expired.
        """
        ...

    async def record_level(self, meter: str, amount: int) -> None:
        """Record the current amount of a gauge, such as the meter `sources`, as today's amount."""
        ...

    async def list_thresholds(self, month: date) -> Sequence[Threshold]:
        """Return the thresholds that were reached in the month."""
        ...

    async def record_threshold(self, threshold: Threshold, *, suspends_deliveries: bool) -> bool:
        """Record that the threshold was reached; return False if this is recorded already.

        With `suspends_deliveries`, deliveries to webhook endpoints are suspended from now on.
        """
        ...

    async def resume_deliveries(self) -> None:
        """Record that deliveries to webhook endpoints are no longer suspended."""
        ...


class UsageUpkeep(Protocol):
    """Usage of all tenants, for the scheduler."""

    async def find_unaggregated(self, limit: int) -> Sequence[Tenant]:
        """Return up to `limit` tenants with usage entries that are not aggregated yet."""
        ...

    async def list_resumable(self, month: date) -> Sequence[Tenant]:
        """Return tenants whose deliveries are suspended although a new month has begun or the plan includes more."""
        ...
