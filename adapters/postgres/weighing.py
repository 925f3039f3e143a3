"""Rows of a log, read at once where their bodies are ordinary, else as many as weigh so much."""

from typing import Any, Final, LiteralString

from adapters.postgres.events import SQL
from adapters.postgres.node_pool import PooledConnection
from adapters.postgres.session import Fetched
from domain.kernel.tenancy import Tenant

WHATEVER: Final = 1 << 30
"""The share of a body that is read however large it is."""


async def fetched(link: PooledConnection, log: Tenant, sql: LiteralString, values: dict[str, Any]) -> list[Fetched]:
    """What a statement about a log answers; nothing for one that answers nothing."""
    cursor = await link.cursor.execute(sql, {"org": log.org, "livemode": log.livemode, **values})
    return await cursor.fetchall() if cursor.description else []


async def weighed(
    link: PooledConnection,
    log: Tenant,
    chosen: LiteralString,
    values: dict[str, Any],
    most_bytes: int,
    direction: int = 1,
) -> list[Fetched]:
    """The rows of a page up to the one that reaches the weight."""
    sql = SQL["weighed"].replace("{chosen}", chosen)
    given = values | {"share": WHATEVER, "most_bytes": most_bytes, "direction": direction}
    return await fetched(link, log, sql, given)
