"""Unit of work in PostgreSQL: transactions, their stores, and the tables of plain resources."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final, TypeVar, get_args, get_origin

import psycopg

from adapters.postgres.audit import PostgresAuditLog
from adapters.postgres.catalogue import CATEGORY_RULES, PostgresCatalogueStore
from adapters.postgres.errors import StaleRoute, translated
from adapters.postgres.events import PostgresEventLog
from adapters.postgres.idempotency import PostgresIdempotencyStore
from adapters.postgres.jobs import PostgresJobStore
from adapters.postgres.matching import JUDGE_SETTINGS, PostgresMatchIndex, PostgresMergeStore, PostgresPairStore
from adapters.postgres.media import PostgresMediaStore
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import Again, Pool, TenantLease
from adapters.postgres.oauth import PostgresAppStore
from adapters.postgres.orgs import PostgresKeyStore, PostgresOrgStore, PostgresSsoStore
from adapters.postgres.request_logs import PostgresRequestLogStore
from adapters.postgres.runs import EXPORTS, RUNS, PostgresExportStore, PostgresPushStore, PostgresRunStore
from adapters.postgres.session import Session
from adapters.postgres.sources import MAPPINGS, SOURCES, PostgresMappingStore, PostgresSourceStore
from adapters.postgres.storage import PostgresStorageLedger
from adapters.postgres.stores import TenantStore
from adapters.postgres.table import Table, TableStore
from adapters.postgres.usage import PostgresUsageMeters
from adapters.postgres.webhooks import DELIVERIES, ENDPOINTS, PostgresWebhookStore
from domain.audit.ports import AuditLog
from domain.catalogue.ports import CatalogueStore, Rendering
from domain.changes.ports import EventRendering
from domain.events.ports import EventLog
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.mail.model import InboundMessage
from domain.media.ports import MediaStore
from domain.probes.model import Probe
from domain.uploads.model import Upload
from domain.usage.model import ModelUse
from domain.webhooks.model import Delivery, Endpoint
from domain.webhooks.ports import WebhookStore
from ports.clock import Clock
from ports.telemetry import Tracing
from ports.unit_of_work import Recorded, Store, Tx

_READER = AuditContext(Actor("service", "reader"), "read")
_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '15min'"
)
R = TypeVar("R")
P = TypeVar("P")


class PostgresTx:
    """Tx (ports/unit_of_work.py) on a connection that is set to the tenant."""

    def __init__(self, session: Session, rendering: Rendering, event_rendering: EventRendering) -> None:
        self.session, self.rendering, self.event_rendering = session, rendering, event_rendering
        self.tenant, self.context = session.tenant, session.context
        self.now, self.recorded = session.now, session.recorded
        self.dry = False
        self._stores: dict[type, Any] = {}

    def __getitem__(self, port: type[P]) -> P:
        store: P | None = self._stores.get(port)
        if store is None:
            store = self._stores[port] = _MAKERS[port](self)
        return store

    def store(self, kind: type[R]) -> Store[R]:
        if port := PORTS.get(kind):
            raise TypeError(f"{kind.__name__} is stored by {port.__name__}.")
        return TableStore(self.session, _TABLE_OF[kind])

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
        """Append to the event and audit logs, as the last step before the commit, since other writers then wait."""
        for port in (EventLog, AuditLog):
            if port in self._stores:
                await self._stores[port].flush()

    async def committed(self) -> None:
        """Notify readers of the event log after the commit."""
        if EventLog in self._stores:
            await self._stores[EventLog].notify()


TABLES: Final[tuple[Table[Any], ...]] = (
    SOURCES,
    RUNS,
    MAPPINGS,
    CATEGORY_RULES,
    Table(Upload, "uploads"),
    Table(Probe, "source_probes"),
    EXPORTS,
    Table(InboundMessage, "inbound_messages"),
    ENDPOINTS,
    DELIVERIES,
    Table(ModelUse, "model_uses"),
    JUDGE_SETTINGS,
)
_TABLE_OF: Final[Mapping[type, Table[Any]]] = {table.kind: table for table in TABLES}
STORES: Final[tuple[type[TenantStore], ...]] = (
    PostgresKeyStore,
    PostgresOrgStore,
    PostgresAppStore,
    PostgresSourceStore,
    PostgresRunStore,
    PostgresMappingStore,
    PostgresPushStore,
    PostgresStorageLedger,
    PostgresPairStore,
    PostgresMergeStore,
    PostgresMatchIndex,
    PostgresJobStore,
    PostgresAuditLog,
    PostgresUsageMeters,
    PostgresIdempotencyStore,
    PostgresRequestLogStore,
    PostgresExportStore,
    PostgresWebhookStore,
    PostgresSsoStore,
)
"""Stores that need only the session; the last base class of each is its port."""


def _on_session(store: type[TenantStore]) -> Callable[[PostgresTx], Any]:
    return lambda tx: store(tx.session)


_MAKERS: Final[Mapping[type, Callable[[PostgresTx], Any]]] = {
    **{store.__bases__[-1]: _on_session(store) for store in STORES},
    CatalogueStore: lambda tx: PostgresCatalogueStore(tx.session, tx.rendering),
    MediaStore: lambda tx: PostgresMediaStore(tx.session, tx.rendering),
    EventLog: lambda tx: PostgresEventLog(tx.session, tx.event_rendering),
}


PORTS: Final[Mapping[type, type]] = {
    Endpoint: WebhookStore,
    Delivery: WebhookStore,
    **{
        get_args(base)[0]: port
        for port in _MAKERS
        for base in getattr(port, "__orig_bases__", ())
        if get_origin(base) is Store
    },
}
"""Ports by resource type, for types that are not plain resources."""


class _RolledBack(Exception):
    """Signal that rolls back a dry transaction."""


class _Transaction:
    """Transaction of a unit of work, which can restart on another node before its first statement."""

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
        """Roll back, and begin on the tenant's current node. Raises StaleRoute if the tenant has not moved."""
        stale = StaleRoute()
        await self.__aexit__(StaleRoute, stale, None)
        self._open = None
        link = await self._lease.again(error)
        transaction = link.connection.transaction()
        await transaction.__aenter__()
        self._open = transaction
        return link


