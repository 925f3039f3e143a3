"""What is said to a sending server: reply codes (RFC 5321) with enhanced status codes (RFC 3463)."""

import re
from collections.abc import Mapping
from typing import Final

from domain.mail.model import MessageReason
from domain.mail.usecases.verdicts import Answer, Verdict

UNKNOWN: Final = "550 5.1.1 No such address here"
ONE_AT_A_TIME: Final = "452 4.5.3 One recipient at a time; send the message again for the others"
TOO_OFTEN: Final = "451 4.7.1 Too many messages for this address; try again later"
UNAVAILABLE: Final = "451 4.3.0 Temporarily unavailable; try again later"
NO_ROOM: Final = "452 4.3.1 Too much mail is in hand; try again later"
TOO_LARGE: Final = "552 5.3.4 The message is too large"

_REFUSED: Final[Mapping[MessageReason, str]] = {
    MessageReason.TOO_LARGE: "552 5.3.4",
    MessageReason.MALFORMED: "550 5.6.0",
    MessageReason.DMARC_REJECTED: "550 5.7.26",
    MessageReason.SOURCE_NOT_ACTIVE: "550 5.2.1",
    MessageReason.TOO_MANY_FILES: "550 5.3.4",
}
_LATER: Final[Mapping[MessageReason, str]] = {
    MessageReason.QUOTA_EXCEEDED: "452 4.2.2",
    MessageReason.SOURCE_NOT_ACTIVE: "450 4.2.1",
    MessageReason.NOT_CHECKED: "451 4.7.0",
}
_UNPRINTABLE: Final = re.compile(r"[^\x20-\x7e]")
_LONGEST: Final = 400


def reply_to(verdict: Verdict) -> str:
    """The line that answers a message."""
    if verdict.answer == Answer.TAKEN:
        return f"250 2.0.0 {_line(verdict.text)}"
    if verdict.reason is None:
        return UNKNOWN
    codes, other = (_LATER, "451 4.3.0") if verdict.answer == Answer.LATER else (_REFUSED, "550 5.7.1")
    return f"{codes.get(verdict.reason, other)} {_line(verdict.text)}"


def _line(text: str) -> str:
    """One line that every server can read, whatever a message had in it."""
    return _UNPRINTABLE.sub("?", text)[:_LONGEST]
