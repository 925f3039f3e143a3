"""Delivery of mail to a server, and storage of outgoing messages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.outbox.model import OutgoingMessage


@dataclass(frozen=True, slots=True)
class Letter:
    """A plain-text message to one address. `id` determines its Message-ID, the same at each attempt."""

    id: str
    to: str
    subject: str
    text: str


class MailUnsent(Exception):
    """The message was not accepted; another attempt may succeed."""


class MailRefused(MailUnsent):
    """The server refused the message permanently."""


class Mailer(Protocol):
    """A mail server."""

    async def send(self, letter: Letter) -> None:
        """Send a message. Raises MailUnsent, MailRefused; their texts contain no secret."""
        ...


class Outbox(Protocol):
    """Outgoing messages; each call is its own transaction."""

    async def add(self, message: OutgoingMessage) -> None:
        """Store a new message."""
        ...

    async def latest(self, limit: int) -> Sequence[OutgoingMessage]:
        """Return the newest messages first."""
        ...

    async def claim(
        self, now: datetime, until: datetime, not_before: datetime, limit: int
    ) -> Sequence[OutgoingMessage]:
        """Claim due messages `until` then, longest due first, each with its number of attempts raised.

        Those created before `not_before` are ignored.
        """
        ...

    async def sent(self, id: str, now: datetime) -> None:
        """Mark the message as sent and delete its text."""
        ...

    async def failed(self, id: str, failure: str, next_at: datetime | None) -> None:
        """Record a failed attempt, with the next one or None."""
        ...

    async def forget(self, before: datetime) -> int:
        """Delete messages created before then; return their number."""
        ...
