"""Two plain PostgreSQL servers as the nodes of a cluster, with a placement for tests.

Reference tables are copied from one node to the other. A tenant is moved by copying its rows; afterwards its statements fail
on the former node, as with Citus.
"""

import atexit
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

from adapters.postgres.nodes.router import COORDINATOR, Node, Placement, ShardNames
from adapters.postgres.schema_migrations import migrate
from entrypoints.up.process import ChildProcess
from entrypoints.up.servers import Postgres

SETTINGS = {"fsync": "off", "shared_buffers": "32MB", "max_connections": "80"}
REFERENCE = {
    "plans": ["code"],
    "organisations": ["id"],
    "members": ["org", "user"],
    "invitations": ["org", "id"],
    "api_keys": ["org", "livemode", "id"],
    "licences": ["org", "livemode", "catalogue", "holder"],
    "oauth_apps": ["org", "id"],
    "oauth_grants": ["org", "id"],
    "sso_connections": ["org"],
    "sso_domains": ["org", "domain"],
    "sso_subjects": ["org", "issuer", "subject"],
    "demand_queries": ["livemode", "day", "query"],
}
"""Primary keys of reference tables, referenced tables first."""
_TENANT_TABLES = """
SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND c.relname <> ALL(%s) AND EXISTS (SELECT FROM pg_attribute o WHERE o.attrelid = c.oid AND o.attname = 'org')
GROUP BY c.relname ORDER BY c.relname
"""


class Server:
    """PostgreSQL server that can be killed and restarted with its data."""

    def __init__(self) -> None:
        self._home = Path(tempfile.mkdtemp(prefix="jn", dir="/tmp"))
        atexit.register(shutil.rmtree, self._home, ignore_errors=True)
        self._postgres = Postgres(self._home, SETTINGS)
        self._process: ChildProcess | None = None

    async def start(self) -> None:
        """Start or restart the server."""
        self._process = await self._postgres.start()
        atexit.register(self._process.kill)

    async def kill(self) -> None:
        """Stop the server immediately; its clients notice."""
        assert self._process is not None
        await self._process.stop(signal.SIGQUIT, 30)

    @property
    def is_running(self) -> bool:
        """Whether the server is running."""
        return self._process is not None and self._process.get_exit_code() is None

    def build_url(self, database: str = "postgres") -> str:
        """Return the address of one of its databases."""
        return self._postgres.build_url(database, "postgres")


class Servers(Placement):
    """Placement by `node_by_org`, otherwise by name; `lookups` counts look-ups."""

    def __init__(self, servers: Sequence[Server], addresses: Sequence[str]) -> None:
        self.servers = servers
        names = [COORDINATOR, *(f"node {number}" for number in range(1, len(addresses)))]
        self.nodes = [Node(name, address) for name, address in zip(names, addresses, strict=True)]
        self.node_by_org: dict[str, Node] = {}
        self.lookups = 0

    async def list_nodes(self) -> Sequence[Node]:
        return list(self.nodes)

    async def find_nodes(self, orgs: Sequence[str]) -> Mapping[str, Node]:
        self.lookups += 1
        return {org: self.find_node(org) for org in orgs}

    async def list_shards(self) -> Mapping[Node, ShardNames | None]:
        return dict.fromkeys(self.nodes)

    def find_node(self, org: str) -> Node:
        """Return the organisation's node."""
        number = blake2b(org.encode(), digest_size=1).digest()[0] % len(self.nodes)
        return self.node_by_org.get(org) or self.nodes[number]

    def place_organisation(self, org: str, number: int) -> None:
        """Place an organisation that has no rows yet."""
        self.node_by_org[org] = self.nodes[number]

    async def replicate_tables(self, source: Node) -> None:
        """Copy the reference tables from the node where they were written to all running nodes."""
        for node, server in zip(self.nodes, self.servers, strict=True):
            if node != source and server.is_running:
                await _replicate_tables(source, node)

    async def move_organisation(self, org: str, number: int) -> None:
        """Move the organisation while it is in use: writers wait and then fail on the former node."""
        source, target = self.find_node(org), self.nodes[number]
        async with _connect(source) as old, _connect(target) as new:
            tables = await (await old.execute(_TENANT_TABLES, (list(REFERENCE),))).fetchall()
            async with old.transaction(), new.transaction():
                for table, columns in tables:
                    await _block_organisation(old, table, org)
                    await _unblock_organisation(new, table, org)
                    await _copy_rows(old, new, table, columns, sql.SQL("org = {}").format(sql.Literal(org)))
                self.node_by_org[org] = target

    async def read_rows(self, number: int, org: str) -> dict[str, list[Any]]:
        """Return every row of the organisation on that node, by table, as text."""
        async with _connect(self.nodes[number]) as connection:
            tables = await (await connection.execute(_TENANT_TABLES, (list(REFERENCE),))).fetchall()
            found: dict[str, list[Any]] = {}
            for table, _ in tables:
                statement = sql.SQL("SELECT t::text FROM {} t WHERE org = {} ORDER BY 1")
                cursor = await connection.execute(statement.format(sql.Identifier(table), sql.Literal(org)))
                found[table] = [row for (row,) in await cursor.fetchall()]
            return found


