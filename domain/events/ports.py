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
        """The tenant's own high watermark now: what is appended from here on stands above it."""
        ...

    async def end(self) -> LogPosition:
        """The end of the tenant's own log as this transaction sees it."""
        ...

    async def network_end(self) -> LogPosition:
        """The end of the network's log in the tenant's mode now. Raises Unavailable: go back to a savepoint then."""
        ...
