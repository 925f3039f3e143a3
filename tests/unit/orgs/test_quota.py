"""Retry delay of a refusal by quota."""

from datetime import UTC, datetime

import pytest

from domain.orgs.quota import build_quota_error, count_seconds_to_next_month


@pytest.mark.parametrize(
    ("now", "seconds"),
    [
        (datetime(2026, 11, 20, 13, 8, tzinfo=UTC), 10 * 86400 + 10 * 3600 + 52 * 60),
        (datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC), 1),
        (datetime(2026, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), 1),
        (datetime(2026, 12, 31, 23, 59, 58, 1_000, tzinfo=UTC), 2),
        (datetime(2027, 1, 1, tzinfo=UTC), 31 * 86400),
        (datetime(2028, 2, 1, tzinfo=UTC), 29 * 86400),
    ],
)
def test_seconds_to_the_next_month_are_counted(now: datetime, seconds: int) -> None:
    assert count_seconds_to_next_month(now) == seconds


def test_the_refusal_names_its_meter() -> None:
    refusal = build_quota_error("sources", "No more.", datetime(2027, 1, 31, 23, 0, tzinfo=UTC))
    assert (refusal.code, refusal.retry_after, refusal.extra) == ("quota_exceeded", 3600, {"meter": "sources"})
