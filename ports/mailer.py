"""Handing mail to a server that passes it on."""

from dataclasses import dataclass
from typing import Protocol


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
