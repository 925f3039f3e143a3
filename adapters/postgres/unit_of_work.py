"""Unit of work in PostgreSQL: transactions with their stores, and the tables of resources without a port."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final, TypeVar, get_args, get_origin

import psycopg

from adapters.postgres.agreements import PostgresAgreementStore
from adapters.postgres.assistant import (
    CONVERSATIONS,
    MEMORIES,
    PREFERENCES,
    SETTINGS,
    PostgresMemoryStore,
    PostgresSpendStore,
    PostgresTurnStore,
)
from adapters.postgres.audit import PostgresAuditLog
from adapters.postgres.billing import ACCOUNTS, CHARGES, INVOICES, PURCHASES, PostgresBillingStore
from adapters.postgres.brand import (
    CLAIMS,
    PostgresBrandClaimStore,
    PostgresClaimInvitationStore,
    PostgresVendorProfileStore,
)
from adapters.postgres.catalogue import CATEGORY_RULES, PostgresCatalogueStore
from adapters.postgres.comparison import LINKS
from adapters.postgres.corrections import (
    CORRECTION_BATCHES,
    CORRECTIONS,
    PostgresCorrectionBatchStore,
    PostgresCorrectionStore,
)
from adapters.postgres.credits import CREDIT_SETTINGS, PostgresCreditStore
from adapters.postgres.demand import PostgresDemandStore, PostgresVendorStatsStore
from adapters.postgres.errors import StaleRoute, translate_errors
from adapters.postgres.event_log import PostgresEventLog
from adapters.postgres.facet_filler import PostgresFacetStore
from adapters.postgres.idempotency import PostgresIdempotencyStore
from adapters.postgres.jobs import PostgresJobStore
from adapters.postgres.matching import JUDGE_SETTINGS, PostgresMatchIndex, PostgresMergeStore, PostgresPairStore
from adapters.postgres.media import PostgresMediaStore
from adapters.postgres.nodes.node_pool import PooledConnection
from adapters.postgres.nodes.pool import ConnectionCheckout, Pool, Reconnect
from adapters.postgres.notifications import NOTIFICATIONS, SEEN_CHANGES, PostgresNotificationRuleStore
from adapters.postgres.oauth import PostgresAppStore
from adapters.postgres.orgs import PostgresKeyStore, PostgresOrgStore, PostgresSsoStore
from adapters.postgres.proposals import PostgresAgentStore, PostgresProposalStore
from adapters.postgres.published_copies import PostgresPublishedCopies
from adapters.postgres.publishing import (
    PUBLICATION_RUNS,
    PostgresHeldLicences,
    PostgresLicenceStore,
    PostgresPublicationStore,
)
from adapters.postgres.request_logs import PostgresRequestLogStore
from adapters.postgres.runs import (
    EXPORTS,
    RUNS,
    SCHEDULED_EXPORTS,
    PostgresExportStore,
    PostgresPushStore,
    PostgresRunStore,
    PostgresScheduledExportStore,
)
from adapters.postgres.saved_views import LIST_PREFERENCES, PostgresSavedViewStore
from adapters.postgres.session import TenantSession
from adapters.postgres.sources import MAPPINGS, SOURCES, PostgresMappingStore, PostgresSourceStore
from adapters.postgres.storage import PostgresStorageLedger
from adapters.postgres.stores import TenantStore
from adapters.postgres.table import ColumnCodec, Table, TableStore
from adapters.postgres.usage import PostgresUsageMeters
from adapters.postgres.webhooks import DELIVERY_TABLE, ENDPOINTS, PostgresWebhookStore
from domain.agents.categories import CategoryAnswers
from domain.audit.ports import AuditLog
from domain.bulk_actions.model import BulkAction
from domain.catalogue.ports import CatalogueRenderer, CatalogueStore, PublishedCopies
from domain.changes.ports import EventRendering
from domain.events.ports import EventLog
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.mail.model import InboundMessage
from domain.media.ports import MediaStore
from domain.probes.model import Probe
from domain.search.ports import FacetStore
from domain.uploads.model import Upload
from domain.usage.model import ModelUse
from domain.webhooks.model import Delivery, Endpoint
from domain.webhooks.ports import WebhookStore
from ports.clock import Clock
from ports.telemetry import Tracing
from ports.unit_of_work import RecordedEffects, Store, Tx

_READER = AuditContext(Actor("service", "reader"), "read")
_BEGIN_SNAPSHOT = (
    "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "
    "SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = '15min'"
)
R = TypeVar("R")
P = TypeVar("P")


class PostgresTx:
    """Transaction (Tx in ports/unit_of_work.py) on a connection whose session is set to the tenant."""

    def __init__(self, session: TenantSession, rendering: CatalogueRenderer, event_rendering: EventRendering) -> None:
        self.session, self.rendering, self.event_rendering = session, rendering, event_rendering
        self.tenant, self.context = session.tenant, session.context
        self.now, self.recorded = session.now, session.recorded
        self.is_dry_run = False
        self._stores: dict[type, Any] = {}

    def __getitem__(self, port: type[P]) -> P:
        store: P | None = self._stores.get(port)
        if store is None:
            store = self._stores[port] = _STORE_FACTORIES[port](self)
        return store

    def store(self, kind: type[R]) -> Store[R]:
        if port := PORTS_BY_TYPE.get(kind):
            raise TypeError(f"{kind.__name__} has no generic store. Use tx[{port.__name__}].")
        return TableStore(self.session, _TABLE_BY_TYPE[kind])

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        self.session.pin_node()
        before = self.recorded.get_lengths()
        connection = self.session.connection
        try:
            with translate_errors():
                async with connection.driver_connection.transaction():
                    yield
        except BaseException:
            connection.temporary_tables.clear()
            self.recorded.truncate(before)
            raise

    def snapshot(self) -> AbstractAsyncContextManager[None]:
        return self.session.snapshot()

    async def flush(self) -> None:
        """Insert the collected events and audit entries, as the last step before the commit.

        This takes locks for which other writers wait until the transaction ends.
        """
        for port in (EventLog, AuditLog):
            if port in self._stores:
                await self._stores[port].flush()

    async def notify_readers(self) -> None:
        """Notify the readers of the tenant's event log of new events. Must be called after the commit."""
        if EventLog in self._stores:
            await self._stores[EventLog].notify()


