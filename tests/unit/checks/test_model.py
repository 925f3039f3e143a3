"""Results of a stock check by its runs."""

from dataclasses import replace
from typing import Any

import pytest

from domain.catalogue.differences import apply_stock_check
from domain.checks.model import CheckFailure, StockCheck, build_result, describe_missing_offers
from domain.runs.model import RunError
from tests.support import builders

PRODUCT = builders.product("src_1", "cat_1", "P")
OFFER = builders.offer(builders.variant(PRODUCT, "P-1"), data={"availability": "in_stock", "quantity": 7, "price": 1})
RUN = builders.run("src_1", trigger="stock_check", stream="stock")
GOOD = RUN.with_end("succeeded", builders.MOMENT)  # type: ignore[arg-type]
BAD = RUN.with_end("failed", builders.MOMENT, RunError("fetch_failed", "It answered 503."))  # type: ignore[arg-type]
REFUSED = CheckFailure("not_checkable", "It cannot.")


def test_results_follow_from_runs() -> None:
    waiting, good, bad, refused = (build_result(OFFER, run) for run in (RUN, GOOD, BAD, REFUSED))
    assert (waiting.is_waiting, waiting.run, waiting.quantity) == (True, RUN.id, 7)
    assert (good.is_waiting, good.checked_at, good.failure) == (False, builders.MOMENT, None)
    assert (bad.is_waiting, bad.checked_at, bad.failure) == (
        False,
        None,
        CheckFailure("fetch_failed", "It answered 503."),
    )
    assert (refused.is_waiting, refused.run, refused.failure) == (False, None, REFUSED)
    not_stated = build_result(OFFER, replace(GOOD, problems=tuple(describe_missing_offers([OFFER]))))
    assert not_stated.failure is not None and (not_stated.failure.code, not_stated.checked_at) == ("not_stated", None)
    assert (
        build_result(
            replace(OFFER, id="ofr_2"), replace(GOOD, problems=tuple(describe_missing_offers([OFFER])))
        ).failure
        is None
    )


@pytest.mark.parametrize(
    ("runs", "status"),
    [
        ((), "failed"),
        ((RUN,), "queued"),
        ((GOOD, RUN), "queued"),
        ((BAD, RUN, REFUSED), "queued"),
        ((GOOD, BAD, REFUSED), "succeeded"),
        ((BAD, REFUSED), "failed"),
    ],
)
def test_the_status_follows_from_all_results(runs: Any, status: str) -> None:
    check = StockCheck("chk_1", "var_1", [build_result(OFFER, run) for run in runs])
    assert check.status == status
    assert check.runs == list(dict.fromkeys(run.id for run in runs if run is not REFUSED))


def test_a_stock_check_changes_only_stock() -> None:
    old = {"price": 1, "quantity": 7, "incoming": [{"quantity": 1}], "lead_time_days": 3, "availability": "in_stock"}
    assert apply_stock_check(old, {"quantity": 0, "availability": "out_of_stock", "price": 9, "lead_time_days": 1}) == {
        "price": 1, "lead_time_days": 3, "quantity": 0, "availability": "out_of_stock",
    }  # fmt: skip
    assert apply_stock_check(old, {"availability": "out_of_stock"}) == {
        "price": 1, "lead_time_days": 3, "availability": "out_of_stock",
    }  # fmt: skip
    assert apply_stock_check({}, {"incoming": [{"quantity": 2}]}) == {
        "incoming": [{"quantity": 2}],
        "availability": "unknown",
    }
