"""Handing mail to a server that passes it on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from domain.outbox.model import OutgoingMessage


@dataclass(frozen=True, slots=True)
class Letter:
    """What is sent: plain text to one address. `id` makes its Message-ID, alike at each attempt."""

    id: str
    to: str
    subject: str
    text: str


class MailUnsent(Exception):
    """It was not taken; another attempt may succeed."""


class MailRefused(MailUnsent):
    """It never will be: the server refused it for good."""


class Mailer(Protocol):
    """One server that takes mail."""

    async def send(self, letter: Letter) -> None:
        """Hand it over. Raises MailUnsent, MailRefused; their texts have no secret."""
        ...


class Outbox(Protocol):
    """Messages to people. Each call is a transaction of its own."""

    async def add(self, message: OutgoingMessage) -> None:
        """Keep a new message."""
        ...

    async def latest(self, limit: int) -> Sequence[OutgoingMessage]:
        """Return the newest messages first."""
        ...

    async def claim(
        self, now: datetime, until: datetime, not_before: datetime, limit: int
    ) -> Sequence[OutgoingMessage]:
        """Claim the longest-due messages until a time, and count an attempt; messages created before `not_before` stay."""
        ...

    async def sent(self, id: str, now: datetime) -> None:
        """Record that the message was accepted, and delete its text."""
        ...

    async def failed(self, id: str, failure: str, next_at: datetime | None) -> None:
        """Record a failed attempt; it is retried at a time, or never (None)."""
        ...

    async def forget(self, before: datetime) -> int:
        """Delete those made before then; answers how many."""
        ...
