"""A message to a person, from when it is written until it is forgotten (docs/people.md#mail)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

GIVEN_UP_AFTER = timedelta(days=3)
"""How old a message may be to be sent at all: what it leads to is over by then."""
LEASE = timedelta(minutes=5)
"""How long whoever sends a message has it for itself."""
FIRST_PAUSE = timedelta(seconds=30)
LONGEST_PAUSE = timedelta(hours=1)
LONGEST_FAILURE = 300


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """A message. `sealed` is its text, sealed, for it may have a secret in it; empty once it was sent.

    `next_at` says when it is tried (again), None once it is sent or given up; `failure` why the last attempt failed.
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
    """How long to wait after that many attempts have failed: 30 s, 1 min, 2 min … an hour."""
    doubled: int = 2 ** min(attempts - 1, 10)
    return min(FIRST_PAUSE * doubled, LONGEST_PAUSE)


def one_line(text: str) -> str:
    """Return the text without line breaks, so that a subject cannot add mail headers."""
    return " ".join(text.split())
