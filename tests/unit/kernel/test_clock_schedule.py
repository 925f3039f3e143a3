"""Schedules by clock time and zone, also when clocks are changed."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.kernel.clock_schedule import WEEKDAYS, ClockSchedule, list_zones

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Africa/Casablanca")
SCHEDULES = st.builds(
    ClockSchedule,
    st.integers(0, 23),
    st.integers(0, 59),
    st.sampled_from(ZONES),
    st.lists(st.sampled_from(WEEKDAYS), min_size=1, unique=True).map(tuple),
)
TIMES = st.datetimes(datetime(2020, 1, 1), datetime(2035, 1, 1)).map(lambda moment: moment.replace(tzinfo=UTC))


def parse_utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("after", "due"),
    [
        ("2026-03-27 05:00", "2026-03-27 06:30"),  # winter time: 07:30 is 06:30 UTC
        ("2026-03-27 06:30", "2026-03-28 06:30"),  # not due twice
        ("2026-03-28 06:30", "2026-03-29 05:30"),  # summer time begins
        ("2026-10-24 05:30", "2026-10-25 06:30"),  # summer time ends
    ],
)
def test_a_clock_time_stays_the_same_when_clocks_change(after: str, due: str) -> None:
    assert ClockSchedule(7, 30, "Europe/Berlin").find_next(parse_utc(after)) == parse_utc(due)


@pytest.mark.parametrize("minute", [0, 1, 30, 59])
def test_an_omitted_clock_time_is_due_at_the_next_existing_minute_and_once(minute: int) -> None:
    schedule = ClockSchedule(2, minute, "Europe/Berlin")
    due = schedule.find_next(parse_utc("2026-03-28 12:00"))
    assert due == parse_utc("2026-03-29 01:00")
    local = due.astimezone(ZoneInfo("Europe/Berlin"))
    assert (local.hour, local.minute) == (3, 0)
    assert schedule.find_next(due) == parse_utc(f"2026-03-30 00:{minute:02}")


def test_the_clock_time_of_an_omitted_day_is_due_at_its_end() -> None:
    schedule = ClockSchedule(6, 30, "Pacific/Apia")  # which had no 30 December 2011
    due = schedule.find_next(parse_utc("2011-12-30 00:00"))
    assert due.astimezone(ZoneInfo("Pacific/Apia")).isoformat() == "2011-12-31T00:00:00+14:00"


def test_a_repeated_clock_time_is_due_the_first_time_only() -> None:
    schedule = ClockSchedule(2, 30, "Europe/Berlin")
    due = schedule.find_next(parse_utc("2026-10-24 12:00"))
    assert due == parse_utc("2026-10-25 00:30")
    assert schedule.find_next(due) == parse_utc("2026-10-26 01:30")


def test_only_the_weekdays_of_the_zone_count() -> None:
    schedule = ClockSchedule(0, 15, "Asia/Tokyo", (1,))
    assert schedule.find_next(parse_utc("2026-11-20 00:00")) == parse_utc("2026-11-22 15:15")


@given(SCHEDULES, TIMES)
@settings(max_examples=400, deadline=None)
def test_the_next_time_is_the_first_that_shows_the_clock_time(schedule: ClockSchedule, after: datetime) -> None:
    zone, due = ZoneInfo(schedule.zone), schedule.find_next(after)
    assert timedelta() < due - after < timedelta(days=8)
    local = due.astimezone(zone)
    is_omitted = (local.hour, local.minute) != (schedule.hour, schedule.minute)
    if is_omitted:  # clocks were advanced at this very minute
        before = (due - timedelta(minutes=1)).astimezone(zone)
        wanted = (schedule.hour, schedule.minute)
        assert before.utcoffset() < local.utcoffset() and (before.hour, before.minute) < wanted < (
            local.hour,
            local.minute,
        )
    else:
        assert local.isoweekday() in schedule.weekdays and not local.fold
    # every earlier minute at which the clock shows the time belongs to another weekday or is a repetition
    day = after.replace(second=0, microsecond=0) + timedelta(minutes=1)
    candidates = (day + timedelta(minutes=step) for step in range(int((due - day).total_seconds() // 60)))
    for moment in candidates:
        shown = moment.astimezone(zone)
        if (shown.hour, shown.minute) == (schedule.hour, schedule.minute):
            assert shown.isoweekday() not in schedule.weekdays or shown.fold
    # the time does not depend on when it is computed
    assert schedule.find_next(after + (due - after) / 2) == due


def test_all_listed_zones_can_be_used() -> None:
    assert {"UTC", "America/New_York", "Europe/Berlin"} <= set(list_zones())
    assert not {"localtime", "posixrules", ""} & set(list_zones())
    for zone in list_zones():
        assert ClockSchedule(9, 0, zone).find_next(parse_utc("2026-11-20 00:00"))
