"""Outgoing email messages and their retries (docs/people.md#mail)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

MAX_AGE = timedelta(days=3)
"""Maximum age of a message that is sent; older messages remain unsent."""
CLAIM_TIME = timedelta(minutes=5)
"""Time for which a message is claimed by the process that sends it."""
MIN_RETRY_DELAY = timedelta(seconds=30)
"""Delay after the first failed attempt; it doubles after each further one."""
MAX_RETRY_DELAY = timedelta(hours=1)
"""Maximum delay between two attempts."""
MAX_FAILURE_CHARS = 300
"""Maximum number of characters of a stored failure; longer texts are truncated."""


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """Outgoing email message.

    Attributes:
        to: Email address of the recipient.
        purpose: Purpose as one word, such as `set_password`.
        sealed: The encrypted text; empty after the message was sent.
        next_at: When the next attempt is due; None after the message was sent or has failed.
        attempts: Number of attempts so far.
        failure: Reason for which the last attempt failed; empty if none has failed.
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


def compute_retry_delay(attempts: int) -> timedelta:
    """Return the delay after `attempts` failed attempts: 30 s, 1 min, 2 min and so on, up to an hour."""
    factor: int = 2 ** min(attempts - 1, 10)
    return min(MIN_RETRY_DELAY * factor, MAX_RETRY_DELAY)


def join_lines(text: str) -> str:
    """Return the text as a single line, so that it cannot add headers to a message."""
    return " ".join(text.split())
