"""Connections to one node that remember their tenant, so that a tenant's next request needs no round trip to set its session (ADR 82)."""

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
"""The name of the pool's connections in pg_stat_activity."""
SLOW = 0.5
"""Seconds: a node that could not be connected to for so long is away; one that refuses at once is not."""
PAUSE = 1.0
"""Seconds between two attempts to reach a node that is away."""

_OWNS = "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('public.organisations')"
_IDLE = psycopg.pq.TransactionStatus.IDLE
_TENANT = (
    f"SELECT set_config('role', '{APP}', false), set_config('joinery.org', %b, false), "
    "set_config('joinery.livemode', %b, false)"
).encode()
_SYSTEM = f"SELECT set_config('role', '{SYSTEM}', false)".encode()
_HERE = re.compile(r"\bhere\.([a-z_]+)")
_KNOWN = b"SELECT pg_advisory_lock_shared(n) FROM unnest(%b::bigint[]) n"


def key_lock(key: str) -> int:
    """Return the number of the lock that all connections of processes share which know the secret of that id."""
    return int.from_bytes(blake2b(f"secret\0{key}".encode(), digest_size=8).digest(), "big") >> 4


def here(statement: LiteralString, parts: Parts | None) -> LiteralString:
    """Return the statement with each `here.<table>` replaced by the shards of the table on a node.

    Shards are read by name, past the router of the database, so they are for reading only.
    """

    def shards(table: str) -> str:
        return table if parts is None else f"({' UNION ALL '.join(f'SELECT * FROM {part}' for part in parts[table])})"

    return _HERE.sub(lambda found: shards(found[1]), statement)


class PooledConnection:
    """A connection in autocommit mode, with a cursor and a scope: the tenant that its session is set to, or None across tenants.

    The role is set with the scope: policies show `joinery_app` the tenant's rows alone, and `joinery_system` all.
    """

    __slots__ = ("connection", "cursor", "entered", "node", "noted", "owner_role", "parts", "scope", "staged")

    def __init__(self, connection: Connection, node: Node, owner_role: LiteralString = "NONE") -> None:
        """Wrap a connection; `owner_role` is for writes as the schema's owner: NONE, the login itself, if it owns the tables."""
        self.connection, self.node, self.owner_role = connection, node, owner_role
        self.cursor = connection.cursor(binary=True)
        self.scope: Tenant | None = None
        self.entered = False
        self.parts: Parts | None = None
        """The shards of tenants' tables on the node; None for undivided tables."""
        self.staged: set[object] = set()
        """Which temporary tables this connection has made."""
        self.noted: dict[tuple[Tenant, str], int] = {}
        """The last block of each tenant's log in which it has noted a term (events.py)."""

    def here(self, statement: LiteralString) -> LiteralString:
        """Return the statement with each `here.<table>` replaced by the shards of the table on this node."""
        return here(statement, self.parts)

    async def rows(self, statement: Any, values: Params | None = None) -> list[Fetched]:
        """Return every row of a statement."""
        return await (await self.cursor.execute(statement, values)).fetchall()

    async def run(self, statement: Any, values: Params | None = None) -> int:
        """Execute a statement; return how many rows it touched."""
        return (await self.cursor.execute(statement, values)).rowcount

    @asynccontextmanager
    async def owning(self) -> AsyncIterator[None]:
        """Write as the login itself, within a transaction: tables that lie on every node, which tenants' role may not write."""
        role = APP if self.scope else SYSTEM
        await self.connection.execute("SET LOCAL ROLE " + self.owner_role)
        yield  # an error inside undoes this, too
        await self.connection.execute("SET LOCAL ROLE " + role)

    async def enter(self, scope: Tenant | None) -> None:
        """Set the session to a tenant, or to all of them, unless it is already."""
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
    """Close the connection when anything is raised, also by cancellation."""
    try:
        yield
    except BaseException:
        connection.pgconn.finish()
        raise


