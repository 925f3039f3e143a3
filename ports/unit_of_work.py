"""One unit of work: everything that commits, or does not, together (architecture §5)."""

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from domain.audit.model import Change
from domain.events.model import Event
from domain.jobs.model import NewJob
from domain.kernel.tenancy import AuditContext, Tenant
from domain.webhooks.model import Forecast
from ports.access import KeyStore
from ports.audit import AuditLog
from ports.catalogue import CatalogueStore
from ports.events import EventLog
from ports.idempotency import IdempotencyStore
from ports.jobs import JobStore
from ports.orgs import OrgStore
from ports.pushes import PushStore
from ports.request_logs import RequestLogStore
from ports.runs import RunStore
from ports.sources import SourceStore
from ports.uploads import UploadStore
from ports.webhooks import WebhookStore


@dataclass(slots=True)
class Recorded:
    """What a unit of work did so far, for `Service-Dry-Run: explain`."""

    changes: list[Change] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    jobs: list[NewJob] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    forecast: Forecast | None = None
    """For webhook endpoints: what they would have got lately."""


@dataclass(slots=True)
class Tx:
    """The stores of one tenant inside one transaction. `dry` makes the edge roll back instead of committing."""

    tenant: Tenant
    context: AuditContext
    now: datetime
    recorded: Recorded
    keys: KeyStore
    orgs: OrgStore
    sources: SourceStore
    runs: RunStore
    uploads: UploadStore
    pushes: PushStore
    catalogue: CatalogueStore
    events: EventLog
    jobs: JobStore
    audit: AuditLog
    idempotency: IdempotencyStore
    request_logs: RequestLogStore
    webhooks: WebhookStore
    dry: bool = False


class UnitOfWork(Protocol):
    """Only edges call this: a request, a job attempt, a batch of a run."""

    def begin(self, tenant: Tenant, context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        """A transaction: committed on leaving, rolled back on an exception or when `tx.dry` is set."""
        ...

    def scratch(self, tenant: Tenant, context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        """A transaction that is always rolled back: what it writes, only it sees."""
        ...

    def read(self, tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        """Stores for reading, each statement by itself; writing through it is a mistake."""
        ...

    def savepoint(self, tx: Tx) -> AbstractAsyncContextManager[None]:
        """A savepoint in `tx`: undone on an exception, which goes on to the caller; the transaction stays usable."""
        ...
