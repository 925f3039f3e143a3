"""Ports of outgoing mail: a mail server, and storage of messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.outbox.model import OutgoingMessage


@dataclass(frozen=True, slots=True)
class MailMessage:
    """Plain-text email message to one address. The Message-ID is derived from `id`, so all attempts have the same.

    `unsubscribe_url` is the URL that stops further messages by a POST (RFC 8058); empty for messages that cannot be stopped.
    """

    id: str
    to: str
    subject: str
    text: str
    unsubscribe_url: str = ""


class MailUnsent(Exception):
    """Error for a message that was not sent; unless the error is a MailRefused, a later attempt may succeed."""


class MailRefused(MailUnsent):
    """Error for a message that the mail server refused permanently."""


class Mailer(Protocol):
    """Client of a mail server."""

    async def send(self, message: MailMessage) -> None:
        """Send a message. Raises MailUnsent or MailRefused, whose texts contain no secret."""
        ...


class Outbox(Protocol):
    """Storage of outgoing messages; each call is its own transaction."""

    async def add(self, message: OutgoingMessage) -> None:
        """Store a new message; if a message has the ID already, store nothing."""
        ...

    async def list_latest(self, limit: int) -> Sequence[OutgoingMessage]:
        """Return up to `limit` messages, newest first."""
        ...

    async def claim_due(
        self, now: datetime, until: datetime, created_after: datetime, limit: int
    ) -> Sequence[OutgoingMessage]:
        """Claim due messages, increment their numbers of attempts, and return them, earliest due first.

        Args:
            now: The current time.
            until: When the claim ends.
            created_after: Messages that were created earlier are ignored.
            limit: Maximum number of messages.
        """
        ...

    async def record_sent(self, id: str, now: datetime) -> None:
        """Mark the message as sent and delete its text."""
        ...

    async def record_failure(self, id: str, failure: str, next_at: datetime | None) -> None:
        """Record a failed attempt, and when the next attempt is due (None: never)."""
        ...

    async def delete_created_before(self, before: datetime) -> int:
        """Delete messages created before `before`; return their number."""
        ...
