"""The transaction and the stores inside it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from types import TracebackType

from adapters.postgres.access import PostgresKeyStore
from adapters.postgres.audit import PostgresAuditLog
from adapters.postgres.catalogue import PostgresCatalogueStore
from adapters.postgres.errors import translated
from adapters.postgres.events import PostgresEventLog
from adapters.postgres.idempotency import PostgresIdempotencyStore
from adapters.postgres.jobs import PostgresJobStore
from adapters.postgres.orgs import PostgresOrgStore
from adapters.postgres.pool import Pool, PooledConnection
from adapters.postgres.pushes import PostgresPushStore
from adapters.postgres.request_logs import PostgresRequestLogStore
from adapters.postgres.runs import PostgresRunStore
from adapters.postgres.session import Session
from adapters.postgres.sources import PostgresSourceStore
from adapters.postgres.uploads import PostgresUploadStore
from adapters.postgres.webhooks import PostgresWebhookStore
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from ports.catalogue import Rendering
from ports.clock import Clock
from ports.events import EventRendering
from ports.unit_of_work import Recorded, Tx

_READER = AuditContext(Actor("service", "reader"), "read")


class _Undone(Exception):
    """Ends a dry transaction without committing."""


class PostgresUnitOfWork:
    """Units of work on one pool."""

    def __init__(self, pool: Pool, clock: Clock, rendering: Rendering, event_rendering: EventRendering) -> None:
        self._pool = pool
        self._clock = clock
        self._rendering = rendering
        self._event_rendering = event_rendering

    @asynccontextmanager
    async def begin(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        """A transaction: committed on leaving, rolled back on an exception or when `tx.dry` is set."""
        async with self._pool.tenant(tenant) as link:
            tx = self.assemble(link, tenant, context)
            try:
                async with link.connection.transaction():
                    yield tx
                    if tx.dry:
                        raise _Undone  # noqa: TRY301  leaving by an exception is what rolls back
                assert isinstance(tx.events, PostgresEventLog)
                await tx.events.tell()
            except _Undone:
                link.staged.clear()
            except BaseException:
                link.staged.clear()
                raise

    @asynccontextmanager
    async def scratch(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        """A transaction that is always rolled back."""
        async with self.begin(tenant, context) as tx:
            yield tx
            tx.dry = True

    def read(self, tenant: Tenant) -> "Reading":
        """Stores for reading, each statement by itself."""
        return Reading(self, self._pool, tenant)

    @asynccontextmanager
    async def savepoint(self, tx: Tx) -> AsyncIterator[None]:
        """A savepoint: undone on an exception, which goes on."""
        before = replace(
            tx.recorded, events=[*tx.recorded.events], changes=[*tx.recorded.changes], jobs=[*tx.recorded.jobs]
        )
        store = tx.sources
        assert isinstance(store, PostgresSourceStore)
        try:
            with translated():
                async with store.session.link.connection.transaction():
                    yield
        except BaseException:
            store.session.link.staged.clear()
            tx.recorded.events[:], tx.recorded.changes[:] = before.events, before.changes
            tx.recorded.jobs[:] = before.jobs
            raise

    def assemble(self, link: PooledConnection, tenant: Tenant, context: AuditContext) -> Tx:
        """The stores of a tenant on a connection that is set to it."""
        recorded = Recorded()
        session = Session(link, tenant, context, self._clock.now(), recorded)
        events = PostgresEventLog(session, self._event_rendering)
        return Tx(
            tenant=tenant,
            context=context,
            now=session.now,
            recorded=recorded,
            keys=PostgresKeyStore(session),
            orgs=PostgresOrgStore(session),
            sources=PostgresSourceStore(session),
            runs=PostgresRunStore(session),
            pushes=PostgresPushStore(session),
            uploads=PostgresUploadStore(session),
            catalogue=PostgresCatalogueStore(session, self._rendering),
            events=events,
            jobs=PostgresJobStore(session),
            audit=PostgresAuditLog(session),
            idempotency=PostgresIdempotencyStore(session),
            request_logs=PostgresRequestLogStore(session),
            webhooks=PostgresWebhookStore(session),
        )


class Reading:
    """Stores for reading, for as long as the context lasts: a class, because every read of the API goes through it."""

    __slots__ = ("_lease", "_tenant", "_uow")

    def __init__(self, uow: PostgresUnitOfWork, pool: Pool, tenant: Tenant) -> None:
        self._uow = uow
        self._lease = pool.tenant(tenant)
        self._tenant = tenant

    async def __aenter__(self) -> Tx:
        """Raises Unavailable."""
        return self._uow.assemble(await self._lease.__aenter__(), self._tenant, _READER)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drivers' errors leave as the domain's."""
        await self._lease.__aexit__(kind, error, trace)
