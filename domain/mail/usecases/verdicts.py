"""Replies to senders of messages, and refusals."""

from dataclasses import dataclass

from domain.kernel.enums import StoredEnum
from domain.mail.model import MessageReason


class Answer(StoredEnum):
    """Whether a message was accepted, is refused for good, or may be sent again later."""

    TAKEN = "taken"
    REFUSED = "refused"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Reply to a message, and its reason. No text reveals more than the sender may know."""

    answer: Answer
    reason: MessageReason | None
    text: str


UNKNOWN = Verdict(Answer.REFUSED, None, "No such address here.")
"""The address was rotated, or its source deleted, during the transmission."""


class Refused(Exception):
    """A message is refused; the text says why, to its sender and to the source's owner."""

    def __init__(self, reason: MessageReason, text: str, answer: Answer = Answer.REFUSED) -> None:
        super().__init__(text)
        self.reason, self.answer = reason, answer

    @property
    def verdict(self) -> Verdict:
        """The reply to the sender."""
        return Verdict(self.answer, self.reason, str(self))


class AddressGone(Exception):
    """The address no longer accepts mail."""
