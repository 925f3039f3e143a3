"""Databases beside the one that a test process shares, on the same server, for tests that must be alone."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit, urlunsplit

import psycopg

from adapters.postgres.migrate import migrate
from tests.support.postgres import database


async def fresh_database(label: str, server: str | None = None, *, migrated: bool = True) -> str:
    """The address of a new database, mostly a migrated one; it lasts as long as the test process's server."""
    server = server or await database()
    name = f"joinery_{label}_{os.getpid()}"
    await _run(server, f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)', f'CREATE DATABASE "{name}"')
    address = urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    if migrated:
        await migrate(address)
    return address


@asynccontextmanager
async def database_alone(label: str, server: str | None = None, *, migrated: bool = True) -> AsyncIterator[str]:
    """A new database that is dropped afterwards, on the server that is named by a database's address, if one is."""
    address = await fresh_database(label, server, migrated=migrated)
    try:
        yield address
    finally:
        name = urlsplit(address).path[1:]
        await _run(server or await database(), f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')


async def _run(address: str, *statements: str) -> None:
    async with await psycopg.AsyncConnection.connect(address, autocommit=True) as connection:
        for statement in statements:
            await connection.execute(statement.encode())
