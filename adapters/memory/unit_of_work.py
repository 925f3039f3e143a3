"""Units of work in memory: the stores of one tenant, committed or undone together."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from adapters.memory.access import MemoryKeys
from adapters.memory.audit import MemoryAudit
from adapters.memory.catalogue import MemoryCatalogue
from adapters.memory.events import MemoryEvents
from adapters.memory.idempotency import MemoryIdempotency
from adapters.memory.jobs import MemoryJobs
from adapters.memory.orgs import MemoryOrgs
from adapters.memory.pushes import MemoryPushes
from adapters.memory.request_logs import MemoryRequestLogs
from adapters.memory.runs import MemoryRuns
from adapters.memory.sources import MemorySources
from adapters.memory.table import MemoryStore, Transaction
from adapters.memory.uploads import MemoryUploads
from adapters.memory.webhooks import MemoryWebhooks
from domain.catalogue import categories
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from ports.catalogue import Rendering
from ports.clock import Clock
from ports.unit_of_work import Tx

READING: Final = AuditContext(Actor("service", "reader"), "read")


@dataclass(slots=True)
class MemoryTx(Tx):
    """A Tx that knows the transaction under it."""

    transaction: Transaction | None = None


class MemoryUnitOfWork:
    """UnitOfWork. One writes at a time; the others wait from their first write on, and read what is committed.

    `rendering` makes products' documents; `below` gives a category's id with those of all below it.
    """

    def __init__(
        self,
        store: MemoryStore,
        clock: Clock,
        rendering: Rendering | None = None,
        below: Callable[[str], frozenset[str]] = categories.below,
    ) -> None:
        self._store, self._clock, self._rendering, self._below = store, clock, rendering, below

    @asynccontextmanager
    async def begin(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        """A transaction: committed on leaving, rolled back on an exception or when `tx.dry` is set."""
        transaction = Transaction(self._store, tenant, self._clock.now())
        tx = self._stores(transaction, context)
        commit = False
        try:
            yield tx
            commit = not tx.dry
        finally:
            transaction.end(commit=commit)

    @asynccontextmanager
    async def scratch(self, tenant: Tenant, context: AuditContext) -> AsyncIterator[Tx]:
        """A transaction that is always rolled back."""
        async with self.begin(tenant, context) as tx:
            yield tx
            tx.dry = True

    @asynccontextmanager
    async def read(self, tenant: Tenant) -> AsyncIterator[Tx]:
        """Stores for reading; writing raises RuntimeError."""
        yield self._stores(Transaction(self._store, tenant, self._clock.now(), read_only=True), READING)

    @asynccontextmanager
    async def savepoint(self, tx: Tx) -> AsyncIterator[None]:
        """A savepoint in `tx`, undone on an exception."""
        if not isinstance(tx, MemoryTx) or tx.transaction is None:
            raise TypeError("This transaction was not begun here.")
        savepoint = tx.transaction.savepoint()
        try:
            yield
        except BaseException:
            tx.transaction.restore(savepoint)
            raise

    def _stores(self, transaction: Transaction, context: AuditContext) -> MemoryTx:
        return MemoryTx(
            tenant=transaction.tenant,
            context=context,
            now=transaction.now,
            recorded=transaction.recorded,
            keys=MemoryKeys(transaction),
            orgs=MemoryOrgs(transaction),
            sources=MemorySources(transaction),
            runs=MemoryRuns(transaction),
            uploads=MemoryUploads(transaction),
            pushes=MemoryPushes(transaction),
            catalogue=MemoryCatalogue(transaction, self._rendering, self._below),
            events=MemoryEvents(transaction),
            jobs=MemoryJobs(transaction),
            audit=MemoryAudit(transaction, context),
            idempotency=MemoryIdempotency(transaction),
            request_logs=MemoryRequestLogs(transaction),
            webhooks=MemoryWebhooks(transaction, self._below),
            transaction=transaction,
        )
