"""What consumers hear of a source's health."""

from datetime import timedelta

import pytest

from domain.events.model import FieldChange
from domain.sources.health import outcome_events
from domain.sources.model import Ladder, StatusReason
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
def test_each_move(before: str, after: str, name: str | None) -> None:
    events = outcome_events(builders.source(status=before), builders.source(status=after), RUN.id)
    assert [event.type for event in events] == ([name] if name else [])


def test_the_event_tells_why_and_by_which_run() -> None:
    before = builders.source()
    after = before.changed(builders.MOMENT, status="blocked", status_reason=REASON)
    [event] = outcome_events(before, after, RUN.id)
    reason = {"code": "fetch_failed", "message": "It answered 503."}
    assert event.data == {
        "id": after.id,
        "catalogue": after.catalogue,
        "status": "blocked",
        "status_reason": reason,
        "run": RUN.id,
    }
    assert (event.subject, event.source, event.catalogue) == (after.id, after.id, after.catalogue)
    assert (event.version, event.correlation_id) == (2, RUN.id)
    assert list(event.fields) == [FieldChange("status", "active", "blocked")]


def test_down_the_ladder_and_up_again() -> None:
    source, heard, now = builders.source(), [], builders.MOMENT
    for number in range(10):
        now += timedelta(minutes=number)
        after = source.after_failure(REASON, now, Ladder())
        heard += [(number + 1, event.type) for event in outcome_events(source, after, RUN.id)]
        source = after
    assert heard == [(3, "source.degraded"), (10, "source.blocked")]
    degraded = builders.source(status="degraded", status_reason=REASON, failures=4)
    [event] = outcome_events(degraded, degraded.after_success("catalogue", now), RUN.id)
    assert event.type == "source.recovered" and "status_reason" not in event.data