class NodePool:
    """At most `size` connections to one node.

    Without a free one, callers wait up to `patience` seconds. While the node does not even refuse connections, all callers but one fail at
    once. `known` are the ids of the secrets that this process knows: each connection shows them by locks that it shares.
    """

    def __init__(self, node: Node, size: int, patience: float, known: Sequence[str]) -> None:
        self.node, self._patience = node, patience
        self._owner_role: LiteralString | None = None
        self._known = [key_lock(key) for key in known]
        self._idle: list[PooledConnection] = []
        self._slots = asyncio.Semaphore(size)
        self._away_until = 0.0
        self._closed = False
        self._waiting = 0
        self._missed = False
        """Whether it was logged that the node is out of reach."""

    @property
    def waiting(self) -> int:
        """How many tasks wait for a connection; a node that is away is not counted, since waiting for it is no load."""
        return 0 if self._away_until else self._waiting

    def log_reach(self, missed: Unavailable | None) -> None:
        """Log once that the node is out of reach, by the error, and once that it is back."""
        if missed and not self._missed:
            LOG.warning("%s is out of reach, and left out: %s", self.node.name, missed)
        elif self._missed and not missed:
            LOG.info("%s is back", self.node.name)
        self._missed = bool(missed)

    async def take(self, scope: Tenant | None) -> PooledConnection:
        """Take a connection of that scope. Raises Unavailable."""
        await self._take_slot()
        try:
            link = await self._ready(scope)
            if CLOCK.is_stale():
                await self._set_clock(link.connection)
            return link  # noqa: TRY300  what follows is for errors alone
        except BaseException as error:
            self._slots.release()
            raise translate(error) from error

    async def give_back(self, link: PooledConnection) -> None:
        """Return a connection to the pool, unless it broke or was left in a transaction."""
        self._slots.release()
        connection = link.connection
        idle = connection.info.transaction_status == _IDLE
        if self._closed or connection.closed or not idle:
            if connection.closed:
                self._drop_idle()  # what ended this connection has ended those that wait here as well
            await connection.close()
        else:
            self._idle.append(link)

    async def dedicated(self, scope: Tenant | None) -> PooledConnection:
        """Open a connection beside the pool, for locks of a session. Raises Unavailable."""
        with translated():
            link = await self._connect()
            await link.enter(scope)
            return link

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().connection.close()

    async def _connect(self) -> PooledConnection:
        connection = await self._reached()
        with _closing_on_error(connection):
            await connection.execute("SET ROLE " + APP)
            await connection.execute(
                "SET timezone = 'UTC'; SET statement_timeout = '300s'; SET idle_in_transaction_session_timeout = '60s'"
            )
            if self._known:
                await connection.execute(_KNOWN, (self._known,))
            await self._set_clock(connection)
        connection.prepare_threshold = 3
        return PooledConnection(connection, self.node, self._owner_role or "NONE")

    async def _set_clock(self, connection: Connection) -> None:
        """Set the process's clock by the coordinator's."""
        if self.node.name == COORDINATOR:
            await set_clock(connection)

    async def _reached(self) -> Connection:
        """Open a connection as the owner of the schema, unless the node is known to be away."""
        clock = asyncio.get_running_loop().time
        began = clock()
        if began < self._away_until:
            raise Unavailable("The database is out of reach.", retry_after=2)
        if self._away_until:
            self._away_until = float("inf")
        try:
            connection = await connect(self.node.conninfo, APPLICATION)
            with _closing_on_error(connection):
                await self._choose_owner_role(connection)
                await confirm_server(connection)
        except psycopg.OperationalError:
            self._away_until = clock() + PAUSE if clock() - began >= SLOW else 0.0
            raise
        except BaseException:
            self._away_until = 0.0
            raise
        self._away_until = 0.0
        return connection

    async def _choose_owner_role(self, connection: Connection) -> None:
        """Use joinery_operator if the login does not own the tables, which is known once the schema exists."""
        if self._owner_role is None and (owns := await fetch_value(connection, _OWNS)) is not None:
            self._owner_role = "NONE" if owns else OPERATOR
        if self._owner_role is not None:
            await connection.execute("SET ROLE " + self._owner_role)

    async def _acquire(self, scope: Tenant | None) -> PooledConnection:
        """Take the connection last used for this scope, else the last used, else a new one."""
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index].scope == scope:
                return self._idle.pop(index)
        if self._idle:
            return self._idle.pop()
        return await self._connect()

    async def _ready(self, scope: Tenant | None) -> PooledConnection:
        """Take a connection set to the scope; one that the server closed meanwhile is replaced once."""
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
                raise Unavailable("No database connection came free.", retry_after=2) from error
            finally:
                self._waiting -= 1
        else:
            await self._slots.acquire()

    def _drop_idle(self) -> None:
        """Close every idle connection: the server that they belonged to is gone."""
        for link in self._idle:
            link.connection.pgconn.finish()
        self._idle.clear()
