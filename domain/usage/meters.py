"""Meters (quantities that a plan limits) and thresholds of quotas."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

RECORDS = "records"
"""Meter of items (products with variants and offers, or stock items) that runs created or changed."""
DELIVERIES = "deliveries"
"""Meter of webhook deliveries that succeeded."""
EXPORT_ROWS = "export_rows"
"""Meter of rows in exports of products."""
AI_TOKENS = "ai_tokens"
"""Meter of tokens that language models read and wrote."""
SOURCES = "sources"
"""Meter of the current number of sources."""
STORED_BYTES = "stored_bytes"
"""Meter of the current number of stored bytes."""

MONTHLY = (RECORDS, DELIVERIES, EXPORT_ROWS, AI_TOKENS)
"""Meters that count, starting at zero each month (UTC)."""
GAUGES = (SOURCES, STORED_BYTES)
"""Gauges: meters that measure a current amount, which can also decrease."""
METERS = (*MONTHLY, *GAUGES)
THRESHOLDS = (80, 100)
"""Percentages of a quota that are reported once a month when they are reached."""


@dataclass(frozen=True, slots=True)
class DayUsage:
    """Amount of a meter on a day (UTC); for a gauge (a meter in GAUGES), the last amount on that day."""

    meter: str
    day: date
    amount: int


@dataclass(frozen=True, slots=True)
class Threshold:
    """Percentage of a meter's quota that was reached in a month.

    Attributes:
        month: First day of the month.
        included: The quota at that time.
    """

    meter: str
    month: date
    percent: int
    included: int
    reached_at: datetime


def find_month_start(day: date) -> date:
    """Return the first day of the month that contains the day."""
    return date(day.year, day.month, 1)


def find_next_month(month: date) -> date:
    """Return the first day of the month after the month that begins on `month`."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def find_reached_thresholds(used: Mapping[str, int], included: Mapping[str, int | None]) -> list[tuple[str, int]]:
    """Return the thresholds that are reached, as meter and percentage.

    Args:
        used: Amount by meter.
        included: Quota by meter; None if the meter is not limited.
    """
    return [
        (meter, percent)
        for meter, amount in used.items()
        for percent in THRESHOLDS
        if (most := included.get(meter)) is not None and amount and amount * 100 >= most * percent
    ]
