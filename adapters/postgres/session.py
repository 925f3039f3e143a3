"""Database session of a tenant's unit of work, through which all stores execute statements."""

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

from adapters.postgres.nodes.connecting import Fetched
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Again, execute
from domain.kernel.tenancy import AuditContext, Tenant
from ports.unit_of_work import Recorded

_TAKE_TURN = "SELECT pg_advisory_xact_lock(%(lock)s)"
_SHARE_TURN = "SELECT pg_advisory_xact_lock_shared(%(lock)s)"
_CHUNK = 200
"""Rows per INSERT statement; with about 15 columns far below the limit of 65,535 parameters."""

_YIELD_SECONDS = 0.005
"""Seconds of a COPY between yields to the event loop, because the driver accepts rows without waiting."""


@dataclass(slots=True)
class Session:
    """Connection set to one tenant. Every statement has the parameters `org` and `livemode`, in addition to row-level security.

    Attributes:
        again: Function that returns a new connection if the tenant is on another node; None if that is no longer possible.
        once: Whether `again` applies only to the first statement, as in a transaction, instead of to each.
        trace: Trace context of the work, or None.

    """

    link: PooledConnection
    tenant: Tenant
    context: AuditContext
    now: datetime
    recorded: Recorded
    again: Again | None = None
    once: bool = False
    trace: str | None = None

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[None]:
        """Read from one snapshot inside the context; has no effect inside a transaction that is already open."""
        connection = self.link.connection
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            yield
            return
        async with connection.transaction():
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def params(self, **values: Any) -> dict[str, Any]:
        """Return the parameters with the session's tenant, which values cannot override, and by default its time."""
        return {"now": self.now, **values, "org": self.tenant.org, "livemode": self.tenant.livemode}

    async def run(self, sql: Any, **values: Any) -> int:
        """Execute a statement; return the number of affected rows."""
        return (await self._execute(sql, values)).rowcount

    async def one(self, sql: Any, **values: Any) -> Fetched | None:
        """Return the first row, or None."""
        return await (await self._execute(sql, values)).fetchone()

    async def all(self, sql: Any, **values: Any) -> list[Fetched]:
        """Return all rows."""
        return await (await self._execute(sql, values)).fetchall()

    async def insert_all(self, table: LiteralString, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows of the same columns, many per statement."""
        for begin in range(0, len(rows), _CHUNK):
            part = rows[begin : begin + _CHUNK]
            values = [value for row in part for value in (self.tenant.org, self.tenant.livemode, *row.values())]
            sql = _insertion(table, ("org", "livemode", *part[0]), len(part))
            # numbered parameters, because parsing thousands of named ones takes longer than the insertion
            self.link, _ = await execute(self.link, sql, values, self.again, numbered=True)
            self.settle()

    def settle(self) -> None:
        """Prevent a change of node after the first statement of a transaction."""
        if self.once:
            self.again = None

    async def _execute(self, sql: Any, values: Mapping[str, Any]) -> psycopg.AsyncCursor[Fetched]:
        self.link, cursor = await execute(self.link, sql, self.params(**values), self.again)
        self.settle()
        return cursor

    async def take_turn(self, kind: object, *more: object, shared: bool = False) -> None:
        """Acquire a named advisory lock of the tenant until the transaction ends."""
        await self.run(_SHARE_TURN if shared else _TAKE_TURN, lock=self.lock(kind, *more))

    def lock(self, kind: object, *more: object) -> int:
        """Return the number of a lock of the tenant."""
        return lock_number(kind, self.tenant.org, self.tenant.livemode, *more)

    @asynccontextmanager
    async def owning(self) -> AsyncIterator[None]:
        """Execute with the owner's privileges inside the context, to write reference tables."""
        self.settle()
        async with self.link.owning():
            yield

    async def stage(self, tables: Any) -> None:
        """Create the temporary tables of `tables` (statements without parameters) unless this connection has them."""
        self.settle()
        if tables not in self.link.staged:
            await self.link.connection.execute(tables, prepare=False)
            self.link.staged.add(tables)

    async def copy(self, sql: Any, rows: Iterable[Sequence[Any]], types: Sequence[str]) -> None:
        """COPY rows in binary format into a temporary table."""
        async with self.link.cursor.copy(sql) as copy:
            copy.set_types(types)
            yield_at = time.monotonic() + _YIELD_SECONDS
            for row in rows:
                await copy.write_row(row)
                if time.monotonic() > yield_at:
                    await asyncio.sleep(0)
                    yield_at = time.monotonic() + _YIELD_SECONDS


@lru_cache(maxsize=512)
def _insertion(table: LiteralString, names: tuple[str, ...], rows: int) -> LiteralString:
    width = len(names)
    tuples = (", ".join(f"${row * width + column}" for column in range(1, width + 1)) for row in range(rows))
    sql: Any = f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join(f'({values})' for values in tuples)}"
    return sql  # type: ignore[no-any-return]


def lock_number(*parts: object) -> int:
    """Return the number of the advisory lock with these name parts."""
    name = "\0".join(map(str, parts)).encode()
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big", signed=True)


_ENCODE = msgspec.json.Encoder().encode


def texts(values: Iterable[str]) -> Jsonb:
    """Encode texts as one parameter for `jsonb_array_elements_text`, which psycopg adapts ten times as fast as an array."""
    return Jsonb(list(values), dumps=_ENCODE)


def records(rows: Iterable[Mapping[str, Any]]) -> Jsonb:
    """Encode rows as one parameter for `jsonb_to_recordset`, in which bytes are base64 (RFC 4648, section 4)."""
    return Jsonb(list(rows), dumps=_ENCODE)


def jsonb(value: Mapping[str, Any] | Sequence[Any] | None) -> Jsonb | None:
    """Encode a value as a jsonb parameter; None stays NULL."""
    return None if value is None else Jsonb(value)
