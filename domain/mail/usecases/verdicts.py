"""Decisions about messages, and the replies to their senders."""

from dataclasses import dataclass

from domain.kernel.enums import StoredEnum
from domain.mail.model import MessageReason


class MailDisposition(StoredEnum):
    """Decisions about a message: accepted, refused permanently, or to be sent again later."""

    TAKEN = "taken"
    REFUSED = "refused"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class MessageVerdict:
    """Decision about a message, with the reply to the sending server.

    Attributes:
        disposition: Whether the message is accepted, refused, or to be sent again later.
        reason: The reason of the disposition, or None.
        reply_text: The text of the reply, which the sender may read.
    """

    disposition: MailDisposition
    reason: MessageReason | None
    reply_text: str


UNKNOWN_ADDRESS = MessageVerdict(MailDisposition.REFUSED, None, "This address does not exist.")
"""Reply if the address was replaced, or its source deleted, while the message was transmitted."""


class MessageRefused(Exception):
    """The message is refused. The text is the reason, for the sender and the members of the organisation."""

    def __init__(
        self, reason: MessageReason, text: str, disposition: MailDisposition = MailDisposition.REFUSED
    ) -> None:
        super().__init__(text)
        self.reason, self.disposition = reason, disposition

    @property
    def verdict(self) -> MessageVerdict:
        """The decision to refuse the message, with the reply to its sender."""
        return MessageVerdict(self.disposition, self.reason, str(self))


class AddressGone(Exception):
    """The inbound address no longer accepts mail: it was replaced, or its source was deleted."""
