"""The event log in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.memory.table import MemoryStore, Table, Transaction
from domain.events.model import Event
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event at its position in the log of all tenants."""

    position: int
    tenant: Tenant
    event: Event
    at: datetime


EVENTS: Final = Table[LoggedEvent]("events", lambda logged: f"{logged.position:020d}", descending=False)


class MemoryEvents:
    """EventLog."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction
        self._rows = transaction.rows(EVENTS)

    async def append(self, events: Sequence[Event]) -> None:
        """Append in this order."""
        await self._transaction.lock()
        for event in events:
            event.id = event.id or new_id("evt")
            position = self._transaction.store.next_number()
            await self._rows.put(LoggedEvent(position, self._transaction.tenant, event, self._transaction.now))
            self._transaction.recorded.events.append(event)
        if events:
            self._transaction.channels.add("events")


class MemoryEventReader:
    """EventReader. One transaction writes at a time, so everything committed is below the horizon."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store

    async def horizon(self) -> int:
        """The position after the last committed event."""
        return max((logged.position for _, logged in self._store.everyone(EVENTS)), default=0) + 1

    async def log(self) -> Sequence[LoggedEvent]:
        """Everything below the horizon, in order."""
        return sorted((logged for _, logged in self._store.everyone(EVENTS)), key=lambda logged: logged.position)
