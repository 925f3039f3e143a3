"""What a stock check comes to, by the runs that ask."""

from dataclasses import replace
from typing import Any

import pytest

from domain.catalogue.differences import checked
from domain.checks.model import CheckFailure, StockCheck, result_of, unstated
from domain.runs.model import RunError
from tests.support import builders

PRODUCT = builders.product("src_1", "cat_1", "P")
OFFER = builders.offer(builders.variant(PRODUCT, "P-1"), data={"availability": "in_stock", "quantity": 7, "price": 1})
RUN = builders.run("src_1", trigger="stock_check", stream="stock")
GOOD = RUN.ended("succeeded", builders.MOMENT)  # type: ignore[arg-type]
BAD = RUN.ended("failed", builders.MOMENT, RunError("fetch_failed", "It answered 503."))  # type: ignore[arg-type]
REFUSED = CheckFailure("not_checkable", "It cannot.")


def test_results() -> None:
    waiting, good, bad, refused = (result_of(OFFER, run) for run in (RUN, GOOD, BAD, REFUSED))
    assert (waiting.waits, waiting.run, waiting.quantity) == (True, RUN.id, 7)
    assert (good.waits, good.checked_at, good.failure) == (False, builders.MOMENT, None)
    assert (bad.waits, bad.checked_at, bad.failure) == (False, None, CheckFailure("fetch_failed", "It answered 503."))
    assert (refused.waits, refused.run, refused.failure) == (False, None, REFUSED)
    untold = result_of(OFFER, replace(GOOD, problems=tuple(unstated([OFFER]))))
    assert untold.failure is not None and (untold.failure.code, untold.checked_at) == ("not_stated", None)
    assert result_of(replace(OFFER, id="ofr_2"), replace(GOOD, problems=tuple(unstated([OFFER])))).failure is None


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
def test_the_status_is_that_of_all_answers(runs: Any, status: str) -> None:
    check = StockCheck("chk_1", "var_1", [result_of(OFFER, run) for run in runs])
    assert check.status == status
    assert check.runs == list(dict.fromkeys(run.id for run in runs if run is not REFUSED))


def test_only_what_can_be_had_changes() -> None:
    old = {"price": 1, "quantity": 7, "incoming": [{"quantity": 1}], "lead_time_days": 3, "availability": "in_stock"}
    assert checked(old, {"quantity": 0, "availability": "out_of_stock", "price": 9, "lead_time_days": 1}) == {
        "price": 1, "lead_time_days": 3, "quantity": 0, "availability": "out_of_stock",
    }  # fmt: skip
    assert checked(old, {"availability": "out_of_stock"}) == {
        "price": 1, "lead_time_days": 3, "availability": "out_of_stock",
    }  # fmt: skip
    assert checked({}, {"incoming": [{"quantity": 2}]}) == {"incoming": [{"quantity": 2}], "availability": "unknown"}
