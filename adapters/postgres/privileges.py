"""What the role that processes work as may do, table by table: no more than their statements need."""

from typing import Final, LiteralString

from psycopg import sql

from adapters.postgres.connecting import Connection
from adapters.postgres.pool import ROLE

_READ: Final = "SELECT"
_APPEND: Final = "SELECT, INSERT"
_CHANGE: Final = "SELECT, INSERT, UPDATE"
_REPLACE: Final = "SELECT, INSERT, DELETE"
_ALL: Final = "SELECT, INSERT, UPDATE, DELETE"

PRIVILEGES: Final[dict[str, LiteralString]] = {
    # plans, licences and the log's low watermark are operators' and maintenance's, who act as the owner
    "plans": _READ,
    "licences": _READ,
    "event_low_watermark": _READ,
    # organisations are made by operators, and none may choose another plan for itself
    "organisations": "SELECT, UPDATE (api_version)",
    "members": _APPEND,
    "api_keys": _CHANGE,
    # resources of plain stores, which can also remove
    "sources": _ALL,
    "runs": _ALL,
    "uploads": _ALL,
    "webhook_endpoints": _ALL,
    "webhook_deliveries": _ALL,
    # what was written down stays as it was; maintenance drops it by age
    "audit_entries": _APPEND,
    "events": _APPEND,
    "request_logs": _APPEND,
    "idempotency_keys": "SELECT, INSERT, DELETE, UPDATE (body)",
    "push_parts": _ALL,
    "stored_objects": _ALL,
    "storage_usage": _CHANGE,
    "key_ring": _CHANGE,
    "jobs": _ALL,
    "row_fingerprints": _CHANGE,
    "products": _CHANGE,
    "product_documents": _CHANGE,
    "product_terms": _REPLACE,
    "variants": _CHANGE,
    "offers": _CHANGE,
    "platform_checks": _ALL,
}
"""A table that is not named (`schema_migrations`) is none of its business; a partition is reached through its parent,
where the policies stand."""
SEQUENCES: Final[dict[str, LiteralString]] = {"event_position": "USAGE, SELECT"}

_OWNED: Final = """
SELECT c.relname, c.relkind = 'S' FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'S')
    AND pg_has_role(c.relowner, 'USAGE')
"""


async def grant(connection: Connection) -> None:
    """Make the role when there is none, and leave it, and everybody else, with exactly these rights."""
    await connection.execute(
        f"""DO $$ BEGIN
            IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '{ROLE}') THEN CREATE ROLE {ROLE} NOLOGIN; END IF;
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$""".encode()
    )
    database = sql.Identifier(connection.info.dbname)
    role = sql.Identifier(ROLE)
    await connection.execute(sql.SQL("GRANT {} TO CURRENT_USER").format(role))
    await connection.execute(sql.SQL("REVOKE ALL ON DATABASE {} FROM {}").format(database, role))
    await connection.execute(sql.SQL("REVOKE TEMPORARY ON DATABASE {} FROM PUBLIC").format(database))
    await connection.execute(sql.SQL("GRANT TEMPORARY ON DATABASE {} TO {}").format(database, role))
    await connection.execute(sql.SQL("REVOKE ALL ON SCHEMA public FROM PUBLIC, {}").format(role))
    await connection.execute(sql.SQL("GRANT USAGE ON SCHEMA public TO {}").format(role))
    cursor = await connection.execute(_OWNED)
    for name, sequence in await cursor.fetchall():
        await close(connection, name, sequence=sequence)
        if privileges := (SEQUENCES if sequence else PRIVILEGES).get(name):
            rights = sql.SQL(privileges), sql.Identifier("public", name), role
            await connection.execute(sql.SQL("GRANT {} ON {} TO {}").format(*rights))


async def close(connection: Connection, name: str, *, sequence: bool = False) -> None:
    """Take every right on a table or sequence from everybody but its owner."""
    kind = sql.SQL("SEQUENCE" if sequence else "TABLE")
    closed = kind, sql.Identifier("public", name), sql.Identifier(ROLE)
    await connection.execute(sql.SQL("REVOKE ALL ON {} {} FROM PUBLIC, {}").format(*closed))
