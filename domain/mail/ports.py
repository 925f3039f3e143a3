"""Recipients, parsing and authentication of inbound mail."""

from dataclasses import dataclass
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.mail.model import Authentication, Envelope, ReadMessage


@dataclass(frozen=True, slots=True)
class Recipient:
    """A source that accepts mail at `address`."""

    tenant: Tenant
    source: str
    address: str


class InboundAddresses(Protocol):
    """Look-up of inbound addresses across tenants."""

    async def find(self, address: str) -> Recipient | None:
        """Return the source that accepts mail at that address, or None.

        Raises Unavailable if that cannot be determined.
        """
        ...


class MessageReader(Protocol):
    """Parser of messages, within bounds and off the event loop."""

    async def read(self, raw: bytes) -> ReadMessage:
        """Return author, subject and files. Raises MessageUnreadable."""
        ...


class SenderChecks(Protocol):
    """SPF, DKIM and DMARC."""

    async def check(self, raw: bytes, author: str, envelope: Envelope) -> Authentication:
        """Return the results for a message by that author (an address).

        Takes a bounded time; never raises because of what is sent.
        """
        ...
