"""What rules report: exact thresholds, net changes and states of sources."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.events.model import LoggedEvent
from domain.notifications.findings import (
    RuleFinding,
    find_change,
    is_reported,
    list_price_changes,
    merge_findings,
    observe_sources,
)
from domain.notifications.model import NotificationKind
from tests.unit.notifications.test_schedules import create_rule

NOW = datetime(2026, 11, 20, 13, tzinfo=UTC)


def _find(old: dict[str, Any], new: dict[str, Any], subject: str = "ofr_1") -> RuleFinding:
    return RuleFinding("ntr_1", subject, "prod_1", "src_1", old, new, NOW)


@given(st.integers(1, 10**9), st.integers(0, 10**9), st.integers(1, 100_000))
def test_thresholds_are_exact(old: int, new: int, threshold: int) -> None:
    found = list_price_changes(create_rule(threshold=threshold), _find({"price": old}, {"price": new}))
    share = Decimal(abs(new - old)) * 10_000 / old
    assert bool(found) == (new != old and abs(new - old) * 10_000 >= threshold * old)
    if found:
        assert found[0].percent is not None and abs(found[0].percent) * 100 == share


@pytest.mark.parametrize(
    ("old", "new", "is_expected"),
    [
        ({"price": 10000}, {"price": 10500}, True),
        ({"price": 10000}, {"price": 10499}, False),
        ({"price": 10000}, {"price": 9500}, True),
        ({"price": None}, {"price": 9500}, False),
        ({"price": 100}, {"price": None}, False),
        ({"price": 0}, {"price": 1}, True),
        ({"map": 100}, {"map": 200}, False),
        ({"price": 100, "currency": "usd"}, {"price": 100, "currency": "eur"}, True),
        ({"price": 100, "currency": None}, {"price": 101, "currency": "eur"}, False),
    ],
)
def test_prices(old: dict[str, Any], new: dict[str, Any], is_expected: bool) -> None:
    assert is_reported(create_rule(prices=("price",)), _find(old, new)) == is_expected


@pytest.mark.parametrize(
    ("kind", "old", "new", "is_expected"),
    [
        ("out_of_stock", "in_stock", "out_of_stock", True),
        ("out_of_stock", "backorder", "discontinued", True),
        ("out_of_stock", "unknown", "out_of_stock", False),
        ("out_of_stock", None, "out_of_stock", False),
        ("out_of_stock", "discontinued", "out_of_stock", False),
        ("back_in_stock", "out_of_stock", "low_stock", True),
        ("back_in_stock", "discontinued", "in_stock", True),
        ("back_in_stock", "out_of_stock", "backorder", False),
        ("back_in_stock", "low_stock", "in_stock", False),
    ],
)
def test_availability(kind: str, old: str | None, new: str, is_expected: bool) -> None:
    rule = create_rule(kind=NotificationKind(kind))
    assert is_reported(rule, _find({"availability": old}, {"availability": new})) == is_expected


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["price", "cost"]), st.integers(0, 9)), max_size=30))
def test_merged_findings_have_the_first_old_and_the_last_new_value(steps: list[tuple[str, str, int]]) -> None:
    values: dict[tuple[str, str], list[int]] = {}
    findings = []
    for subject, name, value in steps:
        history = values.setdefault((subject, name), [5])
        findings.append(_find({name: history[-1]}, {name: value}, subject))
        history.append(value)
    for finding in merge_findings(findings):
        for name in finding.new:
            history = values[finding.subject, name]
            assert (finding.old[name], finding.new[name]) == (history[0], history[-1])


def test_events_of_other_sources_types_and_omitted_values_are_ignored() -> None:
    event = LoggedEvent(1, "evt_1", "offer.changed", "ofr_1", "prod_1", "src_1", None, 2, NOW, b"")
    data = {"fields": [{"path": "price", "old": 1, "new": 2}]}
    assert find_change(create_rule(), event, data) == _find({"price": 1}, {"price": 2})
    assert find_change(create_rule(sources=("src_2",)), event, data) is None
    assert find_change(create_rule(kind=NotificationKind.NEW_PRODUCTS), event, data) is None
    assert find_change(create_rule(), event, {"fields": [{"path": "price", "omitted": True}]}) is None
    assert find_change(create_rule(), event, {}) is None


def test_observed_sources() -> None:
    rule = create_rule(kind=NotificationKind.FEED, state={"src_1": "catalogue_late"})
    state, found = observe_sources(rule, {"src_1": "catalogue_stale", "src_2": "stock_late"}, {}, NOW)
    assert state == {"src_1": "catalogue_stale", "src_2": "stock_late"} and [one.subject for one in found] == ["src_2"]
    state, found = observe_sources(create_rule(kind=NotificationKind.FEED, state=state), {}, {}, NOW + timedelta(1))
    assert state == {} and not any(is_reported(rule, one) for one in found) and len(found) == 2
    limited = create_rule(kind=NotificationKind.PROBLEMS, sources=("src_2",), state={"src_2": 3})
    state, [finding] = observe_sources(limited, {}, {"src_1": 9, "src_2": 5}, NOW)
    assert state == {"src_2": 5} and (finding.old, finding.new) == ({"problems": 3}, {"problems": 5})
    assert is_reported(limited, finding)
