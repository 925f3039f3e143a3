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
"""Seconds between two checks of the schema."""
MAX_AGE: Final = 1.0
"""Seconds for which `require` reuses the result of a check."""
_NOT_MIGRATED: Final = (
    errors.UndefinedTable,
    errors.UndefinedColumn,
    errors.UndefinedObject,
    errors.InsufficientPrivilege,
    errors.InvalidParameterValue,
)
"""Errors of a database that no release with this check has migrated: a role, table, column or privilege is missing."""
_STATEMENT: Final = "SELECT array_agg(name ORDER BY name), max(oldest_compatible) FROM schema_migrations"


class PostgresSchemaCheck:
    """SchemaCheck."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._checking: asyncio.Task[str | None] | None = None
        self._checked_at = float("-inf")
        self.fault: str | None = None

    async def check(self) -> str | None:
        """Check now; concurrent callers share one check. Raises Unavailable while the database does not answer."""
        if self._checking is None or self._checking.done():
            self._checking = asyncio.create_task(self._check(), name="schema check")
        return await asyncio.shield(self._checking)

    async def require(self) -> None:
        """Raise Unavailable unless the schema is compatible, as of at most MAX_AGE ago."""
        is_fresh = asyncio.get_running_loop().time() - self._checked_at < MAX_AGE
        if (self.fault if is_fresh else await self.check()) is not None:
            raise SchemaMismatch

    async def watch(self, *, until_fault: bool = False) -> None:
        """Check regularly, until cancelled or, with `until_fault`, until there is a fault.

        While the database does not answer, the last result is kept.
        """
        while True:
            try:
                await self.check()
            except Exception as error:
                LOG.debug("the schema could not be read: %s", error)
            if until_fault and self.fault:
                return
            # The result is unknown until the first check succeeds, so checks are more frequent until then.
            await asyncio.sleep(EVERY if self._checked_at > float("-inf") else MAX_AGE)

    async def _check(self) -> str | None:
        try:
            async with self._pool.system() as link:
                row = await (await link.connection.execute(_STATEMENT)).fetchone()
            assert row is not None
            fault = Compatibility.recorded(row[0] or [], row[1] or 0).fault()
        except _NOT_MIGRATED as error:
            LOG.debug("schema_migrations cannot be read: %s", error)
            fault = "The database has not been migrated to this release's schema; run `joinery migrate`."
            if OPERATOR in (error.diag.message_primary or ""):
                fault = f"The login cannot SET ROLE {OPERATOR}; see docs/operations.md#rights-in-the-database."
        if fault != self.fault:
            LOG.log(logging.ERROR if fault else logging.INFO, "%s", fault or "the schema fits this release")
        self.fault, self._checked_at = fault, asyncio.get_running_loop().time()
        return fault
