"""Pulls at clock times: planned, preserved at the end of runs, and the same however often they are computed."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.catalogue.model import Stream
from domain.runs.run_queue import with_next_pull
from domain.sources.model import Schedule, Source, Weekday
from domain.sources.schedules import plan_pulls, validate_schedule
from tests.support import builders

CLOCKS = st.builds(
    Schedule,
    at=st.lists(st.times().map(lambda at: f"{at:%H:%M}"), min_size=1, max_size=3).map(tuple),
    weekdays=st.none() | st.lists(st.sampled_from(list(Weekday)), min_size=1, unique=True).map(tuple),
    time_zone=st.none() | st.sampled_from(["Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]),
    stock_interval_minutes=st.none() | st.integers(5, 1440),
)
MOMENTS = st.datetimes(datetime(2024, 1, 1), datetime(2032, 1, 1), timezones=st.just(UTC))


def build_source(schedule: Schedule, **fields: Any) -> Source:
    return builders.source(schedule=schedule, **fields)


@given(CLOCKS, MOMENTS, st.timedeltas(timedelta(), timedelta(days=30)))
def test_the_next_pull_is_the_first_clock_time(schedule: Schedule, now: datetime, age: timedelta) -> None:
    source = build_source(schedule, catalogue_at=now - age)
    due = plan_pulls(source, now)["next_pull"]
    assert now < due <= now + timedelta(days=8)
    local = due.astimezone(ZoneInfo(schedule.time_zone or "UTC"))
    is_shown = f"{local:%H:%M}" in (schedule.at or ()) and list(Weekday)[local.weekday()] in (
        schedule.weekdays or Weekday
    )
    assert is_shown or local.utcoffset() != (local - timedelta(days=1)).utcoffset(), "clocks were advanced"
    # the end of a run changes neither a planned pull nor its time, whatever the differences between clocks
    for ended in (now - timedelta(minutes=4), now, due, due + timedelta(minutes=4)):
        planned = build_source(schedule, catalogue_at=now, next_pull=due)
        after = with_next_pull(planned, Stream.CATALOGUE, ended, has_changes=True, jitter=1.1)
        assert after.next_pull == due and after.interval_factor == {}
    unplanned = with_next_pull(source, Stream.CATALOGUE, now, has_changes=True, jitter=1.1)
    assert unplanned.next_pull == due


@given(CLOCKS, MOMENTS)
def test_freshness_does_not_improve_with_time(schedule: Schedule, read_at: datetime) -> None:
    source = build_source(schedule, catalogue_at=read_at)
    fresh_until, late_until = source.find_freshness_limits("catalogue", read_at)
    due = schedule.find_next_clock_time("catalogue", read_at)
    assert due is not None and due < fresh_until < late_until
    states = [source.compute_freshness("catalogue", at) for at in (read_at, due, fresh_until, late_until)]
    assert [state and state["state"] for state in states] == ["fresh", "fresh", "fresh", "late"]
    stale = source.compute_freshness("catalogue", late_until + timedelta(seconds=1))
    assert stale is not None and stale["state"] == "stale"


def test_stock_keeps_its_interval_and_first_pulls_are_due_at_once() -> None:
    now, schedule = builders.MOMENT, Schedule(stock_interval_minutes=60, at=("06:30",))
    assert plan_pulls(build_source(schedule), now) == {"next_pull": now, "next_stock_pull": now}
    read = build_source(schedule, catalogue_at=now, stock_at=now)
    assert plan_pulls(read, now)["next_stock_pull"] == now + timedelta(minutes=60)
    stock = with_next_pull(read, Stream.STOCK, now, has_changes=None, jitter=1.0)
    assert (stock.next_stock_pull, stock.next_pull) == (now + timedelta(minutes=60), None)
    assert plan_pulls(build_source(schedule, status="paused"), now) == {"next_pull": None, "next_stock_pull": None}
    assert (
        with_next_pull(
            build_source(schedule, status="blocked", next_pull=now), Stream.CATALOGUE, now, has_changes=None, jitter=1.0
        ).next_pull
        is None
    )


@pytest.mark.parametrize(
    ("schedule", "fields"),
    [
        (Schedule(), []),
        (Schedule(at=("06:30",), stock_interval_minutes=60, adaptive=True), []),
        (Schedule(at=("06:30",), interval_minutes=60), ["schedule.at"]),
        (Schedule(weekdays=(Weekday.MONDAY,), time_zone="Mars/Olympus"), ["schedule.weekdays", "schedule.time_zone", "schedule.time_zone"]),
        (Schedule(at=("06:30",), time_zone="europe/berlin"), ["schedule.time_zone"]),
        (Schedule(interval_minutes=1, stock_interval_minutes=2000), ["schedule.interval_minutes", "schedule.stock_interval_minutes"]),
    ],
)  # fmt: skip
def test_contradictory_and_unknown_settings_are_refused(schedule: Schedule, fields: list[str]) -> None:
    assert [error.field for error in validate_schedule(schedule)] == fields


def test_an_unknown_zone_is_answered_with_similar_ones() -> None:
    [error] = validate_schedule(Schedule(at=("06:30",), time_zone="Europe/Berlim"))
    assert "Europe/Berlin" in error.detail
