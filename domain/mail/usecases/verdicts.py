"""What is answered to whoever sent a message, and the refusals on the way there."""

from dataclasses import dataclass

from domain.kernel.enums import StoredEnum
from domain.mail.model import MessageReason


class Answer(StoredEnum):
    """Whether a message was taken, will never be, or may be sent again later."""

    TAKEN = "taken"
    REFUSED = "refused"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer to a message, and why. None of the texts tells more than its sender may know."""

    answer: Answer
    reason: MessageReason | None
    text: str


UNKNOWN = Verdict(Answer.REFUSED, None, "No such address here.")
"""The address was rotated, or its source is gone, while the message came."""


class Refused(Exception):
    """The message is not taken; the text tells why, to its sender and to the source's owner."""

    def __init__(self, reason: MessageReason, text: str, answer: Answer = Answer.REFUSED) -> None:
        super().__init__(text)
        self.reason, self.answer = reason, answer

    @property
    def verdict(self) -> Verdict:
        """What is answered."""
        return Verdict(self.answer, self.reason, str(self))


class AddressGone(Exception):
    """Nobody takes mail at the address any more."""
