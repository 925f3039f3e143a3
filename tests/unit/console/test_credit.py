"""Forecast and plot of prepaid credit."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.credits.model import CreditDay
from entrypoints.console.charts import build_chart
from entrypoints.console.pages.credit import count_averaged_days, forecast_end

NOW = datetime(2026, 11, 20, 13, 8, tzinfo=UTC)


def _build_days(*changes: tuple[int, int], opening: int = 0) -> list[CreditDay]:
    """Return days with entries from pairs of the number of days ago and the change."""
    days, balance = [], opening
    for ago, change in changes:
        balance += change
        days.append(CreditDay(NOW.date() - timedelta(days=ago), balance, change, max(0, -change)))
    return days


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        (_build_days(), 14),
        (_build_days((0, 10)), 1),
        (_build_days((3, 10), (1, -2)), 4),
        (_build_days((20, 10), (1, -2)), 14),
        (_build_days((1, -2), opening=10), 14),
    ],
    ids=["no entries", "credit since today", "credit for four days", "credit for weeks", "credit before the days"],
)
def test_the_averaged_days_begin_with_the_first_credit(days: list[CreditDay], expected: int) -> None:
    assert count_averaged_days(days, NOW) == expected


def test_use_before_the_averaged_days_does_not_count() -> None:
    days = _build_days((20, -6), (3, -2), opening=10)
    balance = {"available_micros": 2, "lots": [{"expires_at": "2027-11-20T00:00:00Z"}]}
    assert forecast_end(balance, days, 14, NOW) == NOW + timedelta(days=14)
    assert forecast_end(balance, days[:1], 14, NOW) is None
    assert forecast_end(balance | {"lots": [{"expires_at": "2026-11-21T00:00:00Z"}]}, days, 14, NOW) == datetime(
        2026, 11, 21, tzinfo=UTC
    )


def test_the_axis_of_a_constant_balance_begins_at_zero() -> None:
    start = NOW - timedelta(days=30)
    chart = build_chart({"Balance": [(start, 20.0)]}, start, NOW, includes_zero=True)
    assert chart is not None
    assert [label for _, label in chart["rows"]] == [0, 5, 10, 15, 20]