class PostgresUnitOfWork:
    """Factory of units of work on one pool."""

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
                        raise _RolledBack  # noqa: TRY301  an exception rolls back
                    await tx.flush()
                await tx.committed()
            except BaseException as error:
                tx.session.link.staged.clear()
                if not isinstance(error, _RolledBack):
                    raise

    @asynccontextmanager
    async def scratch(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        async with self.begin(tenant, context) as tx:
            yield tx
            tx.dry = True

    @asynccontextmanager
    async def snapshot(self, tenant: Tenant) -> AsyncIterator[Tx]:
        with translated():
            node = await self._pool.router.home(tenant.org)
            link = await self._pool.pool_of(node).dedicated(tenant)
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
        """Return the stores of a tenant on a connection that is set to it; see Session for `again` and `once`."""
        trace = self._tracing.current() if self._tracing is not None else None
        session = Session(link, tenant, context, self._clock.now(), Recorded(), again, once, trace)
        return PostgresTx(session, self._rendering, self._event_rendering)


class Reading:
    """Context with read-only stores; a class instead of a generator, because every read of the API uses it."""

    __slots__ = ("_lease", "_tenant", "_uow")

    def __init__(self, uow: PostgresUnitOfWork, pool: Pool, tenant: Tenant) -> None:
        self._uow = uow
        self._lease = pool.tenant(tenant)
        self._tenant = tenant

    async def __aenter__(self) -> Tx:
        """Take a connection. Raises Unavailable."""
        lease = self._lease
        return self._uow.assemble(await lease.__aenter__(), self._tenant, _READER, lease.again)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Return the connection and translate database errors."""
        await self._lease.__aexit__(kind, error, trace)