@asynccontextmanager
async def _connect(node: Node) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with await psycopg.AsyncConnection.connect(node.conninfo, autocommit=True) as connection:
        yield connection


async def _block_organisation(connection: psycopg.AsyncConnection[Any], table: str, org: str) -> None:
    """Make statements of the organisation's tenants fail, as with Citus, and hide its rows from others."""
    await _unblock_organisation(connection, table, org)
    requested = "current_setting('joinery.org')"
    gone = "org = CASE " + requested + " WHEN {} THEN current_setting('joinery.gone') ELSE " + requested + " END"
    name = sql.Identifier(f"left_{org}")
    leaving = sql.SQL("CREATE POLICY {} ON {} AS RESTRICTIVE TO joinery_app USING (" + gone + ")")
    await connection.execute(leaving.format(name, sql.Identifier(table), sql.Literal(org)))

    hidden = sql.SQL("CREATE POLICY {} ON {} AS RESTRICTIVE TO joinery_system USING (org <> {})")
    gone_name = sql.Identifier(f"hidden_{org}")
    await connection.execute(hidden.format(gone_name, sql.Identifier(table), sql.Literal(org)))


async def _unblock_organisation(connection: psycopg.AsyncConnection[Any], table: str, org: str) -> None:
    """Remove the policies of an earlier move."""
    for kind in ("left", "hidden"):
        name = sql.Identifier(f"{kind}_{org}")
        await connection.execute(sql.SQL("DROP POLICY IF EXISTS {} ON {}").format(name, sql.Identifier(table)))


async def _copy_rows(
    source: psycopg.AsyncConnection[Any],
    target: psycopg.AsyncConnection[Any],
    table: str,
    columns: Sequence[str],
    where: sql.Composed,
) -> None:
    listed, name = sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier(table)
    reading = sql.SQL("COPY (SELECT {} FROM {} WHERE {}) TO STDOUT (FORMAT binary)").format(listed, name, where)
    writing = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT binary)").format(name, listed)
    # remove rows of an earlier stay
    await target.execute(sql.SQL("DELETE FROM {} WHERE {}").format(name, where))
    async with source.cursor() as reader, target.cursor() as writer:
        async with reader.copy(reading) as given, writer.copy(writing) as taken:
            async for block in given:
                await taken.write(block)


async def _replicate_tables(source: Node, target: Node) -> None:
    async with _connect(source) as old, _connect(target) as new:
        for table, keys in REFERENCE.items():
            cursor = await old.execute(sql.SQL("SELECT to_jsonb(t) FROM {} t").format(sql.Identifier(table)))
            rows = [row for (row,) in await cursor.fetchall()]
            others = sorted({column for row in rows for column in row} - set(keys))
            kept = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(name)) for name in others)
            statement = sql.SQL(
                "INSERT INTO {0} SELECT * FROM jsonb_populate_recordset(NULL::{0}, {1}) ON CONFLICT ({2}) DO UPDATE SET {3}"
            )
            given, key = sql.Literal(psycopg.types.json.Jsonb(rows)), sql.SQL(", ").join(map(sql.Identifier, keys))
            if rows:
                await new.execute(statement.format(sql.Identifier(table), given, key, kept))


_MIGRATED = "joinery_migrated"
_SERVERS: list[Server] = []
_SHARED: list[Servers] = []
_NUMBERS = count()


async def _start_servers(number: int) -> list[Server]:
    """Return the test process's servers, all of them running."""
    while len(_SERVERS) < number:
        server = Server()
        await server.start()
        await _execute(server, f'CREATE DATABASE "{_MIGRATED}"')
        await migrate(_build_address(server, _MIGRATED))
        _SERVERS.append(server)
    for server in _SERVERS[:number]:
        if not server.is_running:
            await server.start()
    return _SERVERS[:number]


@asynccontextmanager
async def open_servers() -> AsyncIterator[Servers]:
    """Yield two servers with a new, migrated database each."""
    made = await _create_databases()
    try:
        yield made
    finally:
        for server in await _start_servers(2):
            name = urlsplit(made.nodes[0].conninfo).path[1:]
            await _execute(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


async def open_shared_servers() -> Servers:
    """Return two servers with databases for all tests of the process that create their own organisations."""
    if not _SHARED:
        _SHARED.append(await _create_databases())
    await _start_servers(2)
    return Servers(_SERVERS, [node.conninfo for node in _SHARED[0].nodes])


async def _create_databases() -> Servers:
    servers = await _start_servers(2)
    name = f"joinery_nodes_{next(_NUMBERS)}"
    for server in servers:
        await _execute(server, f'CREATE DATABASE "{name}" TEMPLATE "{_MIGRATED}"')
    return Servers(servers, [_build_address(server, name) for server in servers])


def _build_address(server: Server, database: str) -> str:
    return urlunsplit(urlsplit(server.build_url())._replace(path=f"/{database}"))


async def _execute(server: Server, statement: str) -> None:
    async with await psycopg.AsyncConnection.connect(server.build_url(), autocommit=True) as connection:
        await connection.execute(statement.encode())
