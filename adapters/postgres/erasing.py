"""Deletion of all rows of an organisation, from all tables of the schema."""

from collections import Counter
from collections.abc import Mapping

from psycopg import sql

from adapters.postgres.nodes.connecting import Connection, fetch
from adapters.postgres.nodes.pool import Pool
from domain.kernel.tenancy import Tenant
from ports.signals import Signal

BATCH = 20_000
"""Rows per transaction, so that locks of a large deletion are short."""
_TABLES_BY_ORG = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org' AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname = 'jobs' DESC, c.relname
"""
"""Tables with a column `org`, jobs first, so that running jobs end without effect."""
_PUBLISHED = "SELECT id FROM events WHERE owner = %s AND id > %s ORDER BY id LIMIT %s"
_SOLE_MEMBERS = 'SELECT "user" FROM members GROUP BY "user" HAVING bool_and(org = %s)'
"""Users who are members of no other organisation; their sessions are deleted with them."""
_DELETE_USERS = "DELETE FROM users WHERE id = ANY(%s)"
"""A separate statement, because in a cluster `users` is on the coordinator and cannot be changed by a statement that reads `members`."""
_CREDENTIALS = (
    "api_keys",
    "oauth_apps",
    "oauth_grants",
    "invitations",
    "members",
    "sso_connections",
    "sso_domains",
    "sso_subjects",
)
_ROWS_OF_OTHERS = {"events": "owner", "network_checkpoints": "owner", "licences": "holder"}
"""Columns of other organisations' rows that refer to the organisation: copies in the network log, and licences granted to it."""
_SIGN_IN_TABLES = ("oauth_families", "oauth_codes", "oauth_devices")


class PostgresErasure:
    """Erasure across tenants, as the owner of the schema."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def close(self, org: str) -> None:
        async with self._pool.owner() as link, link.connection.transaction():
            people = [user for (user,) in await fetch(link.connection, _SOLE_MEMBERS, (org,))]
            await link.connection.execute(_DELETE_USERS, (people,))
            for table in _CREDENTIALS:
                statement = sql.SQL("DELETE FROM {} WHERE org = %s").format(sql.Identifier(table))
                await link.connection.execute(statement, (org,))

    async def erase(self, org: str) -> Mapping[str, int]:
        deleted: Counter[str] = Counter()
        async with self._pool.owner() as link:
            connection = link.connection
            endpoints = await fetch(connection, "SELECT livemode, id FROM webhook_endpoints WHERE org = %s", (org,))
            deleted["webhook_deliveries of others"] += await _empty_sent_bodies(connection, org)
            for table, column in _ROWS_OF_OTHERS.items():
                statement = sql.SQL("SELECT DISTINCT org FROM {} WHERE {} = %s").format(
                    sql.Identifier(table), sql.Identifier(column)
                )
                for (other,) in await fetch(connection, statement, (org,)):
                    deleted[table] += await _delete(connection, table, {"org": other, column: org})
            for table in _SIGN_IN_TABLES:
                deleted[table] += await _delete(connection, table, {"organisation": org})
            for (table,) in await fetch(connection, _TABLES_BY_ORG):
                deleted[table] += await _delete(connection, table, {"org": org})
            for livemode, id_ in endpoints:
                payload = Signal(Tenant(org, livemode), id_).payload
                await connection.execute("SELECT pg_notify('joinery_webhooks', %s)", (payload,))
        return {table: count for table, count in deleted.items() if count}

    async def forget(self, org: str) -> None:
        async with self._pool.owner() as link:
            await link.connection.execute("DELETE FROM organisations WHERE id = %s", (org,))


async def _empty_sent_bodies(connection: Connection, org: str) -> int:
    """Remove the bodies of other organisations' deliveries of the organisation's events; return the number of deliveries."""
    total, after = 0, ""
    while events := await fetch(connection, _PUBLISHED, (org, after, BATCH)):
        after = events[-1][0]
        statement = "UPDATE webhook_deliveries SET body = NULL WHERE event = ANY(%s) AND body IS NOT NULL"
        total += (await connection.execute(statement, ([id_ for (id_,) in events],))).rowcount
    return total


async def _delete(connection: Connection, table: str, values: Mapping[str, str]) -> int:
    """Delete the rows with these values in batches; return their number.

    Rows of different partitions may have the same `ctid`, so the table is compared as well. A cluster finds rows by `ctid` only if the
    condition on the organisation selects a shard.
    """
    condition = sql.SQL(" AND ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), value) for name, value in values.items()
    )
    batch = sql.SQL(
        "DELETE FROM {table} WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM {table} WHERE {condition} LIMIT {batch}) AND {condition}"
    ).format(table=sql.Identifier(table), condition=condition, batch=sql.Literal(BATCH))
    total = 0
    while True:
        deleted = (await connection.execute(batch)).rowcount
        total += deleted
        if deleted < BATCH:
            return total