TABLES: Final[tuple[Table[Any], ...]] = (
    SOURCES,
    RUNS,
    MAPPINGS,
    CATEGORY_RULES,
    CORRECTIONS,
    CORRECTION_BATCHES,
    Table(Upload, "uploads"),
    Table(Probe, "source_probes", special_codecs={"crashes": ColumnCodec("deaths")}),
    EXPORTS,
    SCHEDULED_EXPORTS,
    Table(InboundMessage, "inbound_messages"),
    ENDPOINTS,
    DELIVERY_TABLE,
    PUBLICATION_RUNS,
    Table(ModelUse, "model_uses"),
    JUDGE_SETTINGS,
    Table(CategoryAnswers, "category_answers"),
    CREDIT_SETTINGS,
    CONVERSATIONS,
    MEMORIES,
    SETTINGS,
    PREFERENCES,
    CLAIMS,
    ACCOUNTS,
    INVOICES,
    PURCHASES,
    CHARGES,
    NOTIFICATIONS,
    SEEN_CHANGES,
    LIST_PREFERENCES,
    Table(BulkAction, "bulk_actions"),
    LINKS,
)
_TABLE_BY_TYPE: Final[Mapping[type, Table[Any]]] = {table.kind: table for table in TABLES}
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
    PostgresCreditStore,
    PostgresIdempotencyStore,
    PostgresRequestLogStore,
    PostgresExportStore,
    PostgresScheduledExportStore,
    PostgresWebhookStore,
    PostgresSsoStore,
    PostgresHeldLicences,
    PostgresLicenceStore,
    PostgresPublicationStore,
    PostgresAgreementStore,
    PostgresDemandStore,
    PostgresVendorStatsStore,
    PostgresVendorProfileStore,
    PostgresBrandClaimStore,
    PostgresClaimInvitationStore,
    PostgresBillingStore,
    PostgresTurnStore,
    PostgresSpendStore,
    PostgresMemoryStore,
    PostgresAgentStore,
    PostgresProposalStore,
    PostgresNotificationRuleStore,
    PostgresSavedViewStore,
    PostgresCorrectionStore,
    PostgresCorrectionBatchStore,
)
"""Stores that are created from the session alone; the last base class of each is its port."""


def _create_store_factory(store: type[TenantStore]) -> Callable[[PostgresTx], Any]:
    return lambda tx: store(tx.session)


_STORE_FACTORIES: Final[Mapping[type, Callable[[PostgresTx], Any]]] = {
    **{store.__bases__[-1]: _create_store_factory(store) for store in STORES},
    CatalogueStore: lambda tx: PostgresCatalogueStore(tx.session, tx.rendering),
    FacetStore: lambda tx: PostgresFacetStore(tx.session, tx.rendering),
    MediaStore: lambda tx: PostgresMediaStore(tx.session, tx.rendering),
    PublishedCopies: lambda tx: PostgresPublishedCopies(tx.session, tx.rendering),
    EventLog: lambda tx: PostgresEventLog(tx.session, tx.event_rendering),
}


PORTS_BY_TYPE: Final[Mapping[type, type]] = {
    Endpoint: WebhookStore,
    Delivery: WebhookStore,
    **{
        get_args(base)[0]: port
        for port in _STORE_FACTORIES
        for base in getattr(port, "__orig_bases__", ())
        if get_origin(base) is Store
    },
}
"""Ports by type of the stored object; other types have only a table."""


