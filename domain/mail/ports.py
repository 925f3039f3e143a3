"""Ports of inbound mail: look-up of recipients, parsing of messages, and authentication of senders."""

from dataclasses import dataclass
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.mail.model import Authentication, Envelope, ParsedMessage


@dataclass(frozen=True, slots=True)
class Recipient:
    """Source that accepts mail at the inbound address `address`."""

    tenant: Tenant
    source: str
    address: str


class InboundAddresses(Protocol):
    """Look-up of sources by inbound address, for all tenants."""

    async def find_recipient(self, address: str) -> Recipient | None:
        """Return the source that accepts mail at the address, or None.

        Raises Unavailable if the look-up fails.
        """
        ...


class MessageParser(Protocol):
    """Parser of messages, which limits time and memory and does not block the event loop."""

    async def parse(self, raw: bytes) -> ParsedMessage:
        """Parse the message in `raw`. Raises MessageUnreadable."""
        ...


class SenderChecks(Protocol):
    """Checks by SPF, DKIM and DMARC that the sender of a message is genuine."""

    async def check(self, raw: bytes, author_address: str, envelope: Envelope) -> Authentication:
        """Check whether the message in `raw` was sent with the permission of the author's domain; return the results.

        `author_address` is the email address of the message's author. The duration is limited, and no message causes an
        exception.
        """
        ...
