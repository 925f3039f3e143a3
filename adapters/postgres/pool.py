"""Connections: a last-in-first-out pool whose connections remember their tenant, so that row-level security costs nothing twice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import blake2b
from types import TracebackType

import psycopg

from adapters.postgres.connecting import Connection, connect
from adapters.postgres.epochs import confirm_server
from adapters.postgres.errors import translate, translated
from adapters.postgres.privileges import APP, SYSTEM
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant

APPLICATION = "joinery"
"""What connections of the pool are called in pg_stat_activity."""

_IDLE = psycopg.pq.TransactionStatus.IDLE
_TENANT = (
    f"SELECT set_config('role', '{APP}', false), set_config('joinery.org', %b, false), "
    "set_config('joinery.livemode', %b, false)"
).encode()
_SYSTEM = f"SELECT set_config('role', '{SYSTEM}', false)".encode()
_KNOWN = b"SELECT pg_advisory_lock_shared(n) FROM unnest(%b::bigint[]) n"


def key_lock(key: str) -> int:
    """The number of the lock that is shared by all connections of processes that know the secret of that id.

    It lies below those by which writers of events hold the high watermark back (ADR 3).
    """
    return int.from_bytes(blake2b(f"secret\0{key}".encode(), digest_size=8).digest(), "big") >> 4


class PooledConnection:
    """One connection in autocommit mode, its kept cursor and its scope: the tenant that its session is set to.

    The scope None spans tenants. Its role goes with the scope, in the same statement: of `joinery_app` the policies show the
    tenant's rows alone, whatever is set, and of `joinery_system` all.
    """

    __slots__ = ("connection", "cursor", "entered", "noted", "scope", "staged")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.cursor = connection.cursor(binary=True)
        self.scope: Tenant | None = None
        self.entered = False
        self.staged: set[object] = set()
        """Which temporary tables this connection has made."""
        self.noted: dict[tuple[Tenant, str], int] = {}
        """The last block of each tenant's log in which it has noted a term (events.py)."""

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


class Lease:
    """A connection for as long as the context lasts; its errors leave as the domain's."""

    __slots__ = ("_link", "_pool", "_scope")

    def __init__(self, pool: "Pool", scope: Tenant | None) -> None:
        self._pool, self._scope = pool, scope

    async def __aenter__(self) -> PooledConnection:
        """Take one. Raises Unavailable."""
        self._link = await self._pool.take(self._scope)
        return self._link

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back; drivers' errors are translated."""
        await self._pool.give_back(self._link)
        if error is not None and (known := translate(error)) is not error:
            raise known from error


class Pool:
    """At most `size` connections; whoever finds none waits up to `patience` seconds, then hears Unavailable.

    `known` are the ids of the secrets that this process knows: each connection shows them by locks that it shares.
    """

    def __init__(self, conninfo: str, size: int = 8, patience: float = 5.0, known: Sequence[str] = ()) -> None:
        self._conninfo, self._patience = conninfo, patience
        self._known = [key_lock(key) for key in known]
        self._idle: list[PooledConnection] = []
        self._slots = asyncio.Semaphore(size)
        self.waiting = 0
        self._closed = False

    async def _connect(self) -> PooledConnection:
        connection = await connect(self._conninfo, APPLICATION)
        await confirm_server(connection)
        await connection.execute("SET ROLE " + APP)
        await connection.execute(
            "SET timezone = 'UTC'; SET statement_timeout = '300s'; SET idle_in_transaction_session_timeout = '60s'"
        )
        if self._known:
            await connection.execute(_KNOWN, (self._known,))
        connection.prepare_threshold = 3
        return PooledConnection(connection)

    async def _acquire(self, scope: Tenant | None) -> PooledConnection:
        """The link last used for this scope if there is one, else the last used, else a new one."""
        for index in range(len(self._idle) - 1, -1, -1):
            if self._idle[index].scope == scope:
                return self._idle.pop(index)
        if self._idle:
            return self._idle.pop()
        return await self._connect()

    async def take(self, scope: Tenant | None) -> PooledConnection:
        await self._take_slot()
        try:
            return await self._ready(scope)
        except BaseException as error:
            self._slots.release()
            raise translate(error) from error

    async def give_back(self, link: PooledConnection) -> None:
        """Have it again, unless it broke or was left in a transaction."""
        self._slots.release()
        connection = link.connection
        idle = connection.info.transaction_status == _IDLE
        if self._closed or connection.closed or not idle:
            if connection.closed:
                self._drop_idle()  # what ended this connection has ended those that wait here as well
            await connection.close()
        else:
            self._idle.append(link)

    async def _ready(self, scope: Tenant | None) -> PooledConnection:
        """A usable link; one that the server closed meanwhile is replaced once."""
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
            self.waiting += 1
            try:
                async with asyncio.timeout(self._patience):
                    await self._slots.acquire()
            except TimeoutError as error:
                raise Unavailable("No database connection came free.", retry_after=2) from error
            finally:
                self.waiting -= 1
        else:
            await self._slots.acquire()

    def _drop_idle(self) -> None:
        """Forget every idle connection: the server that they belonged to is gone."""
        for link in self._idle:
            link.connection.pgconn.finish()
        self._idle.clear()

    def tenant(self, tenant: Tenant) -> "Lease":
        """A connection set to that tenant, as an async context. Raises Unavailable."""
        return Lease(self, tenant)

    def system(self) -> "Lease":
        """A connection that sees every tenant: for operators, scheduler and relay only. Raises Unavailable."""
        return Lease(self, None)

    async def dedicated(self) -> PooledConnection:
        """A connection beside the pool that sees every tenant, for whoever holds locks in its session. Raises Unavailable."""
        with translated():
            link = await self._connect()
            await link.enter(None)
            return link

    @asynccontextmanager
    async def owner(self) -> AsyncIterator[PooledConnection]:
        """A connection of its own with the login's full rights, across tenants: for operators and maintenance only."""
        with translated():
            connection = await connect(self._conninfo, "joinery maintenance")
            async with connection:
                yield PooledConnection(connection)

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop().connection.close()
