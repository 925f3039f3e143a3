"""The event log of a tenant, to which transactions append events."""

from collections.abc import Sequence
from typing import Protocol

from domain.events.model import Event, LogPosition


class EventLog(Protocol):
    """Event log in a tenant's transaction, to which events are appended."""

    async def append(self, events: Sequence[Event]) -> None:
        """Append the events in this order when the transaction commits; set the IDs of events without one now.

        The caller must have locked the rows of the events' subjects.
        """
        ...

    async def get_high_watermark(self) -> int:
        """Return the position of the newest event in the tenant's own log; later events have higher positions."""
        ...

    async def get_end(self) -> LogPosition:
        """Return the end of the tenant's own log, as this transaction sees it."""
        ...

    async def get_network_end(self) -> LogPosition:
        """Return the current end of the network log (events of published catalogues) in the tenant's mode.

        Raises Unavailable; the transaction must then be rolled back to a savepoint.
        """
        ...
