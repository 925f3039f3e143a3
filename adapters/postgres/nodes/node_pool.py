"""Pool of connections to one node that remember their tenant, so that its next request need not set the session (ADR 82)."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from hashlib import blake2b
from typing import Any, LiteralString

import psycopg
from psycopg.abc import Params

from adapters.postgres.errors import translate, translated
from adapters.postgres.nodes.connecting import Connection, Fetched, confirm_server, connect, fetch_value, set_clock
from adapters.postgres.nodes.router import COORDINATOR, LOG, Node, Parts
from adapters.postgres.privileges import APP, OPERATOR, SYSTEM
from domain.kernel.clock import CLOCK
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant

APPLICATION = "joinery"
"""Name of the pool's connections in pg_stat_activity."""
SLOW = 0.5
"""Seconds after which a failed connection attempt marks the node as unreachable; an immediate refusal does not."""
PAUSE = 1.0
"""Seconds between two attempts to reach an unreachable node."""

_OWNS = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('public.organisations')"
_IDLE = psycopg.pq.TransactionStatus.IDLE
_TENANT = (
    f"SELECT set_config('role', '{APP}', false), set_config('joinery.org', %b, false), "
    "set_config('joinery.livemode', %b, false)"
).encode()
_SYSTEM = f"SELECT set_config('role', '{SYSTEM}', false)".encode()
_HERE = re.compile(r"\bhere\.([a-z_]+)")
_LOCK_KEYS = b"SELECT pg_advisory_lock_shared(n) FROM unnest(%b::bigint[]) n"


def key_lock(key: str) -> int:
    """Return the number of the advisory lock that connections of processes with the secret share."""
    return int.from_bytes(blake2b(f"secret\0{key}".encode(), digest_size=8).digest(), "big") >> 4


def here(statement: LiteralString, parts: Parts | None) -> LiteralString:
    """Return the statement with each `here.<table>` replaced by the table's shards on a node.

    Reading shards by name bypasses the database's router, so the result is for reading only.
    """

    def shards(table: str) -> str:
        return table if parts is None else f"({' UNION ALL '.join(f'SELECT * FROM {part}' for part in parts[table])})"

    return _HERE.sub(lambda match: shards(match[1]), statement)


class PooledConnection:
    """Connection in autocommit mode with a cursor and a scope: the tenant of its session, or None for all tenants.

    The scope also sets the role: policies restrict `joinery_app` to the tenant's rows, but not `joinery_system`.
    """

    __slots__ = ("connection", "cursor", "entered", "node", "noted", "owner_role", "parts", "scope", "staged")

    def __init__(self, connection: Connection, node: Node, owner_role: LiteralString = "NONE") -> None:
        """Wrap a connection; `owner_role` is the role for writes as the owner, NONE (the login) if the login owns the tables."""
        self.connection, self.node, self.owner_role = connection, node, owner_role
        self.cursor = connection.cursor(binary=True)
        self.scope: Tenant | None = None
        self.entered = False
        self.parts: Parts | None = None
        """Shards of tenants' tables on the node; None for undistributed tables."""
        self.staged: set[object] = set()
        """Statements whose temporary tables this connection has created."""
        self.noted: dict[tuple[Tenant, str], int] = {}
        """Last block of a tenant's log that this connection has indexed a term for (events.py)."""

    def here(self, statement: LiteralString) -> LiteralString:
        """Return the statement with each `here.<table>` replaced by the table's shards on this node."""
        return here(statement, self.parts)

    async def rows(self, statement: Any, values: Params | None = None) -> list[Fetched]:
        """Return all rows of a statement."""
        return await (await self.cursor.execute(statement, values)).fetchall()

    async def run(self, statement: Any, values: Params | None = None) -> int:
        """Execute a statement; return the number of affected rows."""
        return (await self.cursor.execute(statement, values)).rowcount

    @asynccontextmanager
    async def owning(self) -> AsyncIterator[None]:
        """Use the owner's role inside the context, within a transaction, to write reference tables."""
        role = APP if self.scope else SYSTEM
        await self.connection.execute("SET LOCAL ROLE " + self.owner_role)
        yield  # on an error the rollback also resets the role
        await self.connection.execute("SET LOCAL ROLE " + role)

    async def enter(self, scope: Tenant | None) -> None:
        """Set the session to a tenant, or to all tenants for None, unless it already is."""
        if self.entered and self.scope == scope:
            return
        self.entered = False
        if scope is None:
            await self.cursor.execute(_SYSTEM)
        else:
            await self.cursor.execute(_TENANT, (scope.org, "t" if scope.livemode else "f"))
        self.scope, self.entered = scope, True


@contextmanager
def _closing_on_error(connection: Connection) -> Iterator[None]:
    """Close the connection on any exception, including cancellation."""
    try:
        yield
    except BaseException:
        connection.pgconn.finish()
        raise


