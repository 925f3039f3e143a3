"""Transitions between the states of a delivery."""

from dataclasses import replace
from datetime import timedelta

from domain.webhooks.model import AttemptStatus, AttemptVerdict, Delivery, DeliveryStatus
from tests.support import builders

NOW = builders.MOMENT + timedelta(hours=1)
FIRST, SECOND = builders.attempt(), builders.attempt(status=AttemptStatus.SUCCEEDED, failure=None)
LATER = AttemptVerdict(DeliveryStatus.PENDING, next_attempt_at=NOW)


def create_delivery(**changes: object) -> Delivery:
    """Return a delivery without attempts."""
    return builders.delivery("whe_1", **changes)


def test_attempts_are_counted_until_the_delivery_ends() -> None:
    first = create_delivery().with_body(b"{}")
    assert (first.status, first.body, first.next_attempt_at) == ("sending", b"{}", None)
    again = first.with_attempt(FIRST, LATER, NOW)
    assert (again.status, again.tries, again.attempts_made, again.completed_at) == ("pending", 1, 1, None)
    done = again.with_body(b"{}").with_attempt(SECOND, AttemptVerdict(DeliveryStatus.SUCCEEDED), NOW)
    assert (done.status, done.tries, done.attempts_made, done.completed_at) == ("succeeded", 2, 2, NOW)
    assert done.attempts == (FIRST, SECOND) and not done.is_open
    assert done.with_new_schedule(NOW) == replace(
        done, status="pending", tries=0, next_attempt_at=NOW, completed_at=None
    )


def test_an_empty_delivery_has_no_attempt() -> None:
    given_up = create_delivery().with_attempt(None, AttemptVerdict(DeliveryStatus.FAILED), NOW)
    assert (given_up.status, given_up.attempts, given_up.tries, given_up.attempts_made) == ("failed", (), 0, 0)
    assert given_up.completed_at == NOW
