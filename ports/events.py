"""The event log: appended in the transaction, visible below a horizon (architecture §5)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.events.model import Event
from domain.kernel.tenancy import Tenant


class EventLog(Protocol):
    """In a tenant's transaction."""

    async def append(self, events: Sequence[Event]) -> None:
        """Append in this order; events without an id are given one. Subject rows must be locked before."""
        ...


class EventReader(Protocol):
    """Across tenants: what feed, stream and webhooks read."""

    async def horizon(self) -> int:
        """The position below which no further event can appear; it never goes back."""
        ...


class EventRendering(Protocol):
    """JSON of events, the bytes that every reader gets."""

    def event(self, event: Event, tenant: Tenant, time: datetime) -> bytes:
        """The envelope with its data (specification, Events)."""
        ...
