"""Units of work in memory: the stores of one tenant, committed or undone together."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Final, TypeVar

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
from domain.catalogue import categories
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from ports.catalogue import Rendering
from ports.clock import Clock
from ports.store import Store
from ports.tracing import Tracing
from ports.unit_of_work import Tx, refuse_special

READING: Final = AuditContext(Actor("service", "reader"), "read")


R = TypeVar("R")


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

    def store(self, kind: type[R]) -> Store[R]:
        refuse_special(kind)
        return TableStore(self.transaction, table_of(kind))

    @asynccontextmanager
    async def savepoint(self) -> AsyncIterator[None]:
        savepoint = self.transaction.savepoint()
        try:
            yield
        except BaseException:
            self.transaction.restore(savepoint)
            raise

    keys = cached_property(lambda tx: MemoryKeys(tx.transaction))
    orgs = cached_property(lambda tx: MemoryOrgs(tx.transaction))
    oauth = cached_property(lambda tx: MemoryApps(tx.transaction))
    sources = cached_property(lambda tx: MemorySources(tx.transaction))
    runs = cached_property(lambda tx: MemoryRuns(tx.transaction))
    mappings = cached_property(lambda tx: MemoryMappings(tx.transaction))
    pushes = cached_property(lambda tx: MemoryPushes(tx.transaction))
    storage = cached_property(lambda tx: MemoryStorageLedger(tx.transaction))
    pairs = cached_property(lambda tx: MemoryPairs(tx.transaction))
    merges = cached_property(lambda tx: MemoryMerges(tx.transaction))
    catalogue = cached_property(lambda tx: MemoryCatalogue(tx.transaction, tx.rendering, tx.below))
    match_index = cached_property(lambda tx: MemoryMatchIndex(tx.transaction))
    media = cached_property(lambda tx: MemoryMedia(tx.transaction, tx.rendering))
    events = cached_property(lambda tx: MemoryEvents(tx.transaction, tx.context))
    jobs = cached_property(lambda tx: MemoryJobs(tx.transaction))
    audit = cached_property(lambda tx: MemoryAudit(tx.transaction, tx.context))
    usage = cached_property(lambda tx: MemoryUsageMeters(tx.transaction))
    idempotency = cached_property(lambda tx: MemoryIdempotency(tx.transaction))
    request_logs = cached_property(lambda tx: MemoryRequestLogs(tx.transaction))
    exports = cached_property(lambda tx: MemoryExports(tx.transaction))
    webhooks = cached_property(lambda tx: MemoryWebhooks(tx.transaction, tx.below))
    sso = cached_property(lambda tx: MemorySsoStore(tx.transaction))


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
