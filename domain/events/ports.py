"""The event log of a tenant, appended to in the transaction."""

from collections.abc import Sequence
from typing import Protocol

from domain.events.model import Event, LogPosition


class EventLog(Protocol):
    """In a tenant's transaction."""

    async def append(self, events: Sequence[Event]) -> None:
        """Append in this order when the transaction commits; events without an id are given one at once.

        Subject rows must be locked before.
        """
        ...

    async def high_watermark(self) -> int:
        """Return the tenant's current high watermark; later events are above it."""
        ...

    async def end(self) -> LogPosition:
        """Return the end of the tenant's own log as this transaction sees it."""
        ...

    async def network_end(self) -> LogPosition:
        """Return the current end of the network log in the tenant's mode. Raises Unavailable; return to a savepoint then."""
        ...
