"""Database session of a tenant's transaction, through which all stores execute their statements."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import blake2b
from typing import Any, LiteralString

import msgspec
import psycopg
from psycopg.types.json import Jsonb

from adapters.postgres.nodes.connections import DatabaseRow
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Reconnect, execute_for_tenant
from domain.kernel.tenancy import AuditContext, Tenant
from ports.unit_of_work import RecordedEffects

_LOCK_EXCLUSIVELY = "SELECT pg_advisory_xact_lock(%(lock)s)"
_LOCK_SHARED = "SELECT pg_advisory_xact_lock_shared(%(lock)s)"
_MAX_ROWS_PER_INSERT = 200
"""Maximum number of rows per INSERT statement.

With about 15 columns, the number of parameters is far below PostgreSQL's limit of 65,535.
"""

_YIELD_SECONDS = 0.005
"""Seconds after which a COPY lets other tasks run.

The driver accepts rows without waiting, so the event loop would otherwise be blocked.
"""


@dataclass(slots=True)
class TenantSession:
    """Database session of one tenant. Every statement has the parameters `org` and `livemode`.

    Attributes:
        connection: Connection, whose session is set to the tenant.
        tenant: The tenant.
        context: Audit context of the transaction.
        now: Time of the transaction.
        recorded: Events, changes and jobs that the transaction has collected.
        reconnect: Function that returns a connection to the tenant's current node if a statement fails because the
            tenant has moved; None if statements must not be repeated.
        reconnects_once: Whether `reconnect` applies only to the first statement, as in a transaction.
        trace: Trace context of the request or job, or None.
    """

    connection: PooledConnection
    tenant: Tenant
    context: AuditContext
    now: datetime
    recorded: RecordedEffects
    reconnect: Reconnect | None = None
    reconnects_once: bool = False
    trace: str | None = None

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        """Read from one database snapshot while the context is open.

        If a transaction is already open, its isolation level remains unchanged.
        """
        connection = self.connection.driver_connection
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            yield
            return
        async with connection.transaction():
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def add_tenant_params(self, **values: Any) -> dict[str, Any]:
        """Return the statement parameters `values`, with the parameters `org` and `livemode` set to the tenant's.

        The parameter `now` is the time of the session unless `values` contains another time.
        """
        return {"now": self.now, **values, "org": self.tenant.org, "livemode": self.tenant.livemode}

    async def run(self, sql: Any, **values: Any) -> int:
        """Execute an SQL statement; return the number of affected rows."""
        return (await self._execute(sql, values)).rowcount

    async def fetch_row(self, sql: Any, **values: Any) -> DatabaseRow | None:
        """Execute an SQL statement; return its first row, or None."""
        return await (await self._execute(sql, values)).fetchone()

    async def fetch_rows(self, sql: Any, **values: Any) -> list[DatabaseRow]:
        """Execute an SQL statement; return all rows."""
        return await (await self._execute(sql, values)).fetchall()

    async def insert_all(self, table: LiteralString, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows that have the same columns into a table of tenants, many rows per statement."""
        for begin in range(0, len(rows), _MAX_ROWS_PER_INSERT):
            batch = rows[begin : begin + _MAX_ROWS_PER_INSERT]
            values = [value for row in batch for value in (self.tenant.org, self.tenant.livemode, *row.values())]
            sql = _build_insertion(table, ("org", "livemode", *batch[0]), len(batch))
            # numbered parameters, because parsing thousands of named ones takes longer than the insertion
            self.connection, _ = await execute_for_tenant(
                self.connection, sql, values, self.reconnect, is_numbered=True
            )
            self.pin_node()

    def pin_node(self) -> None:
        """Prevent later statements of the transaction from being repeated on another node."""
        if self.reconnects_once:
            self.reconnect = None

    async def _execute(self, sql: Any, values: Mapping[str, Any]) -> psycopg.AsyncCursor[DatabaseRow]:
        self.connection, cursor = await execute_for_tenant(
            self.connection, sql, self.add_tenant_params(**values), self.reconnect
        )
        self.pin_node()
        return cursor

    async def acquire_lock(self, kind: object, *more: object, shared: bool = False) -> None:
        """Acquire an advisory lock of the tenant until the transaction ends; wait while another transaction holds it.

        Args:
            kind: First part of the lock's name.
            *more: Further parts of the name.
            shared: Whether other transactions may hold the lock in shared mode at the same time.
        """
        await self.run(_LOCK_SHARED if shared else _LOCK_EXCLUSIVELY, lock=self.compute_lock_number(kind, *more))

    def compute_lock_number(self, kind: object, *more: object) -> int:
        """Return the number of the tenant's advisory lock whose name consists of these parts."""
        return compute_lock_number(kind, self.tenant.org, self.tenant.livemode, *more)

    @asynccontextmanager
    async def as_owner(self) -> AsyncIterator[None]:
        """Execute statements with the owner's privileges while the context is open, to write reference tables."""
        self.pin_node()
        async with self.connection.as_owner():
            yield

    async def create_temporary_tables(self, statements: Any) -> None:
        """Execute statements that create temporary tables, unless this connection has already executed them.

        `statements` is the text of the statements, which have no parameters.
        """
        self.pin_node()
        if statements not in self.connection.temporary_tables:
            await self.connection.driver_connection.execute(statements, prepare=False)
            self.connection.temporary_tables.add(statements)

    async def copy_rows(self, sql: Any, rows: Iterable[Sequence[Any]], column_types: Sequence[str]) -> None:
        """Insert rows into a temporary table by a COPY statement in binary format.

        Args:
            sql: The statement.
            rows: Rows, each with one value per column.
            column_types: PostgreSQL types of the columns.
        """
        async with self.connection.cursor.copy(sql) as copy:
            copy.set_types(column_types)
            yield_at = time.monotonic() + _YIELD_SECONDS
            for row in rows:
                await copy.write_row(row)
                if time.monotonic() > yield_at:
                    await asyncio.sleep(0)
                    yield_at = time.monotonic() + _YIELD_SECONDS


@lru_cache(maxsize=512)
def _build_insertion(table: LiteralString, names: tuple[str, ...], rows: int) -> LiteralString:
    width = len(names)
    tuples = (", ".join(f"${row * width + column}" for column in range(1, width + 1)) for row in range(rows))
    sql: Any = f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join(f'({values})' for values in tuples)}"
    return sql  # type: ignore[no-any-return]


def compute_lock_number(*parts: object) -> int:
    """Return the number of the advisory lock whose name consists of these parts."""
    name = "\0".join(map(str, parts)).encode()
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big", signed=True)


_ENCODE = msgspec.json.Encoder().encode


def encode_texts(values: Iterable[str]) -> Jsonb:
    """Encode texts as one jsonb parameter, from which `jsonb_array_elements_text` reads them."""
    # psycopg adapts jsonb ten times as fast as an array
    return Jsonb(list(values), dumps=_ENCODE)


def encode_rows(rows: Iterable[Mapping[str, Any]]) -> Jsonb:
    """Encode rows as one jsonb parameter for `jsonb_to_recordset`. Bytes become base64 (RFC 4648, section 4)."""
    return Jsonb(list(rows), dumps=_ENCODE)


def encode_jsonb(value: Mapping[str, Any] | Sequence[Any] | None) -> Jsonb | None:
    """Encode a value as a jsonb parameter; None is stored as NULL."""
    return None if value is None else Jsonb(value)
