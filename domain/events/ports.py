"""The event log of a tenant, to which transactions append."""

from collections.abc import Sequence
from typing import Protocol

from domain.events.model import Event, LogPosition


class EventLog(Protocol):
    """The event log in a tenant's transaction."""

    async def append(self, events: Sequence[Event]) -> None:
        """Append in this order when the transaction commits; events without an id get one at once.

        Subject rows must be locked before.
        """
        ...

    async def high_watermark(self) -> int:
        """Return the present high watermark of the tenant's own log; later events are above it."""
        ...

    async def end(self) -> LogPosition:
        """Return the end of the tenant's own log as this transaction sees it."""
        ...

    async def network_end(self) -> LogPosition:
        """Return the present end of the network log in the tenant's mode.

        After Unavailable, roll back to a savepoint. Raises Unavailable.
        """
        ...
