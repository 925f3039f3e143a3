"""What stores of rows that lie in one place, with the coordinator, have in common: named statements, each a transaction of its own."""

from collections.abc import Mapping
from typing import Any, ClassVar, LiteralString

from adapters.postgres.nodes.pool import Pool

Row = tuple[Any, ...]


class CoordinatorStore:
    """A store whose rows are no tenant's."""

    _sql: ClassVar[Mapping[str, LiteralString]]
    """Its statements, by name."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def _rows(self, statement: str, **values: Any) -> list[Row]:
        """Every row."""
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(self._sql[statement], values)
            return await cursor.fetchall()

    async def _one(self, statement: str, **values: Any) -> Row | None:
        """The first row, or None."""
        async with self._pool.system() as link:
            cursor = await link.cursor.execute(self._sql[statement], values)
            return await cursor.fetchone()

    async def _run(self, statement: str, **values: Any) -> int:
        """Execute; answers how many rows it touched."""
        async with self._pool.system() as link:
            return (await link.cursor.execute(self._sql[statement], values)).rowcount
