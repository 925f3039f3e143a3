"""Everything of an organisation deleted from every table there is, whatever tables a release adds."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from psycopg import sql

from adapters.postgres.nodes.connecting import Connection
from adapters.postgres.nodes.pool import Pool
from domain.kernel.tenancy import Tenant
from ports.signals import Signal

BATCH: Final = 20_000
"""Rows of one transaction: a large organisation's take many, so that nobody waits for long."""
_OF_ORGANISATIONS: Final = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org' AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname = 'jobs' DESC, c.relname
"""
"""Jobs first: what is under way then ends without effect."""
_PUBLISHED: Final = "SELECT id FROM events WHERE owner = %s AND id > %s ORDER BY id LIMIT %s"
_LAST_OF: Final = """
DELETE FROM users u WHERE u.id IN (SELECT m."user" FROM members m WHERE m.org = %s)
    AND NOT EXISTS (SELECT FROM members m WHERE m."user" = u.id AND m.org <> %s)
"""
"""People who belong to no other organisation; their sessions go with them."""
_CREDENTIALS: Final = (
    "api_keys",
    "oauth_apps",
    "oauth_grants",
    "invitations",
    "members",
    "sso_connections",
    "sso_domains",
    "sso_subjects",
)
_ELSEWHERE: Final = {
    "events": "owner",
    "network_checkpoints": "owner",
    "licences": "holder",
    "oauth_families": "organisation",
    "oauth_codes": "organisation",
    "oauth_devices": "organisation",
}
"""Columns that name it elsewhere: copies in the network's log, what others granted to it, and what was signed in for it."""


class PostgresErasure:
    """Erasure: as the owner, across tenants."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def close(self, org: str) -> None:
        async with self._pool.owner() as link, link.connection.transaction():
            await link.connection.execute(_LAST_OF, (org, org))
            for table in _CREDENTIALS:
                statement = sql.SQL("DELETE FROM {} WHERE org = %s").format(sql.Identifier(table))
                await link.connection.execute(statement, (org,))

    async def erase(self, org: str) -> Mapping[str, int]:
        gone: Counter[str] = Counter()
        async with self._pool.owner() as link:
            connection = link.connection
            endpoints = await _all(connection, "SELECT livemode, id FROM webhook_endpoints WHERE org = %s", org)
            gone["webhook_deliveries of others"] += await _forget_told(connection, org)
            for table, column in _ELSEWHERE.items():
                gone[table] += await _delete(connection, table, column, org)
            for table in await _tables(connection):
                gone[table] += await _delete(connection, table, "org", org)
            for livemode, id_ in endpoints:
                payload = Signal(Tenant(org, livemode), id_).payload
                await connection.execute("SELECT pg_notify('joinery_webhooks', %s)", (payload,))
        return {table: count for table, count in gone.items() if count}

    async def forget(self, org: str) -> None:
        async with self._pool.owner() as link:
            await link.connection.execute("DELETE FROM organisations WHERE id = %s", (org,))


async def _forget_told(connection: Connection, org: str) -> int:
    """Empty what others were sent of the events that it published, some events at a time; answers how many deliveries."""
    forgotten, after = 0, ""
    while told := await _all(connection, _PUBLISHED, org, after, BATCH):
        after = told[-1][0]
        emptied = "UPDATE webhook_deliveries SET body = NULL WHERE event = ANY(%s) AND body IS NOT NULL"
        forgotten += (await connection.execute(emptied, ([id_ for (id_,) in told],))).rowcount
    return forgotten


async def _tables(connection: Connection) -> Sequence[str]:
    return [name for (name,) in await (await connection.execute(_OF_ORGANISATIONS)).fetchall()]


async def _all(connection: Connection, statement: str, *values: object) -> list[tuple[Any, ...]]:
    return await (await connection.execute(statement.encode(), values)).fetchall()


async def _delete(connection: Connection, table: str, column: str, org: str) -> int:
    """Batch by batch. Partitions have rows of the same place (`ctid`), so each is named by its own table as well."""
    batch = sql.SQL(
        "DELETE FROM {table} WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM {table} WHERE {column} = %s LIMIT {batch}) "
        "AND {column} = %s"
    ).format(table=sql.Identifier(table), column=sql.Identifier(column), batch=sql.Literal(BATCH))
    total = 0
    while True:
        gone = (await connection.execute(batch, (org, org))).rowcount
        total += gone
        if gone < BATCH:
            return total
