"""What an attempt's outcome leads to: done, tried again when, or given up (docs/conventions.md#delivery-schedule)."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

from domain.webhooks.model import AttemptFailure, DeliveryStatus, DisabledReason, Verdict

TIMEOUT: Final = 15.0
"""Seconds within which a 2xx answer is a success."""
DELAYS: Final = (
    timedelta(seconds=5),
    timedelta(minutes=5),
    timedelta(minutes=30),
    timedelta(hours=2),
    timedelta(hours=5),
    timedelta(hours=10),
    timedelta(hours=10),
    timedelta(hours=14),
    timedelta(hours=14),
    timedelta(hours=14),
)
"""What each failed attempt waits for the next: eleven attempts over about 2.9 days."""
FAILING_FOR: Final = timedelta(hours=72)
"""An endpoint whose attempts have failed for so long, without a success, is disabled."""
LONGEST_ASKED: Final = DELAYS[-1]
"""A receiver may ask for no longer a pause than the schedule's own longest."""
ASKS: Final = frozenset({429, 502, 504})
"""Statuses whose Retry-After is obeyed."""
GONE: Final = 410
ABORT: Final = ("webhook-delivery", "abort-message")


def judge(
    failure: AttemptFailure | None,
    status: int | None,
    headers: Mapping[str, str],
    tries: int,
    now: datetime,
    delays: Sequence[timedelta] = DELAYS,
) -> Verdict:
    """The verdict on the `tries`-th attempt of a schedule (from 1). `headers` have lower-case names."""
    if status is not None and 200 <= status < 300:
        return Verdict(DeliveryStatus.SUCCEEDED)
    if status is not None:
        failure = AttemptFailure.REDIRECT if 300 <= status < 400 else AttemptFailure.HTTP_STATUS
    if status == GONE:
        return Verdict(DeliveryStatus.FAILED, failure, gone=True)
    if headers.get(ABORT[0], "").strip().lower() == ABORT[1]:
        return Verdict(DeliveryStatus.FAILED, AttemptFailure.ABORTED)
    if tries > len(delays):
        return Verdict(DeliveryStatus.FAILED, failure)
    asked = asked_pause(headers.get("retry-after"), now) if status in ASKS else None
    return Verdict(DeliveryStatus.PENDING, failure, now + (delays[tries - 1] if asked is None else asked))


def asked_pause(text: str | None, now: datetime) -> timedelta | None:
    """How long a Retry-After (RFC 9110 §10.2.3) asks to wait, seconds or an HTTP date; None for none or nonsense."""
    text = (text or "").strip()
    if text.isascii() and text.isdigit():
        return min(timedelta(seconds=int(text[:9])), LONGEST_ASKED)
    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return min(max(moment - now, timedelta()), LONGEST_ASKED)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def is_failing(failing_since: datetime | None, now: datetime) -> bool:
    """Whether an endpoint whose attempt has just failed is to be disabled."""
    return failing_since is not None and now - failing_since >= FAILING_FOR


def disabled_for(verdict: Verdict, failing_since: datetime | None, now: datetime) -> DisabledReason | None:
    """Why an endpoint is disabled after an attempt with that verdict; None for one that is not."""
    if verdict.gone:
        return DisabledReason.GONE
    if verdict.status != DeliveryStatus.SUCCEEDED and is_failing(failing_since, now):
        return DisabledReason.FAILING
    return None
