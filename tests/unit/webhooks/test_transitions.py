"""From which state to which a delivery goes, and how what is reported merges into what is stored."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.webhooks.model import OPEN, AttemptStatus, Delivery, DeliveryStatus, Verdict
from tests.support import builders

NOW = builders.MOMENT + timedelta(hours=1)
FIRST, SECOND = builders.attempt(), builders.attempt(status=AttemptStatus.SUCCEEDED, failure=None)
LATER = Verdict(DeliveryStatus.PENDING, next_attempt_at=NOW)


def delivery(**changes: object) -> Delivery:
    """A delivery that was not attempted yet."""
    return builders.delivery("whe_1", **changes)


def test_attempts_are_counted_until_it_is_finished() -> None:
    first = delivery().sending(b"{}")
    assert (first.status, first.body, first.next_attempt_at) == ("sending", b"{}", None)
    again = first.attempted(FIRST, LATER, NOW)
    assert (again.status, again.tries, again.made, again.completed_at) == ("pending", 1, 1, None)
    done = again.sending(b"{}").attempted(SECOND, Verdict(DeliveryStatus.SUCCEEDED), NOW)
    assert (done.status, done.tries, done.made, done.completed_at) == ("succeeded", 2, 2, NOW)
    assert done.attempts == (FIRST, SECOND) and not done.is_open
    assert done.resent(NOW) == replace(done, status="pending", tries=0, next_attempt_at=NOW, completed_at=None)


def test_nothing_to_send_is_no_attempt() -> None:
    given_up = delivery().attempted(None, Verdict(DeliveryStatus.FAILED), NOW)
    assert (given_up.status, given_up.attempts, given_up.tries, given_up.made) == ("failed", (), 0, 0)
    assert given_up.completed_at == NOW


def test_attempts_are_added_to_what_is_stored_once() -> None:
    stored = delivery(attempts=(FIRST,), made=1, body=b"{}")
    reported = replace(stored, attempts=(SECOND,), made=2, body=None, status=DeliveryStatus.SUCCEEDED)
    merged = reported.merged(stored, enabled=True, at=NOW)
    assert merged == replace(reported, attempts=(FIRST, SECOND), body=b"{}")
    assert reported.merged(merged, enabled=True, at=NOW) == merged, "reported again by one who does not know"


@pytest.mark.parametrize("finished", [DeliveryStatus.SUCCEEDED, DeliveryStatus.FAILED])
@pytest.mark.parametrize("reported", list(DeliveryStatus))
def test_what_is_finished_only_becomes_succeeded(finished: DeliveryStatus, reported: DeliveryStatus) -> None:
    stored = delivery(status=finished, completed_at=builders.MOMENT)
    merged = replace(stored, status=reported).merged(stored, enabled=True, at=NOW)
    assert merged.status == (reported if reported == DeliveryStatus.SUCCEEDED else finished)


@pytest.mark.parametrize("status", list(DeliveryStatus))
@pytest.mark.parametrize("known", [True, False])
def test_nothing_is_open_of_an_endpoint_that_is_disabled(status: DeliveryStatus, known: bool) -> None:
    reported = delivery(status=status)
    merged = reported.merged(delivery() if known else None, enabled=False, at=NOW)
    assert merged.status == (DeliveryStatus.FAILED if status in OPEN else status)
    assert (merged.completed_at == NOW) == (status in OPEN)
