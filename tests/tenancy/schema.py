"""Tables of the database, and rows for every tenant table from its column types."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

ROLE = "joinery_app"
_BY_TYPE = {
    "text": "'x' || {n}",
    "jsonb": "'{{}}'::jsonb",
    "bytea": "convert_to('x' || {n}, 'UTF8')",
    "boolean": "false",
    "integer": "{n}",
    "bigint": "{n}",
    "double precision": "{n}",
    "smallint": "1",
    "text[]": "ARRAY[]::text[]",
    "bigint[]": "ARRAY[]::bigint[]",
    "integer[]": "ARRAY[]::integer[]",
    "timestamp with time zone": "now()",
    "date": "current_date",
}
_CHECKED = {
    ("members", "role"): "'owner'",
    ("invitations", "role"): "'owner'",
    ("oauth_apps", "kind"): "'web'",
}

_TABLES = """
SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, c.relispartition,
       has_table_privilege(%(role)s, c.oid, 'SELECT, INSERT, UPDATE, DELETE'),
       (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid),
       EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'livemode' AND NOT a.attisdropped)
FROM pg_class c
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
  AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'org' AND NOT a.attisdropped)
ORDER BY c.relname
"""
_COLUMNS = """
SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped AND attnotnull ORDER BY attnum
"""


@dataclass(frozen=True, slots=True)
class TenantTable:
    """Table with the column `org`; `is_accessible` if the processes' role has any privilege on it."""

    name: str
    is_secured: bool
    is_forced: bool
    is_partition: bool
    is_accessible: bool
    policies: int
    has_mode: bool


async def list_tenant_tables(owner: psycopg.AsyncConnection[Any]) -> list[TenantTable]:
    """Return all tenant tables, including partitions."""
    cursor = await owner.execute(_TABLES, {"role": ROLE})
    return [TenantTable(*row) for row in await cursor.fetchall()]


async def insert_row(
    owner: psycopg.AsyncConnection[Any],
    table: TenantTable,
    org: str,
    livemode: bool,
    n: int,
    changes: Mapping[str, str] | None = None,
) -> None:
    """Insert a row of the tenant; `changes` are SQL expressions by column."""
    values: dict[str, str] = {}
    for column, kind in await _list_columns(owner, table.name):
        values[column] = _CHECKED.get((table.name, column)) or _BY_TYPE[kind].format(n=n)
    values |= {"org": f"'{org}'"} | ({"livemode": str(livemode)} if table.has_mode else {})
    await _insert_values(owner, table.name, {**values, **(changes or {})})


async def _insert_values(connection: psycopg.AsyncConnection[Any], table: str, values: dict[str, str]) -> None:
    names = sql.SQL(", ").join(map(sql.Identifier, values))
    expressions = sql.SQL(", ").join(sql.SQL(value) for value in values.values())
    await connection.execute(
        sql.SQL("INSERT INTO {} ({}) VALUES ({})").format(sql.Identifier(table), names, expressions)
    )


async def _list_columns(owner: psycopg.AsyncConnection[Any], table: str) -> Sequence[tuple[str, str]]:
    cursor = await owner.execute(_COLUMNS, (table,))
    return [(row[0], row[1]) for row in await cursor.fetchall()]
