"""Inbound mail: whose an address is, what a message says, and who sent it."""

from dataclasses import dataclass
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.mail.model import Authentication, Envelope, ReadMessage


@dataclass(frozen=True, slots=True)
class Recipient:
    """A source that takes mail at `address`."""

    tenant: Tenant
    source: str
    address: str


class InboundAddresses(Protocol):
    """Across tenants: before it is known whose mail it is."""

    async def find(self, address: str) -> Recipient | None:
        """Who takes mail at that address now. Raises Unavailable when that cannot be said for certain."""
        ...


class MessageReader(Protocol):
    """Reads what a message says, within bounds and off the event loop."""

    async def read(self, raw: bytes) -> ReadMessage:
        """Parse author, subject and files. Raises MessageUnreadable."""
        ...


class SenderChecks(Protocol):
    """SPF, DKIM and DMARC."""

    async def check(self, raw: bytes, author: str, envelope: Envelope) -> Authentication:
        """Authenticate a message by its author (an address) within bounded time; never raises for message content."""
        ...
