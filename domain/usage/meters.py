"""Meters of a plan: monthly amounts, levels and thresholds."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

RECORDS = "records"
"""Items (a product with its variants and offers, or its stock) that runs created or changed."""
DELIVERIES = "deliveries"
"""Webhook deliveries that succeeded."""
EXPORT_ROWS = "export_rows"
"""Lines of exports of products."""
AI_TOKENS = "ai_tokens"
"""Tokens that models read and wrote."""
SOURCES = "sources"
STORED_BYTES = "stored_bytes"

MONTHLY = (RECORDS, DELIVERIES, EXPORT_ROWS, AI_TOKENS)
"""Meters that start at zero each month (UTC)."""
LEVELS = (SOURCES, STORED_BYTES)
"""Meters of present amounts."""
METERS = (*MONTHLY, *LEVELS)
THRESHOLDS = (80, 100)
"""Percentages of the included amount that are reported, once a month each."""


@dataclass(frozen=True, slots=True)
class DayUsage:
    """Usage of a meter on a day (UTC); of a level, the amount at its end, or now."""

    meter: str
    day: date
    amount: int


@dataclass(frozen=True, slots=True)
class Threshold:
    """A percentage of a meter that was reached in a month; `month` is its first day."""

    meter: str
    month: date
    percent: int
    included: int
    reached_at: datetime


def month_of(day: date) -> date:
    """Return the first day of the day's month."""
    return date(day.year, day.month, 1)


def next_month(month: date) -> date:
    """Return the first day of the next month."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def reached(used: Mapping[str, int], included: Mapping[str, int | None]) -> list[tuple[str, int]]:
    """Return the meters and percentages that are reached; unlimited and unused meters have none."""
    return [
        (meter, percent)
        for meter, amount in used.items()
        for percent in THRESHOLDS
        if (most := included.get(meter)) is not None and amount and amount * 100 >= most * percent
    ]
