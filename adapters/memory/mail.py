"""Whose an inbound address is, in memory."""

from adapters.memory.sources import SOURCES
from adapters.memory.table import MemoryDatabase
from domain.mail.ports import Recipient


class MemoryInboundAddresses:
    """InboundAddresses."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    async def find(self, address: str) -> Recipient | None:
        for tenant, source in self._store.everyone(SOURCES):
            if source.inbound_address == address:
                return Recipient(tenant, source.id, address)
        return None
