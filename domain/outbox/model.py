"""Outgoing messages and their retries (docs/people.md#mail)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

GIVEN_UP_AFTER = timedelta(days=3)
"""Age after which a message is no longer sent, because its link has expired."""
LEASE = timedelta(minutes=5)
"""Duration of the sender's exclusive claim on a message."""
FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(hours=1)
LONGEST_FAILURE = 300


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """An outgoing message.

    `sealed` is its sealed text, which may contain a secret; empty once it was sent. `next_at` is the next attempt, None
    once it is sent or given up; `failure` is the last error.
    """

    id: str
    to: str
    subject: str
    purpose: str
    sealed: bytes
    created_at: datetime
    next_at: datetime | None
    attempts: int = 0
    sent_at: datetime | None = None
    failure: str = ""


def pause(attempts: int) -> timedelta:
    """Return the delay after that many failed attempts: 30 s, 1 min, 2 min … an hour."""
    doubled: int = 2 ** min(attempts - 1, 10)
    return min(FIRST_PAUSE * doubled, LONGEST_PAUSE)


def one_line(text: str) -> str:
    """Return the text without line breaks, so that it cannot inject headers."""
    return " ".join(text.split())
