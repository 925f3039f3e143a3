"""Health of a source as its consumers see it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from domain.events.model import FieldChange
from domain.kernel.resource import with_changes
from domain.sources.health import create_health_events
from domain.sources.model import HealthThresholds, Schedule, StatusReason
from tests.support import builders

RUN = builders.run("src_1")
REASON = StatusReason("fetch_failed", "It answered 503.")


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        ("active", "degraded", "source.degraded"),
        ("active", "blocked", "source.blocked"),
        ("degraded", "blocked", "source.blocked"),
        ("degraded", "active", "source.recovered"),
        ("active", "active", None),
        ("degraded", "degraded", None),
        ("paused", "paused", None),
        ("blocked", "active", None),
    ],
)
def test_transitions_create_events(before: str, after: str, name: str | None) -> None:
    events = create_health_events(builders.source(status=before), builders.source(status=after), RUN.id)
    assert [event.type for event in events] == ([name] if name else [])


def test_the_event_contains_the_reason_and_the_run() -> None:
    before = builders.source()
    after = with_changes(before, builders.MOMENT, status="blocked", status_reason=REASON)
    [event] = create_health_events(before, after, RUN.id)
    reason = {"code": "fetch_failed", "message": "It answered 503."}
    assert event.data == {
        "id": after.id,
        "status": "blocked",
        "status_reason": reason,
        "run": RUN.id,
    }
    assert (event.subject, event.source, event.catalogue) == (after.id, after.id, after.catalogue)
    assert (event.version, event.correlation_id) == (2, RUN.id)
    assert list(event.fields) == [FieldChange("status", "active", "blocked")]


def test_sources_become_degraded_and_blocked_and_recover() -> None:
    source, heard, now = builders.source(), [], builders.MOMENT
    for number in range(10):
        now += timedelta(minutes=number)
        after = source.with_failure(REASON, now, HealthThresholds())
        heard += [(number + 1, event.type) for event in create_health_events(source, after, RUN.id)]
        source = after
    assert heard == [(3, "source.degraded"), (10, "source.blocked")]
    degraded = builders.source(status="degraded", status_reason=REASON, failures=4)
    [event] = create_health_events(degraded, degraded.with_success("catalogue", now), RUN.id)
    assert event.type == "source.recovered" and "status_reason" not in event.data


def test_a_degraded_source_has_the_current_reason() -> None:
    degraded = builders.source(status="degraded", status_reason=REASON, failures=4)
    other = degraded.with_failure(
        StatusReason("parse_failed", "It is a web page."), builders.MOMENT, HealthThresholds()
    )
    assert other.status_reason == StatusReason("parse_failed", "It is a web page.") and other.version == 2
    assert create_health_events(degraded, other, RUN.id) == []
    again = other.with_failure(StatusReason("parse_failed", "Another one."), builders.MOMENT, HealthThresholds())
    assert (again.version, again.failures) == (2, 6), "a change of the wording alone is no event"


@pytest.mark.parametrize(
    ("code", "status", "failures"), [("fetch_failed", "degraded", 4), ("parse_failed", "active", 0)]
)
def test_a_successful_run_clears_parse_failures(code: str, status: str, failures: int) -> None:
    degraded = builders.source(status="degraded", status_reason=StatusReason(code, "No."), failures=4)
    after = degraded.with_success("catalogue", builders.MOMENT, is_pull=False)
    assert (after.status, after.failures) == (status, failures)
    failing = builders.source(failures=2)
    assert failing.with_success("catalogue", builders.MOMENT, is_pull=False).failures == 2
    assert failing.with_success("catalogue", builders.MOMENT).failures == 0


def test_a_stream_has_the_age_of_its_data() -> None:
    now, yesterday = builders.MOMENT, builders.MOMENT - timedelta(days=1)
    source = builders.source()
    assert source.with_success("catalogue", now, observed_at=yesterday).catalogue_at == yesterday
    fresh = source.with_success("stock", now)
    assert (fresh.stock_at, fresh.catalogue_at) == (now, None)
    assert fresh.with_success("stock", now, observed_at=yesterday).stock_at == now, "the age does not increase"


@pytest.mark.parametrize(
    ("schedule", "factor", "minutes"),
    [
        (Schedule(60), {"catalogue": 4.0}, 60),
        (Schedule(60, adaptive=True), {"catalogue": 4.0}, 240),
        (Schedule(60, adaptive=True), {"catalogue": 0.5}, 60),
        (Schedule(60, adaptive=True), {}, 60),
        (Schedule(None, 30), {}, None),
    ],
)
def test_expected_interval_of_a_stream(schedule: Schedule, factor: dict[str, float], minutes: float | None) -> None:
    assert builders.source(schedule=schedule, interval_factor=factor).compute_expected_minutes("catalogue") == minutes


@pytest.mark.parametrize(
    ("age", "minutes", "state"),
    [
        (0, 60, "fresh"), (90, 60, "fresh"), (90.1, 60, "late"), (180, 60, "late"), (180.1, 60, "stale"),
        (36 * 60, None, "fresh"), (72 * 60, None, "late"), (72 * 60 + 1, None, "stale"),
    ],
)  # fmt: skip
def test_freshness_depends_on_the_age_of_the_data(age: float, minutes: int | None, state: str) -> None:
    now, schedule = builders.MOMENT, Schedule(interval_minutes=minutes)
    source = builders.source(schedule=schedule, catalogue_at=now - timedelta(minutes=age))
    found = source.compute_freshness("catalogue", now)
    assert found == {"observed_at": now - timedelta(minutes=age), "age_seconds": int(age * 60), "state": state}
    assert source.compute_freshness("stock", now) is None
    ahead = builders.source(schedule=schedule, catalogue_at=now + timedelta(minutes=1)).compute_freshness(
        "catalogue", now
    )
    assert ahead is not None and (ahead["age_seconds"], ahead["state"]) == (0, "fresh")


@pytest.mark.parametrize(
    ("schedule", "now", "state"),
    [  # read on Friday, 20 November 2026, at 06:31
        ({}, "2026-11-21 18:30", "fresh"), ({}, "2026-11-21 18:31", "late"), ({}, "2026-11-23 06:31", "stale"),
        ({"weekdays": ["mon", "fri"]}, "2026-11-23 06:30", "fresh"), ({"weekdays": ["mon", "fri"]}, "2026-11-25 06:31", "late"),
        ({"weekdays": ["mon", "fri"]}, "2026-11-30 06:31", "stale"),
        ({"at": ["06:30", "18:00"]}, "2026-11-20 18:00", "fresh"), ({"at": ["06:30", "18:00"]}, "2026-11-21 00:16", "late"),
        ({"at": ["06:30", "18:00"]}, "2026-11-21 18:01", "stale"),
        ({"time_zone": "America/New_York"}, "2026-11-20 23:30", "fresh"), ({"time_zone": "America/New_York"}, "2026-11-20 23:31", "late"),
    ],
)  # fmt: skip
def test_freshness_follows_clock_times(schedule: dict[str, Any], now: str, state: str) -> None:
    read_at = datetime(2026, 11, 20, 6, 31, tzinfo=UTC)
    source = builders.source(schedule=Schedule(**{"at": ["06:30"], **schedule}), catalogue_at=read_at, stock_at=read_at)
    found = source.compute_freshness("catalogue", datetime.fromisoformat(f"{now}Z"))
    assert found is not None and found["state"] == state
    stock = source.compute_freshness("stock", read_at + timedelta(hours=36, minutes=1))
    assert stock is not None and stock["state"] == "late", "clock times are those of the catalogue"
