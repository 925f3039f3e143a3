"""Verdicts that follow from the outcome of an attempt."""

from datetime import UTC, datetime, timedelta

import pytest

from domain.webhooks.model import (
    MAX_FAILING_TIME,
    RETRY_DELAYS,
    AttemptVerdict,
    evaluate_attempt,
    has_failed_too_long,
    parse_retry_after,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


def test_eleven_attempts_over_almost_three_days() -> None:
    moment, tries = NOW, 0
    while True:
        tries += 1
        verdict = evaluate_attempt(None, 500, {}, tries, moment)
        if verdict.next_attempt_at is None:
            break
        moment = verdict.next_attempt_at
    assert (tries, verdict) == (11, AttemptVerdict("failed", "http_status"))
    assert moment - NOW == timedelta(hours=69, minutes=35, seconds=5)
    assert [round(delay.total_seconds()) for delay in RETRY_DELAYS[:3]] == [5, 300, 1800]


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_a_success(status: int) -> None:
    assert evaluate_attempt(None, status, {"webhook-delivery": "abort-message"}, 11, NOW) == AttemptVerdict("succeeded")


@pytest.mark.parametrize(
    ("status", "failure"), [(302, "redirect"), (304, "redirect"), (404, "http_status"), (500, "http_status")]
)
def test_other_statuses_are_retried(status: int, failure: str) -> None:
    assert evaluate_attempt(None, status, {}, 1, NOW) == AttemptVerdict("pending", failure, NOW + timedelta(seconds=5))


def test_a_missing_response_keeps_its_reason() -> None:
    assert evaluate_attempt("tls", None, {}, 2, NOW) == AttemptVerdict("pending", "tls", NOW + timedelta(minutes=5))


def test_gone_and_abort_end_the_delivery() -> None:
    assert evaluate_attempt(None, 410, {}, 1, NOW) == AttemptVerdict("failed", "http_status", is_gone=True)
    assert evaluate_attempt(None, 503, {"webhook-delivery": " Abort-Message "}, 1, NOW) == AttemptVerdict(
        "failed", "aborted"
    )
    assert evaluate_attempt(None, 503, {"webhook-delivery": "other"}, 1, NOW).status == "pending"


@pytest.mark.parametrize("status", [429, 502, 504])
def test_retry_after_is_obeyed(status: int) -> None:
    assert evaluate_attempt(None, status, {"retry-after": "90"}, 1, NOW).next_attempt_at == NOW + timedelta(seconds=90)
    dated = {"retry-after": "Fri, 20 Nov 2026 12:02:00 GMT"}
    assert evaluate_attempt(None, status, dated, 3, NOW).next_attempt_at == NOW + timedelta(minutes=2)
    assert evaluate_attempt(None, status, {"retry-after": "soon"}, 1, NOW).next_attempt_at == NOW + timedelta(seconds=5)
    assert evaluate_attempt(None, status, {"retry-after": "1"}, 11, NOW).status == "failed"


@pytest.mark.parametrize("status", [500, 503, 408])
def test_retry_after_of_other_statuses_is_not(status: int) -> None:
    assert evaluate_attempt(None, status, {"retry-after": "90"}, 1, NOW).next_attempt_at == NOW + timedelta(seconds=5)


def test_delays_are_bounded() -> None:
    assert parse_retry_after("999999999999", NOW) == timedelta(hours=14)
    assert parse_retry_after("Fri, 20 Nov 2020 12:02:00 GMT", NOW) == timedelta()
    assert parse_retry_after("Fri, 20 Nov 2099 12:02:00 GMT", NOW) == timedelta(hours=14)
    assert parse_retry_after(None, NOW) is parse_retry_after("-5", NOW) is parse_retry_after("٣", NOW) is None


def test_failing_is_measured_from_the_first_failure_since_a_success() -> None:
    assert not has_failed_too_long(None, NOW)
    assert not has_failed_too_long(NOW - MAX_FAILING_TIME + timedelta(seconds=1), NOW)
    assert has_failed_too_long(NOW - MAX_FAILING_TIME, NOW)
