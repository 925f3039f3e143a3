"""Billing periods and amounts."""

import calendar
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction

DAY = 86_400
HOUR = 3_600
_FIXED = {"day": DAY, "week": 7 * DAY}


def add_intervals(anchor: int, interval: str, count: int) -> int:
    """Return the time `count` intervals after the anchor; a missing day becomes the last of the month."""
    if interval in _FIXED:
        return anchor + count * _FIXED[interval]
    start = datetime.fromtimestamp(anchor, UTC)
    months = start.month - 1 + count * (12 if interval == "year" else 1)
    year, month = start.year + months // 12, months % 12 + 1
    day = min(start.day, calendar.monthrange(year, month)[1])
    return int(start.replace(year=year, month=month, day=day).timestamp())


def find_period(anchor: int, interval: str, length: int, at: int) -> tuple[int, int]:
    """Return the start and the end of the period with the time; the boundaries depend on the anchor only."""
    count = 0
    while add_intervals(anchor, interval, (count + 1) * length) <= at:
        count += 1
    while add_intervals(anchor, interval, count * length) > at:
        count -= 1
    return add_intervals(anchor, interval, count * length), add_intervals(anchor, interval, (count + 1) * length)


def round_amount(amount: Fraction | Decimal) -> int:
    """Return the nearest integer; halves away from zero."""
    value = Fraction(amount)
    return int((Decimal(value.numerator) / Decimal(value.denominator)).quantize(Decimal(1), ROUND_HALF_UP))


def prorate(amount: int, start: int, end: int, at: int) -> int:
    """Return the share of an amount for the time from `at` to the end of its period, to the second."""
    return round_amount(Fraction(amount * (end - at), end - start))
