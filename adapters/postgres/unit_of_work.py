"""The transaction and the stores inside it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cached_property
from types import TracebackType
from typing import TypeVar

import psycopg

from adapters.postgres.access import PostgresKeyStore
from adapters.postgres.audit import PostgresAuditLog
from adapters.postgres.catalogue import PostgresCatalogueStore
from adapters.postgres.errors import StaleRoute, translated
from adapters.postgres.events import PostgresEventLog
from adapters.postgres.exports import EXPORTS, PostgresExportStore
from adapters.postgres.idempotency import PostgresIdempotencyStore
from adapters.postgres.jobs import PostgresJobStore
from adapters.postgres.mappings import MAPPINGS, PostgresMappingStore
from adapters.postgres.match_index import PostgresMatchIndex
from adapters.postgres.matching import MERGES, PAIRS, PostgresMergeStore, PostgresPairStore
from adapters.postgres.media import PostgresMediaStore
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Pool, TenantLease
from adapters.postgres.oauth import PostgresAppStore
from adapters.postgres.orgs import PostgresOrgStore
from adapters.postgres.pushes import PostgresPushStore
from adapters.postgres.request_logs import PostgresRequestLogStore
from adapters.postgres.runs import RUNS, PostgresRunStore
from adapters.postgres.session import Session
from adapters.postgres.sources import SOURCES, PostgresSourceStore
from adapters.postgres.sso import PostgresSsoStore
from adapters.postgres.storage import PostgresStorageLedger
from adapters.postgres.table import TableStore
from adapters.postgres.tables import TABLE_OF
from adapters.postgres.usage import PostgresUsageMeters
from adapters.postgres.webhooks import PostgresWebhookStore
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from ports.catalogue import Rendering
from ports.clock import Clock
from ports.events import EventRendering
from ports.store import Store
from ports.tracing import Tracing
from ports.unit_of_work import Recorded, Tx, refuse_special

_READER = AuditContext(Actor("service", "reader"), "read")
_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '15min'"
)
R = TypeVar("R")
Again = Callable[[psycopg.Error], Awaitable[PooledConnection]]


class PostgresTx:
    """ports.unit_of_work.Tx on a connection that is set to the tenant."""

    def __init__(self, session: Session, rendering: Rendering, event_rendering: EventRendering) -> None:
        self.session, self.rendering, self.event_rendering = session, rendering, event_rendering
        self.tenant, self.context = session.tenant, session.context
        self.now, self.recorded = session.now, session.recorded
        self.dry = False

    def store(self, kind: type[R]) -> Store[R]:
        refuse_special(kind)
        return TableStore(self.session, TABLE_OF[kind])

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        self.session.settle()
        before = self.recorded.lengths()
        link = self.session.link
        try:
            with translated():
                async with link.connection.transaction():
                    yield
        except BaseException:
            link.staged.clear()
            self.recorded.shorten(before)
            raise

    async def flush(self) -> None:
        """What is written last: everything else must have been done, for it holds up whoever else appends to the logs."""
        if "events" in self.__dict__:
            await self.events.flush()
        if "audit" in self.__dict__:
            await self.audit.flush()

    async def committed(self) -> None:
        """Let readers of the log know."""
        if "events" in self.__dict__:
            await self.events.notify()

    keys = cached_property(lambda tx: PostgresKeyStore(tx.session))
    orgs = cached_property(lambda tx: PostgresOrgStore(tx.session))
    oauth = cached_property(lambda tx: PostgresAppStore(tx.session))
    sources = cached_property(lambda tx: PostgresSourceStore(tx.session, SOURCES))
    runs = cached_property(lambda tx: PostgresRunStore(tx.session, RUNS))
    mappings = cached_property(lambda tx: PostgresMappingStore(tx.session, MAPPINGS))
    pushes = cached_property(lambda tx: PostgresPushStore(tx.session))
    storage = cached_property(lambda tx: PostgresStorageLedger(tx.session))
    catalogue = cached_property(lambda tx: PostgresCatalogueStore(tx.session, tx.rendering))
    pairs = cached_property(lambda tx: PostgresPairStore(tx.session, PAIRS))
    merges = cached_property(lambda tx: PostgresMergeStore(tx.session, MERGES))
    match_index = cached_property(lambda tx: PostgresMatchIndex(tx.session))
    media = cached_property(lambda tx: PostgresMediaStore(tx.session, tx.rendering))
    events = cached_property(lambda tx: PostgresEventLog(tx.session, tx.event_rendering))
    jobs = cached_property(lambda tx: PostgresJobStore(tx.session))
    audit = cached_property(lambda tx: PostgresAuditLog(tx.session))
    usage = cached_property(lambda tx: PostgresUsageMeters(tx.session))
    idempotency = cached_property(lambda tx: PostgresIdempotencyStore(tx.session))
    request_logs = cached_property(lambda tx: PostgresRequestLogStore(tx.session))
    exports = cached_property(lambda tx: PostgresExportStore(tx.session, EXPORTS))
    webhooks = cached_property(lambda tx: PostgresWebhookStore(tx.session))
    sso = cached_property(lambda tx: PostgresSsoStore(tx.session))


class _Undone(Exception):
    """Ends a dry transaction without committing."""


class _Transaction:
    """A unit of work's; begun anew where its tenant is by now, as long as nothing was done in it."""

    def __init__(self, lease: TenantLease, link: PooledConnection) -> None:
        self._lease = lease
        self._open: AbstractAsyncContextManager[object] | None = link.connection.transaction()

    async def __aenter__(self) -> None:
        if self._open is not None:
            await self._open.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit, or roll back after an error."""
        if self._open is not None:
            await self._open.__aexit__(kind, error, trace)

    async def again(self, error: psycopg.Error) -> PooledConnection:
        """Roll back, and begin where the tenant is. Raises StaleRoute if nobody knows better."""
        stale = StaleRoute()
        await self.__aexit__(StaleRoute, stale, None)
        self._open = None
        link = await self._lease.again(error)
        begun = link.connection.transaction()
        await begun.__aenter__()
        self._open = begun
        return link


class PostgresUnitOfWork:
    """Units of work on one pool."""

    def __init__(
        self,
        pool: Pool,
        clock: Clock,
        rendering: Rendering,
        event_rendering: EventRendering,
        tracing: Tracing | None = None,
    ) -> None:
        self._pool, self._clock, self._tracing = pool, clock, tracing
        self._rendering, self._event_rendering = rendering, event_rendering

    @asynccontextmanager
    async def begin(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        lease = self._pool.tenant(tenant)
        async with lease as link:
            transaction = _Transaction(lease, link)
            tx = self.assemble(link, tenant, context, transaction.again, once=True)
            try:
                async with transaction:
                    yield tx
                    if tx.dry:
                        raise _Undone  # noqa: TRY301  leaving by an exception is what rolls back
                    await tx.flush()
                await tx.committed()
            except _Undone:
                tx.session.link.staged.clear()
            except BaseException:
                tx.session.link.staged.clear()
                raise

    @asynccontextmanager
    async def scratch(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        async with self.begin(tenant, context) as tx:
            yield tx
            tx.dry = True

    @asynccontextmanager
    async def snapshot(self, tenant: Tenant) -> AsyncIterator[Tx]:
        with translated():
            link = await self._pool.apart(tenant)
            try:
                async with link.connection.transaction():
                    await link.connection.execute(_SNAPSHOT)
                    session = Session(link, tenant, _READER, self._clock.now(), Recorded())
                    yield PostgresTx(session, self._rendering, self._event_rendering)
            finally:
                await link.connection.close()

    def read(self, tenant: Tenant) -> "Reading":
        return Reading(self, self._pool, tenant)

    def assemble(
        self, link: PooledConnection, tenant: Tenant, context: AuditContext, again: Again, *, once: bool = False
    ) -> PostgresTx:
        """The stores of a tenant on a connection that is set to it; `again` and `once` as of Session."""
        trace = self._tracing.current() if self._tracing is not None else None
        session = Session(link, tenant, context, self._clock.now(), Recorded(), again, once, trace)
        return PostgresTx(session, self._rendering, self._event_rendering)


class Reading:
    """Stores for reading, for as long as the context lasts: a class, because every read of the API goes through it."""

    __slots__ = ("_lease", "_tenant", "_uow")

    def __init__(self, uow: PostgresUnitOfWork, pool: Pool, tenant: Tenant) -> None:
        self._uow = uow
        self._lease = pool.tenant(tenant)
        self._tenant = tenant

    async def __aenter__(self) -> Tx:
        """Raises Unavailable."""
        lease = self._lease
        return self._uow.assemble(await lease.__aenter__(), self._tenant, _READER, lease.again)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drivers' errors leave as the domain's."""
        await self._lease.__aexit__(kind, error, trace)