class NodePool:
    """Pool of at most `size` connections to one node.

    If none is free, callers wait up to `patience` seconds. While the node is unreachable, all callers except one fail at once. `known`
    are the key ids of the secrets that this process has; each connection shows them by shared advisory locks.
    """

    def __init__(self, node: Node, size: int, patience: float, known: Sequence[str]) -> None:
        self.node, self._patience = node, patience
        self._owner_role: LiteralString | None = None
        self._known = [key_lock(key) for key in known]
        self._idle: list[PooledConnection] = []
        self._slots = asyncio.Semaphore(size)
        self._unreachable_until = 0.0
        self._closed = False
        self._waiting = 0
        self._is_missed = False
        """True if it was logged that the node is unreachable."""

    @property
    def waiting(self) -> int:
        """Number of tasks that wait for a connection; 0 while the node is unreachable, since that wait is not load."""
        return 0 if self._unreachable_until else self._waiting

    def log_reach(self, missed: Unavailable | None) -> None:
        """Log once that the node is unreachable (`missed` is the error), and once that it is reachable again."""
        if missed and not self._is_missed:
            LOG.warning("%s is unreachable and skipped: %s", self.node.name, missed)
        elif self._is_missed and not missed:
            LOG.info("%s is reachable again", self.node.name)
        self._is_missed = bool(missed)

    async def take(self, scope: Tenant | None) -> PooledConnection:
        """Take a connection with the scope. Raises Unavailable."""
        await self._take_slot()
        try:
            link = await self._ready(scope)
            if CLOCK.is_stale():
                await self._set_clock(link.connection)
            return link  # noqa: TRY300  the except clause covers all of the above
        except BaseException as error:
            self._slots.release()
            raise translate(error) from error

    async def give_back(self, link: PooledConnection) -> None:
        """Return a connection to the pool; close it if it is broken or still in a transaction."""
        self._slots.release()
        connection = link.connection
        idle = connection.info.transaction_status == _IDLE
        if self._closed or connection.closed or not idle:
            if connection.closed:
                self._drop_idle()  # idle connections have probably ended for the same reason
            await connection.close()
        else:
            self._idle.append(link)

    async def dedicated(self, scope: Tenant | None) -> PooledConnection:
        """Open a connection outside the pool, for session locks and long transactions. Raises Unavailable."""
        with translated():
            link = await self._connect()
            await link.enter(scope)
            return link

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().connection.close()

    async def _connect(self) -> PooledConnection:
        connection = await self._connect_as_owner()
        with _closing_on_error(connection):
            await connection.execute("SET ROLE " + APP)
            await connection.execute(
                "SET timezone = 'UTC'; SET statement_timeout = '300s'; SET idle_in_transaction_session_timeout = '60s'"
            )
            if self._known:
                await connection.execute(_LOCK_KEYS, (self._known,))
            await self._set_clock(connection)
        connection.prepare_threshold = 3
        return PooledConnection(connection, self.node, self._owner_role or "NONE")

    async def _set_clock(self, connection: Connection) -> None:
        """Adjust the process's clock if the node is the coordinator."""
        if self.node.name == COORDINATOR:
            await set_clock(connection)

    async def _connect_as_owner(self) -> Connection:
        """Open a connection with the owner's role. Raises Unavailable while the node counts as unreachable."""
        clock = asyncio.get_running_loop().time
        started = clock()
        if started < self._unreachable_until:
            raise Unavailable("The database cannot be reached.", retry_after=2)
        if self._unreachable_until:
            self._unreachable_until = float("inf")
        try:
            connection = await connect(self.node.conninfo, APPLICATION)
            with _closing_on_error(connection):
                await self._choose_owner_role(connection)
                await confirm_server(connection)
        except psycopg.OperationalError:
            self._unreachable_until = clock() + PAUSE if clock() - started >= SLOW else 0.0
            raise
        except BaseException:
            self._unreachable_until = 0.0
            raise
        self._unreachable_until = 0.0
        return connection

    async def _choose_owner_role(self, connection: Connection) -> None:
        """Set the owner's role: joinery_operator if the login does not own the tables; unknown before the schema exists."""
        if self._owner_role is None and (owns := await fetch_value(connection, _OWNS)) is not None:
            self._owner_role = "NONE" if owns else OPERATOR
        if self._owner_role is not None:
            await connection.execute("SET ROLE " + self._owner_role)

    async def _acquire(self, scope: Tenant | None) -> PooledConnection:
        """Take the connection that was last used for the scope, else the last used one, else a new one."""
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index].scope == scope:
                return self._idle.pop(index)
        if self._idle:
            return self._idle.pop()
        return await self._connect()

    async def _ready(self, scope: Tenant | None) -> PooledConnection:
        """Take a connection and set it to the scope; one that the server has closed is replaced once."""
        link = await self._acquire(scope)
        try:
            await link.enter(scope)
        except psycopg.OperationalError:
            self._drop_idle()
            link = await self._connect()
            await link.enter(scope)
        return link

    async def _take_slot(self) -> None:
        if self._slots.locked():
            self._waiting += 1
            try:
                async with asyncio.timeout(self._patience):
                    await self._slots.acquire()
            except TimeoutError as error:
                raise Unavailable("All database connections are in use.", retry_after=2) from error
            finally:
                self._waiting -= 1
        else:
            await self._slots.acquire()

    def _drop_idle(self) -> None:
        """Close all idle connections, because the server has ended."""
        for link in self._idle:
            link.connection.pgconn.finish()
        self._idle.clear()
