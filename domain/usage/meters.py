"""The meters of a plan: what is counted a month, what is there at once, and when their shares are told."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime

RECORDS = "records"
"""Items (a product with its variants and offers, or its stock) that runs made or changed."""
DELIVERIES = "deliveries"
"""Webhook deliveries that succeeded."""
EXPORT_ROWS = "export_rows"
"""Lines of exports of products."""
AI_TOKENS = "ai_tokens"
"""Tokens that models read and wrote."""
SOURCES = "sources"
STORED_BYTES = "stored_bytes"

MONTHLY = (RECORDS, DELIVERIES, EXPORT_ROWS, AI_TOKENS)
"""Counted as they are used; the month (UTC) begins at nothing."""
LEVELS = (SOURCES, STORED_BYTES)
"""How much there is at once."""
METERS = (*MONTHLY, *LEVELS)
THRESHOLDS = (80, 100)
"""Per cent of what a plan includes that are told, once a month each."""


@dataclass(frozen=True, slots=True)
class DayUsage:
    """How much of a meter was used on a day (UTC); of a level, how much there was at its end, or is now."""

    meter: str
    day: date
    amount: int


@dataclass(frozen=True, slots=True)
class Threshold:
    """A share of a meter that was reached in a month; `month` is its first day."""

    meter: str
    month: date
    percent: int
    included: int
    reached_at: datetime


def month_of(day: date) -> date:
    """Return the first day of the month."""
    return date(day.year, day.month, 1)


def next_month(month: date) -> date:
    """Return the first day of the next month."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def reached(used: Mapping[str, int], included: Mapping[str, int | None]) -> list[tuple[str, int]]:
    """Return the meters and percentages that are reached; unlimited and unused meters are left out."""
    return [
        (meter, percent)
        for meter, amount in used.items()
        for percent in THRESHOLDS
        if (most := included.get(meter)) is not None and amount and amount * 100 >= most * percent
    ]
