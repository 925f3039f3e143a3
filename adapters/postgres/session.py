"""What every store works through: one connection, set to one tenant, and what the unit of work recorded."""

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
_AT_ONCE = 200
"""Rows of a statement that inserts many: of some fifteen columns each, far below the 65,535 parameters that one may have."""

_TURN = 0.005
"""Seconds of a COPY after which others have their turn: the driver takes what it is given without waiting."""


@dataclass(slots=True)
class Session:
    """A tenant's connection. Every statement is given `org` and `livemode`; security policies stand behind it.

    `trace` is the context of what is done in it, where that is traced. `again` gives the connection to go on with when the tenant turns out to be elsewhere: between any two statements, or,
    `once`, before the first of a transaction is done.
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
        """What is read inside is of one moment, also of several statements; in a unit of work that writes it is not."""
        connection = self.link.connection
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            yield
            return
        async with connection.transaction():
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield

    def params(self, **values: Any) -> dict[str, Any]:
        """Return the values, by default with the session's time, and with its tenant, whatever a row says."""
        return {"now": self.now, **values, "org": self.tenant.org, "livemode": self.tenant.livemode}

    async def run(self, sql: Any, **values: Any) -> int:
        """Execute; answers how many rows it touched."""
        return (await self._execute(sql, values)).rowcount

    async def one(self, sql: Any, **values: Any) -> Fetched | None:
        """The first row, or None."""
        return await (await self._execute(sql, values)).fetchone()

    async def all(self, sql: Any, **values: Any) -> list[Fetched]:
        """Every row."""
        return await (await self._execute(sql, values)).fetchall()

    async def insert_all(self, table: LiteralString, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert rows of the same columns, many in a statement."""
        for begin in range(0, len(rows), _AT_ONCE):
            part = rows[begin : begin + _AT_ONCE]
            values = [value for row in part for value in (self.tenant.org, self.tenant.livemode, *row.values())]
            sql = _insertion(table, ("org", "livemode", *part[0]), len(part))
            # numbered parameters: to find thousands of named ones in a text takes longer than to insert
            self.link, _ = await execute(self.link, sql, values, self.again, numbered=True)
            self.settle()

    def settle(self) -> None:
        """Something was done in the transaction: from here on it goes on where it is, or not at all."""
        if self.once:
            self.again = None

    async def _execute(self, sql: Any, values: Mapping[str, Any]) -> psycopg.AsyncCursor[Fetched]:
        self.link, cursor = await execute(self.link, sql, self.params(**values), self.again)
        self.settle()
        return cursor

    async def take_turn(self, kind: object, *more: object, shared: bool = False) -> None:
        """Wait for the lock of that name, which is the tenant's and held until the transaction ends."""
        await self.run(_SHARE_TURN if shared else _TAKE_TURN, lock=self.lock(kind, *more))

    def lock(self, kind: object, *more: object) -> int:
        """Return the number of a lock of the tenant."""
        return lock_number(kind, self.tenant.org, self.tenant.livemode, *more)

    @asynccontextmanager
    async def owning(self) -> AsyncIterator[None]:
        """What is run inside writes tables that lie on every node, which tenants' role may not."""
        self.settle()
        async with self.link.owning():
            yield

    async def stage(self, tables: Any) -> None:
        """Make the temporary tables of `tables` (statements without parameters) unless this connection has them."""
        self.settle()
        if tables not in self.link.staged:
            await self.link.connection.execute(tables, prepare=False)
            self.link.staged.add(tables)

    async def copy(self, sql: Any, rows: Iterable[Sequence[Any]], types: Sequence[str]) -> None:
        """COPY rows in binary into a table without row security (a temporary one)."""
        async with self.link.cursor.copy(sql) as copy:
            copy.set_types(types)
            turn = time.monotonic() + _TURN
            for row in rows:
                await copy.write_row(row)
                if time.monotonic() > turn:
                    await asyncio.sleep(0)
                    turn = time.monotonic() + _TURN


@lru_cache(maxsize=512)
def _insertion(table: LiteralString, names: tuple[str, ...], rows: int) -> LiteralString:
    width = len(names)
    each = (", ".join(f"${row * width + place}" for place in range(1, width + 1)) for row in range(rows))
    sql: Any = f"INSERT INTO {table} ({', '.join(names)}) VALUES {', '.join(f'({one})' for one in each)}"
    return sql  # type: ignore[no-any-return]


def lock_number(*parts: object) -> int:
    """The number of the advisory lock that these parts name."""
    name = "\0".join(map(str, parts)).encode()
    return int.from_bytes(blake2b(name, digest_size=8).digest(), "big", signed=True)


_ENCODE = msgspec.json.Encoder().encode


def texts(values: Iterable[str]) -> Jsonb:
    """Many texts as one parameter, for `jsonb_array_elements_text` (an array of them takes psycopg ten times as long)."""
    return Jsonb(list(values), dumps=_ENCODE)


def records(rows: Iterable[Mapping[str, Any]]) -> Jsonb:
    """Encode rows as one parameter for `jsonb_to_recordset`, in which bytes are base64 (RFC 4648, section 4)."""
    return Jsonb(list(rows), dumps=_ENCODE)


def jsonb(value: Mapping[str, Any] | Sequence[Any] | None) -> Jsonb | None:
    """The value as a jsonb parameter; None stays NULL."""
    return None if value is None else Jsonb(value)