class _RolledBack(Exception):
    """Raised inside the transaction of a dry run to roll it back."""


class _RestartableTransaction:
    """Context manager of the database transaction in which the statements of a PostgresTx are executed.

    If the first statement finds that the tenant has moved, the transaction begins again on the tenant's current node.
    """

    def __init__(self, checkout: ConnectionCheckout, connection: PooledConnection) -> None:
        self._checkout = checkout
        self._open: AbstractAsyncContextManager[object] | None = connection.driver_connection.transaction()

    async def __aenter__(self) -> None:
        if self._open is not None:
            await self._open.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Commit the transaction, or roll it back after an error."""
        if self._open is not None:
            await self._open.__aexit__(kind, error, trace)

    async def restart_on_current_node(self, error: psycopg.Error) -> PooledConnection:
        """Roll back, begin again on the tenant's current node, and return the connection to it.

        Raises StaleRoute from `error` if the tenant has not moved.
        """
        stale = StaleRoute()
        await self.__aexit__(StaleRoute, stale, None)
        self._open = None
        connection = await self._checkout.reconnect(error)
        transaction = connection.driver_connection.transaction()
        await transaction.__aenter__()
        self._open = transaction
        return connection


class PostgresUnitOfWork:
    """Factory of transactions, which use connections from the pools of all nodes."""

    def __init__(
        self,
        pool: Pool,
        clock: Clock,
        rendering: CatalogueRenderer,
        event_rendering: EventRendering,
        tracing: Tracing | None = None,
    ) -> None:
        self._pool, self._clock, self._tracing = pool, clock, tracing
        self._rendering, self._event_rendering = rendering, event_rendering

    @asynccontextmanager
    async def begin(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        checkout = self._pool.connect_to_tenant(tenant)
        async with checkout as connection:
            transaction = _RestartableTransaction(checkout, connection)
            tx = self.create_tx(connection, tenant, context, transaction.restart_on_current_node, reconnects_once=True)
            try:
                async with transaction:
                    yield tx
                    if tx.is_dry_run:
                        raise _RolledBack  # noqa: TRY301  an exception rolls back
                    await tx.flush()
                await tx.notify_readers()
            except BaseException as error:
                tx.session.connection.temporary_tables.clear()
                if not isinstance(error, _RolledBack):
                    raise

    @asynccontextmanager
    async def begin_scratch(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        async with self.begin(tenant, context) as tx:
            yield tx
            tx.is_dry_run = True

    @asynccontextmanager
    async def begin_snapshot(self, tenant: Tenant) -> AsyncIterator[Tx]:
        with translate_errors():
            node = await self._pool.router.find_node(tenant.org)
            connection = await self._pool.get_node_pool(node).open_dedicated(tenant)
            try:
                async with connection.driver_connection.transaction():
                    await connection.driver_connection.execute(_BEGIN_SNAPSHOT)
                    session = TenantSession(connection, tenant, _READER, self._clock.now(), RecordedEffects())
                    yield PostgresTx(session, self._rendering, self._event_rendering)
            finally:
                await connection.driver_connection.close()

    def begin_reading(self, tenant: Tenant) -> "ReadOnlyStores":
        return ReadOnlyStores(self, self._pool, tenant)

    def create_tx(
        self,
        connection: PooledConnection,
        tenant: Tenant,
        context: AuditContext,
        reconnect: Reconnect,
        *,
        reconnects_once: bool = False,
    ) -> PostgresTx:
        """Return an object that provides the tenant's stores on a connection.

        Args:
            connection: Connection whose session is set to the tenant.
            tenant: The tenant.
            context: Audit context of the work.
            reconnect: Function that returns a connection to the tenant's current node if the tenant has moved.
            reconnects_once: Whether `reconnect` applies only to the first statement, as in a transaction.
        """
        trace = self._tracing.get_current() if self._tracing is not None else None
        session = TenantSession(
            connection, tenant, context, self._clock.now(), RecordedEffects(), reconnect, reconnects_once, trace
        )
        return PostgresTx(session, self._rendering, self._event_rendering)


class ReadOnlyStores:
    """Context manager of a read-only Tx in autocommit mode, which provides the stores of a tenant.

    A class is faster than a generator function, and every read of the API uses it.
    """

    __slots__ = ("_checkout", "_tenant", "_uow")

    def __init__(self, uow: PostgresUnitOfWork, pool: Pool, tenant: Tenant) -> None:
        self._uow = uow
        self._checkout = pool.connect_to_tenant(tenant)
        self._tenant = tenant

    async def __aenter__(self) -> Tx:
        """Take a connection from the pool, and return the stores on it. Raises Unavailable."""
        checkout = self._checkout
        return self._uow.create_tx(await checkout.__aenter__(), self._tenant, _READER, checkout.reconnect)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Return the connection to the pool. Raise a domain error for a database error (`translate_error`)."""
        await self._checkout.__aexit__(kind, error, trace)
