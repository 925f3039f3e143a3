"""The workload of all organisations, bounded in rows and, by the server, in time."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, LiteralString

from psycopg.errors import QueryCanceled

from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool
from adapters.postgres.sqlfile import statements
from domain.kernel.errors import Unavailable
from domain.kernel.ids import encode, uuid7
from domain.kernel.tenancy import Tenant
from domain.platform.workload import (
    COUNTED,
    LOOKED_AT,
    LOOKED_SOURCES,
    SOURCES,
    TENANTS,
    WINDOW,
    SourceLoad,
    TenantLoad,
)
from domain.sources.model import SourceStatus

SQL = statements("workload")
_BOUNDED: Final = "SET LOCAL statement_timeout = '3s'"
TROUBLED: Final = (SourceStatus.DEGRADED, SourceStatus.BLOCKED)


class PostgresWorkload:
    """Workload."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def tenants(self, now: datetime) -> Sequence[TenantLoad]:
        since = now - WINDOW
        milliseconds = int(since.timestamp() * 1000)
        rows = await self._asked(
            SQL["tenants"], day=now.date(), since=since, position=f"{milliseconds:013d}", counted=COUNTED, looked=LOOKED_AT,
            id=f"dlv_{encode(uuid7(milliseconds, 0))}",
        )  # fmt: skip
        first = sorted(rows, key=lambda row: (row[4] + row[5], row[2], row[3]), reverse=True)[:TENANTS]
        async with self._pool.reference() as link:
            cursor = await link.cursor.execute(SQL["names"], {"orgs": sorted({row[0] for row in first})})
            names = {id_: (name, plan) for id_, name, plan in await cursor.fetchall()}
        return [
            TenantLoad(org, livemode, *names[org], int(records), int(stored), requests, deliveries)
            for org, livemode, records, stored, requests, deliveries in first
            if org in names
        ]

    async def slowest(self) -> Sequence[SourceLoad]:
        rows = await self._asked(SQL["slowest"], looked=LOOKED_SOURCES, limit=SOURCES)
        return sorted((SourceLoad(*row) for row in rows), key=lambda one: one.seconds or 0.0, reverse=True)[:SOURCES]

    async def troubled(self) -> Sequence[SourceLoad]:
        rows = await self._asked(SQL["troubled"], statuses=[str(one) for one in TROUBLED], limit=SOURCES)
        return sorted((SourceLoad(*row) for row in rows), key=lambda one: one.failures, reverse=True)[:SOURCES]

    async def tenant_of_source(self, id: str) -> Tenant | None:
        rows = await self._asked(SQL["tenant_of_source"], id=id)
        return Tenant(*rows[0]) if rows else None

    async def _asked(self, statement: LiteralString, **values: Any) -> list[tuple[Any, ...]]:
        async def ask(link: PooledConnection) -> list[tuple[Any, ...]]:
            try:
                async with link.connection.transaction():
                    await link.cursor.execute(_BOUNDED)
                    return await (await link.cursor.execute(link.here(statement), values)).fetchall()
            except QueryCanceled:  # of a node that is within reach
                raise TimeoutError from None

        try:
            found = await self._pool.scatter_best_effort(ask)
        except TimeoutError:
            raise Unavailable("It took longer than three seconds to find out.") from None
        return [row for rows in found for row in rows]
