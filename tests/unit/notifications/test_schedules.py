"""Times at which notifications are due, compared with a minute-by-minute search through the local clock."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.notifications.model import Frequency, NotificationKind, NotificationRule
from domain.notifications.schedules import compute_due_time, is_quiet

ZONES = (
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Africa/Casablanca",
    "Pacific/Apia",
)
CHANGES = [
    datetime(2026, 3, 29, 1, tzinfo=UTC),
    datetime(2026, 10, 25, 1, tzinfo=UTC),
    datetime(2026, 11, 1, 6, tzinfo=UTC),
    datetime(2026, 3, 8, 7, tzinfo=UTC),
    datetime(2026, 4, 4, 15, tzinfo=UTC),
    datetime(2011, 12, 30, 10, tzinfo=UTC),
]
"""Changes of clocks in these zones; the last one skipped a day."""
moments = st.one_of(
    st.datetimes(datetime(2026, 1, 1), datetime(2027, 12, 31)).map(lambda at: at.replace(tzinfo=UTC)),
    st.tuples(st.sampled_from(CHANGES), st.integers(-3000, 3000)).map(
        lambda pair: pair[0] + timedelta(minutes=pair[1], seconds=17)
    ),
)
minutes = st.integers(0, 1439)
MINUTE = timedelta(minutes=1)


def create_rule(**changes: Any) -> NotificationRule:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    fields = {"id": "ntr_1", "person": "usr_1", "name": "a", "kind": NotificationKind.PRICE_CHANGE}
    return NotificationRule(**{**fields, "checked_at": now, "created_at": now, "updated_at": now, **changes})  # type: ignore[arg-type]


def _is_in_window(at: datetime, zone: str, start: int, end: int) -> bool:
    """Return whether the minute that local clocks show is one of those from `start` to `end`."""
    shown = at.astimezone(ZoneInfo(zone))
    window = {(start + offset) % 1440 for offset in range((end - start) % 1440)}
    return shown.hour * 60 + shown.minute in window


@given(moments, st.sampled_from(ZONES), minutes, minutes)
def test_nothing_is_sent_in_quiet_hours_and_nothing_later_than_needed(
    now: datetime, zone: str, start: int, end: int
) -> None:
    rule = create_rule(frequency=Frequency.AT_ONCE, time_zone=zone, quiet_from=start, quiet_until=end)
    due = compute_due_time(rule, now)
    assert due >= now and not _is_in_window(due, zone, start, end)
    at = now
    while at < due:
        assert _is_in_window(at, zone, start, end)
        at += MINUTE * 7
    if due > now:
        assert _is_in_window(due - MINUTE, zone, start, end) or due - MINUTE < now


@given(moments, st.sampled_from(ZONES), minutes)
def test_a_daily_digest_is_sent_once_a_local_day(now: datetime, zone: str, send_at: int) -> None:
    rule = create_rule(frequency=Frequency.DAILY, time_zone=zone, send_at=send_at)
    days, at = [], now
    for _ in range(6):
        due = compute_due_time(rule, at)
        assert at < due <= at + timedelta(hours=50)
        shown = due.astimezone(ZoneInfo(zone))
        assert (
            abs(shown.hour * 60 + shown.minute - send_at) in (0, 30, 60)
            or shown.date().year == 2012
            or zone == "Pacific/Apia"
        )
        days.append(shown.date())
        at = due
    assert len(set(days)) == len(days)


@given(moments, st.sampled_from(ZONES), minutes, st.integers(0, 6))
def test_a_weekly_digest_is_sent_on_its_day(now: datetime, zone: str, send_at: int, weekday: int) -> None:
    rule = create_rule(frequency=Frequency.WEEKLY, time_zone=zone, send_at=send_at, weekday=weekday)
    due = compute_due_time(rule, now)
    assert now < due <= now + timedelta(days=8)
    if zone != "Pacific/Apia":
        assert due.astimezone(ZoneInfo(zone)).weekday() == weekday


@given(moments, st.sampled_from(ZONES))
def test_an_hourly_digest_is_sent_at_the_next_full_hour(now: datetime, zone: str) -> None:
    due = compute_due_time(create_rule(frequency=Frequency.HOURLY, time_zone=zone), now)
    assert now < due <= now + timedelta(hours=1)
    if zone != "Australia/Lord_Howe":  # its clocks change by half an hour
        assert due.astimezone(ZoneInfo(zone)).minute == 0


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        ("2026-03-29T00:10+00:00", "2026-03-29T01:00+00:00"),  # 02:30 is skipped; the first minute after it is 03:00
        ("2026-10-25T00:10+00:00", "2026-10-25T00:30+00:00"),  # 02:30 is shown twice; the first counts
        ("2026-10-25T00:31+00:00", "2026-10-26T01:30+00:00"),
    ],
)
def test_digests_when_clocks_change(now: str, expected: str) -> None:
    rule = create_rule(frequency=Frequency.DAILY, time_zone="Europe/Berlin", send_at=150)
    assert compute_due_time(rule, datetime.fromisoformat(now)) == datetime.fromisoformat(expected)


def test_a_digest_in_quiet_hours_waits_for_their_end() -> None:
    rule = create_rule(time_zone="Europe/Berlin", send_at=8 * 60, quiet_from=22 * 60, quiet_until=9 * 60)
    due = compute_due_time(rule, datetime(2026, 11, 20, 13, tzinfo=UTC))
    assert due == datetime(2026, 11, 21, 8, tzinfo=UTC)


def test_equal_ends_are_no_quiet_hours() -> None:
    assert not is_quiet(create_rule(quiet_from=60, quiet_until=60), datetime(2026, 1, 1, 1, tzinfo=UTC))
