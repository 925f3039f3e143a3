"""Messages that reached a source's address, and whose an address is, in PostgreSQL."""

from typing import Final

from adapters.postgres.nodes.pool import Pool, reading
from adapters.postgres.sqlfile import statements
from adapters.postgres.table import Table
from domain.kernel.tenancy import Tenant
from domain.mail.model import InboundMessage
from domain.mail.ports import Recipient

SQL = statements("mail")
INBOUND_MESSAGES: Final = Table(InboundMessage, "inbound_messages")


class PostgresInboundAddresses:
    """Across tenants: every node is asked for the sources that it holds."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self, address: str) -> Recipient | None:
        """An address that no node knows is asked for again, so that one out of reach makes it uncertain, not unknown."""
        asked = reading(SQL["address"], address=address)
        found = [row for rows in await self._pool.scatter_best_effort(asked) for row in rows]
        if not found and len(await self._pool.holding()) > 1:
            found = [row for rows in await self._pool.scatter_all(asked) for row in rows]
        return Recipient(Tenant(found[0][0], found[0][1]), found[0][2], address) if found else None
