"""The base of stores whose rows are at the coordinator: named statements, each its own transaction."""

from collections.abc import Mapping
from typing import Any, ClassVar, LiteralString

from adapters.postgres.nodes.pool import Pool

Row = tuple[Any, ...]


class CoordinatorStore:
    """A store whose rows belong to no tenant."""

    _sql: ClassVar[Mapping[str, LiteralString]]
    """Its statements, by name."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def _rows(self, statement: str, **values: Any) -> list[Row]:
        """Return every row."""
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(self._sql[statement], values)
            return await cursor.fetchall()

    async def _one(self, statement: str, **values: Any) -> Row | None:
        """Return the first row, or None."""
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(self._sql[statement], values)
            return await cursor.fetchone()

    async def _run(self, statement: str, **values: Any) -> int:
        """Execute; return how many rows it touched."""
        async with self._pool.system() as link:
            return (await link.cursor.execute(self._sql[statement], values)).rowcount
