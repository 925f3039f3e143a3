"""The schema check of a running process (docs/operations.md#upgrades)."""

import asyncio
import logging
from typing import Final

from psycopg import errors

from adapters.postgres.migrate import Compatibility
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.privileges import OPERATOR
from domain.kernel.errors import SchemaMismatch

LOG: Final = logging.getLogger("joinery.schema")
EVERY: Final = 15.0
"""Seconds between two looks at the schema."""
FRESH: Final = 1.0
"""Seconds for which a look is good enough to refuse a credential by."""
_NOT_MIGRATED: Final = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedObject,
    errors.InsufficientPrivilege,
    errors.InvalidParameterValue,
)
"""Of an empty database, or one that no release with this check has migrated: role, table, column or right is missing."""
_STATEMENT: Final = "SELECT array_agg(name ORDER BY name), max(oldest_compatible) FROM schema_migrations"


class PostgresSchema:
    """The check whether this release works on the database's schema, with its last result."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._looking: asyncio.Task[str | None] | None = None
        self._looked_at = float("-inf")
        self.fault: str | None = None

    async def look(self) -> str | None:
        """Look now; concurrent callers share one look. Raises Unavailable while the database does not answer."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look(), name="looking at the schema")
        return await asyncio.shield(self._looking)

    async def confirm(self) -> None:
        """Raise Unavailable unless the schema fits, as of a second ago at most."""
        fresh = asyncio.get_running_loop().time() - self._looked_at < FRESH
        if (self.fault if fresh else await self.look()) is not None:
            raise SchemaMismatch

    async def watch(self, *, until_fault: bool = False) -> None:
        """Look again and again, until cancelled or, if asked for, until it does not fit; an absent database changes nothing."""
        while True:
            try:
                await self.look()
            except Exception as error:
                LOG.debug("the schema could not be read: %s", error)
            if until_fault and self.fault:
                return
            # Until the first look succeeds nothing is known, so the database is asked more often.
            await asyncio.sleep(EVERY if self._looked_at > float("-inf") else FRESH)

    async def _look(self) -> str | None:
        try:
            async with self._pool.system() as link:
                row = await (await link.connection.execute(_STATEMENT)).fetchone()
            assert row is not None
            fault = Compatibility(row[0] or [], row[1] or 0).fault()
        except _NOT_MIGRATED as error:
            LOG.debug("schema_migrations cannot be read: %s", error)
            fault = "The database has not been migrated to this release's schema; run `joinery migrate`."
            if OPERATOR in (error.diag.message_primary or ""):
                fault = f"The login cannot SET ROLE {OPERATOR}; see docs/operations.md#rights-in-the-database."
        if fault != self.fault:
            LOG.log(logging.ERROR if fault else logging.INFO, "%s", fault or "the schema fits this release")
        self.fault, self._looked_at = fault, asyncio.get_running_loop().time()
        return fault
