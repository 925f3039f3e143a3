"""A guard against purges while the database's clock may be wrong."""

import logging
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from adapters.postgres.nodes.connecting import Connection
from adapters.postgres.nodes.pool import Pool

LOG: Final = logging.getLogger("joinery.maintenance")

_PLAUSIBLE: Final = "now() BETWEEN last_at - interval '1 minute' AND last_at + interval '1 day'"
"""The condition that the clock has neither gone back nor jumped ahead since the last purge."""
_CLAIM: Final = f"UPDATE purges SET last_at = now() WHERE {_PLAUSIBLE}"
_STATE: Final = f"SELECT last_at, now(), NOT ({_PLAUSIBLE}) FROM purges"


@dataclass(frozen=True, slots=True)
class PurgeState:
    """The time of the last purge, the database's time, and whether purges are refused."""

    last_at: datetime
    now: datetime
    refused: bool


class PostgresPurgeGuard:
    """Refuses purges when the database's clock has moved by more than a day since the last one, or back.

    A wrong clock cannot be distinguished from a service that was stopped, so an operator has to confirm the clock.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self.refuses = False
        """Whether the last purge was refused."""

    async def claim(self) -> bool:
        """Record a purge and return True, or refuse it."""
        async with self._pool.system() as link:
            return await self.claim_on(link.connection)

    async def claim_on(self, connection: Connection) -> bool:
        """Do as `claim` does, on an open connection."""
        claimed = await connection.execute(_CLAIM)
        refused, self.refuses = self.refuses, claimed.rowcount == 0
        if self.refuses and not refused:
            LOG.error(
                "purges are refused: the database's clock moved by more than a day since the last purge, or back by more than a "
                "minute; if the clock is right (the service was stopped), run `joinery doctor --repair-schedule`"
            )
        return not self.refuses

    async def state(self) -> PurgeState:
        """Return the current state."""
        async with self._pool.system() as link:
            row = await (await link.connection.execute(_STATE)).fetchone()
        assert row is not None
        return PurgeState(*row)

    async def confirm(self) -> None:
        """Accept the database's clock, so that purges resume."""
        async with self._pool.system() as link:
            await link.connection.execute("UPDATE purges SET last_at = now()")
