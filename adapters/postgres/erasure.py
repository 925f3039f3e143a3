"""Deletion of all rows of an organisation, from all tables of the schema."""

from collections import Counter
from collections.abc import Mapping

from psycopg import sql

from adapters.postgres.brand import PROFILES, list_terms
from adapters.postgres.nodes.connections import Connection, fetch_rows
from adapters.postgres.nodes.pool import Pool
from domain.brand.model import ProfileStatus
from domain.brand.names import status_term
from domain.kernel.tenancy import Tenant
from ports.signals import Signal

MAX_ROWS_PER_TRANSACTION = 20_000
"""Maximum number of rows that one transaction deletes, so that a large deletion holds locks only briefly."""
_TABLES_BY_ORG = """
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org' AND NOT a.attisdropped
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname = 'jobs' DESC, c.relname
"""
"""Query of the tables with a column `org`. The table `jobs` is first, so that running jobs end without effect."""
_PUBLISHED_EVENTS = "SELECT id FROM events WHERE owner = %s AND id > %s ORDER BY id LIMIT %s"
_SOLE_MEMBERS = 'SELECT "user" FROM members GROUP BY "user" HAVING bool_and(org = %s)'
"""Query of the users who are members of this organisation only."""
_DELETE_USERS = "DELETE FROM users WHERE id = ANY(%s)"
"""SQL statement that deletes users, and thereby their sessions.

In a cluster `users` is on the coordinator, so the statement cannot read the distributed `members`.
"""
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
_REFERRING_COLUMN_BY_TABLE = {
    "events": "owner",
    "network_checkpoints": "owner",
    "licences": "holder",
    "demand_hours": "vendor",
}
"""Columns that refer to the erased organisation in other organisations' rows, by table.

The rows are copies of the erased organisation's published events, checkpoints of the copying, licences that were granted to
the erased organisation, and signals about the erased organisation's products.
"""
_RELEASE_PROFILE = """
UPDATE vendor_profiles SET holder = NULL, status = 'unclaimed', verified = false, verified_at = NULL, catalogue = service_catalogue
WHERE livemode = %s AND id = %s
"""
_RELEASE_TERM = "UPDATE vendor_profile_terms SET term = %s WHERE livemode = %s AND term = %s AND profile = %s"
_DELETE_TERMS = "DELETE FROM vendor_profile_terms WHERE livemode = %s AND term = ANY(%s) AND profile = %s"
_SIGN_IN_TABLES = ("oauth_families", "oauth_codes", "oauth_devices")


class PostgresErasure:
    """Erasure of organisations with the privileges of the schema's owner (port Erasure in domain/orgs/ports.py)."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def revoke_access(self, org: str) -> None:
        async with self._pool.connect_as_owner() as connection, connection.driver_connection.transaction():
            people = [user for (user,) in await fetch_rows(connection.driver_connection, _SOLE_MEMBERS, (org,))]
            await connection.driver_connection.execute(_DELETE_USERS, (people,))
            for table in _CREDENTIALS:
                statement = sql.SQL("DELETE FROM {} WHERE org = %s").format(sql.Identifier(table))
                await connection.driver_connection.execute(statement, (org,))

    async def delete_data(self, org: str) -> Mapping[str, int]:
        deleted: Counter[str] = Counter()
        async with self._pool.connect_as_owner() as pooled_connection:
            connection = pooled_connection.driver_connection
            endpoints = await fetch_rows(
                connection, "SELECT livemode, id FROM webhook_endpoints WHERE org = %s", (org,)
            )
            deleted["webhook_deliveries of others"] += await _remove_delivery_bodies(connection, org)
            for table, column in _REFERRING_COLUMN_BY_TABLE.items():
                statement = sql.SQL("SELECT DISTINCT org FROM {} WHERE {} = %s").format(
                    sql.Identifier(table), sql.Identifier(column)
                )
                for (other,) in await fetch_rows(connection, statement, (org,)):
                    deleted[table] += await _delete_rows(connection, table, {"org": other, column: org})
            deleted["vendor_profiles"] += await _delete_profiles(connection, org)
            for table in _SIGN_IN_TABLES:
                deleted[table] += await _delete_rows(connection, table, {"organisation": org})
            for (table,) in await fetch_rows(connection, _TABLES_BY_ORG):
                deleted[table] += await _delete_rows(connection, table, {"org": org})
            for livemode, id_ in endpoints:
                payload = Signal(Tenant(org, livemode), id_).payload
                await connection.execute("SELECT pg_notify('joinery_webhooks', %s)", (payload,))
        return {table: count for table, count in deleted.items() if count}

    async def delete_organisation(self, org: str) -> None:
        async with self._pool.connect_as_owner() as connection:
            await connection.driver_connection.execute("DELETE FROM organisations WHERE id = %s", (org,))


async def _delete_profiles(connection: Connection, org: str) -> int:
    """Delete the vendor profiles that the organisation holds, and return those from gathered data to the service.

    Returns the number of profiles.
    """
    names = sql.SQL(PROFILES.build_column_list())
    statement = sql.SQL("SELECT livemode, {} FROM vendor_profiles WHERE holder = %s").format(names)
    rows = await fetch_rows(connection, statement, (org,))
    for livemode, *row in rows:
        profile = PROFILES.build_from_row(*row)
        if profile.is_gathered:
            await connection.execute(_RELEASE_PROFILE, (livemode, profile.id))
            old = status_term(profile.status, verified=profile.verified)
            new = status_term(ProfileStatus.UNCLAIMED, verified=False)
            await connection.execute(_RELEASE_TERM, (new, livemode, old, profile.id))
            continue
        await connection.execute(_DELETE_TERMS, (livemode, list_terms(profile), profile.id))
        await connection.execute("DELETE FROM vendor_profiles WHERE livemode = %s AND id = %s", (livemode, profile.id))
    return len(rows)


async def _remove_delivery_bodies(connection: Connection, org: str) -> int:
    """Remove the bodies of webhook deliveries that contain events of the organisation; return the number of deliveries."""
    total, after = 0, ""
    while events := await fetch_rows(connection, _PUBLISHED_EVENTS, (org, after, MAX_ROWS_PER_TRANSACTION)):
        after = events[-1][0]
        statement = "UPDATE webhook_deliveries SET body = NULL WHERE event = ANY(%s) AND body IS NOT NULL"
        total += (await connection.execute(statement, ([id_ for (id_,) in events],))).rowcount
    return total


async def _delete_rows(connection: Connection, table: str, values: Mapping[str, str]) -> int:
    """Delete the rows of a table whose columns have these values (by column), in batches; return the number of rows."""
    condition = sql.SQL(" AND ").join(
        sql.SQL("{} = {}").format(sql.Identifier(name), value) for name, value in values.items()
    )
    # Rows of different partitions may have the same ctid, so tableoid is compared as well. A cluster finds rows by ctid only
    # if the condition on the organisation selects a shard, so the condition is repeated.
    batch = sql.SQL(
        "DELETE FROM {table} WHERE (tableoid, ctid) IN (SELECT tableoid, ctid FROM {table} WHERE {condition} LIMIT {batch}) AND {condition}"
    ).format(table=sql.Identifier(table), condition=condition, batch=sql.Literal(MAX_ROWS_PER_TRANSACTION))
    total = 0
    while True:
        deleted = (await connection.execute(batch)).rowcount
        total += deleted
        if deleted < MAX_ROWS_PER_TRANSACTION:
            return total
