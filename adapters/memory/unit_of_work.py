"""Units of work in memory: the stores of one tenant, committed or undone together."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final, TypeVar

from adapters.memory.access import MemoryKeys
from adapters.memory.audit import MemoryAudit
from adapters.memory.catalogue import MemoryCatalogue
from adapters.memory.events import MemoryEvents
from adapters.memory.exports import MemoryExports
from adapters.memory.idempotency import MemoryIdempotency
from adapters.memory.jobs import MemoryJobs
from adapters.memory.mappings import MemoryMappings
from adapters.memory.match_index import MemoryMatchIndex
from adapters.memory.matching import MemoryMerges, MemoryPairs
from adapters.memory.media import MemoryMedia
from adapters.memory.oauth import MemoryApps
from adapters.memory.orgs import MemoryOrgs
from adapters.memory.pushes import MemoryPushes
from adapters.memory.request_logs import MemoryRequestLogs
from adapters.memory.runs import MemoryRuns
from adapters.memory.sources import MemorySources
from adapters.memory.sso import MemorySsoStore
from adapters.memory.storage import MemoryStorageLedger
from adapters.memory.table import MemoryDatabase, TableStore, Transaction, table_of
from adapters.memory.usage import MemoryUsageMeters
from adapters.memory.webhooks import MemoryWebhooks
from domain.access.ports import KeyStore
from domain.audit.ports import AuditLog
from domain.catalogue import categories
from domain.catalogue.ports import CatalogueStore, Rendering
from domain.events.ports import EventLog
from domain.exports.ports import ExportStore
from domain.jobs.ports import JobStore
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.mappings.ports import MappingStore
from domain.matching.ports import MatchIndexStore, MergeStore, PairStore
from domain.media.ports import MediaStore
from domain.oauth.ports import AppStore
from domain.orgs.ports import OrgStore
from domain.request_logs.ports import RequestLogStore
from domain.runs.ports import PushStore, RunStore
from domain.sources.ports import SourceStore
from domain.sso.ports import SsoStore
from domain.storage.ports import StorageLedger
from domain.usage.ports import UsageMeters
from domain.webhooks.model import Delivery, Endpoint
from domain.webhooks.ports import WebhookStore
from ports.clock import Clock
from ports.idempotency import IdempotencyStore
from ports.telemetry import Tracing
from ports.unit_of_work import Store, StoreFactories, Tx

READING: Final = AuditContext(Actor("service", "reader"), "read")


R = TypeVar("R")
P = TypeVar("P")


class MemoryTx:
    """ports.unit_of_work.Tx on a transaction."""

    def __init__(
        self,
        transaction: Transaction,
        context: AuditContext,
        rendering: Rendering | None,
        below: Callable[[str], frozenset[str]],
    ) -> None:
        self.transaction, self.context, self.rendering, self.below = transaction, context, rendering, below
        self.tenant, self.now, self.recorded = transaction.tenant, transaction.now, transaction.recorded
        self.dry = False
        self._stores: dict[type, Any] = {}

    def __getitem__(self, port: type[P]) -> P:
        store: P | None = self._stores.get(port)
        if store is None:
            store = self._stores[port] = STORES.make(port, self)
        return store

    def store(self, kind: type[R]) -> Store[R]:
        STORES.refuse_special(kind)
        return TableStore(self.transaction, table_of(kind))

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        savepoint = self.transaction.savepoint()
        try:
            yield
        except BaseException:
            self.transaction.restore(savepoint)
            raise


STORES: Final = StoreFactories[MemoryTx]()
STORES.add(KeyStore, lambda tx: MemoryKeys(tx.transaction))
STORES.add(OrgStore, lambda tx: MemoryOrgs(tx.transaction))
STORES.add(AppStore, lambda tx: MemoryApps(tx.transaction))
STORES.add(SourceStore, lambda tx: MemorySources(tx.transaction))
STORES.add(RunStore, lambda tx: MemoryRuns(tx.transaction))
STORES.add(MappingStore, lambda tx: MemoryMappings(tx.transaction))
STORES.add(PushStore, lambda tx: MemoryPushes(tx.transaction))
STORES.add(StorageLedger, lambda tx: MemoryStorageLedger(tx.transaction))
STORES.add(PairStore, lambda tx: MemoryPairs(tx.transaction))
STORES.add(MergeStore, lambda tx: MemoryMerges(tx.transaction))
STORES.add(CatalogueStore, lambda tx: MemoryCatalogue(tx.transaction, tx.rendering, tx.below))
STORES.add(MatchIndexStore, lambda tx: MemoryMatchIndex(tx.transaction))
STORES.add(MediaStore, lambda tx: MemoryMedia(tx.transaction, tx.rendering))
STORES.add(EventLog, lambda tx: MemoryEvents(tx.transaction, tx.context))
STORES.add(JobStore, lambda tx: MemoryJobs(tx.transaction))
STORES.add(AuditLog, lambda tx: MemoryAudit(tx.transaction, tx.context))
STORES.add(UsageMeters, lambda tx: MemoryUsageMeters(tx.transaction))
STORES.add(IdempotencyStore, lambda tx: MemoryIdempotency(tx.transaction))
STORES.add(RequestLogStore, lambda tx: MemoryRequestLogs(tx.transaction))
STORES.add(ExportStore, lambda tx: MemoryExports(tx.transaction))
STORES.add(WebhookStore, lambda tx: MemoryWebhooks(tx.transaction, tx.below), Endpoint, Delivery)
STORES.add(SsoStore, lambda tx: MemorySsoStore(tx.transaction))


class MemoryUnitOfWork:
    """UnitOfWork. One writes at a time; the others wait from their first write on, and read what is committed.

    `rendering` makes products' documents; `below` gives a category's id with those of all below it.
    """

    def __init__(
        self,
        database: MemoryDatabase,
        clock: Clock,
        rendering: Rendering | None = None,
        below: Callable[[str], frozenset[str]] = categories.below,
        tracing: Tracing | None = None,
    ) -> None:
        self._database, self._clock, self._rendering, self._below = database, clock, rendering, below
        self._tracing = tracing

    @asynccontextmanager
    async def begin(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        trace = self._tracing.current() if self._tracing is not None else None
        tx = self._assemble(Transaction(self._database, tenant, self._clock.now(), trace=trace), context)
        commit = False
        try:
            yield tx
            commit = not tx.dry
        finally:
            tx.transaction.end(commit=commit)

    @asynccontextmanager
    async def scratch(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        async with self.begin(tenant, context) as tx:
            yield tx
            tx.dry = True

    @asynccontextmanager
    async def snapshot(self, tenant: Tenant) -> AsyncIterator[Tx]:
        kept = self._database.copied()
        yield self._assemble(Transaction(kept, tenant, self._clock.now(), read_only=True), READING)

    @asynccontextmanager
    async def read(self, tenant: Tenant) -> AsyncIterator[Tx]:
        yield self._assemble(Transaction(self._database, tenant, self._clock.now(), read_only=True), READING)

    def _assemble(self, transaction: Transaction, context: AuditContext) -> MemoryTx:
        return MemoryTx(transaction, context, self._rendering, self._below)
