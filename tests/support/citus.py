"""Databases on a Citus cluster, for tests that require one.

`JOINERY_TEST_CITUS_URL` is a database at a coordinator with registered workers, as a superuser that every node accepts. Tests
create their own databases on the same servers. docs/cluster.md describes how to start a cluster.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from adapters.postgres.cluster import connect_to_coordinator, distribute_tables
from adapters.postgres.schema_migrations import migrate

GIVEN = os.environ.get("JOINERY_TEST_CITUS_URL")
ON_CLUSTER = bool(GIVEN) and os.environ.get("JOINERY_TEST_ON") == "citus"
"""Whether suites with a single database use one of the cluster."""
SHARDS = 4


async def list_nodes() -> list[tuple[str, int]]:
    """Return host and port of every node, the coordinator first."""
    assert GIVEN, "ask for this only where there is a cluster"
    async with await psycopg.AsyncConnection.connect(GIVEN, autocommit=True) as connection:
        cursor = await connection.execute(
            "SELECT nodename, nodeport FROM pg_dist_node WHERE noderole = 'primary' ORDER BY groupid"
        )
        found: list[tuple[str, int]] = await cursor.fetchall()
    assert len(found) >= 3, "the suite needs a coordinator and two workers"
    return found


def build_address(host: str, port: int, database: str | None = None) -> str:
    """Return the address of a database on one of the nodes."""
    given: dict[str, Any] = dict(conninfo_to_dict(GIVEN or ""))
    return make_conninfo(**given | {"host": host, "port": port} | ({"dbname": database} if database else {}))


async def create_cluster_database(label: str, *, distributed: bool = True, migrated: bool = True) -> str:
    """Create a database at the coordinator, with the extension and its workers; return its address."""
    async with await psycopg.AsyncConnection.connect(GIVEN or "", autocommit=True) as turn:
        # roles are the whole server's: adding a node to two databases at once fails
        await turn.execute("SELECT pg_advisory_lock(hashtext('making a database'))")
        address = await _made(f"joinery_{label}_{os.getpid()}")
        if migrated or distributed:
            await migrate(address)
        if distributed:
            await distribute_database(address)
    return address


async def _made(name: str) -> str:
    """Create a database that knows its workers; return its address."""
    every = await list_nodes()
    for host, port in every:
        await execute(
            build_address(host, port), f"DROP DATABASE IF EXISTS {name} WITH (FORCE)", f"CREATE DATABASE {name}"
        )
    for host, port in every:
        await execute(build_address(host, port, name), "CREATE EXTENSION citus")
    (host, port), *workers = every
    address = build_address(host, port, name)
    await execute(address, f"SELECT citus_set_coordinator_host('{host}', {port})")
    await execute(address, *(f"SELECT citus_add_node('{worker}', {port})" for worker, port in workers))
    return address


async def distribute_database(address: str) -> list[str]:
    """Distribute the tables; return the progress messages."""
    messages: list[str] = []
    async with connect_to_coordinator(address) as found:
        await distribute_tables(found, SHARDS, messages.append)
    return messages


async def drop_database(address: str) -> None:
    """Drop the database on every node."""
    name = conninfo_to_dict(address)["dbname"]
    for host, port in await list_nodes():
        await execute(build_address(host, port), f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


@asynccontextmanager
async def temporary_cluster_database(
    label: str, *, distributed: bool = True, migrated: bool = True
) -> AsyncIterator[str]:
    """Create a database and drop it at the end."""
    address = await create_cluster_database(label, distributed=distributed, migrated=migrated)
    try:
        yield address
    finally:
        await drop_database(address)


async def execute(address: str, *statements: str) -> list[tuple[Any, ...]]:
    """Execute the statements in order, each in its own transaction; return the rows of the last."""
    rows: list[tuple[Any, ...]] = []
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        for statement in statements:
            cursor = await connection.execute(statement.encode())
            rows = await cursor.fetchall() if cursor.description else []
    return rows
