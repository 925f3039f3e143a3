"""One unit of work: everything that commits, or does not, together."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from domain.audit.model import Change
from domain.events.model import Event
from domain.exports.model import Export
from domain.jobs.model import NewJob
from domain.kernel.tenancy import AuditContext, Tenant
from domain.mappings.model import SourceMapping
from domain.matching.model import MatchPair, Merge
from domain.runs.model import Run
from domain.sources.model import Source
from domain.webhooks.model import Delivery, Endpoint
from ports.access import KeyStore
from ports.audit import AuditLog
from ports.catalogue import CatalogueStore
from ports.events import EventLog
from ports.exports import ExportStore
from ports.idempotency import IdempotencyStore
from ports.jobs import JobStore
from ports.mappings import MappingStore
from ports.match_index import MatchIndexStore
from ports.matching import MergeStore, PairStore
from ports.media import MediaStore
from ports.oauth import AppStore
from ports.orgs import OrgStore
from ports.pushes import PushStore
from ports.request_logs import RequestLogStore
from ports.runs import RunStore
from ports.sources import SourceStore
from ports.sso import SsoStore
from ports.storage import StorageLedger
from ports.store import Store
from ports.usage import UsageMeters
from ports.webhooks import WebhookStore

R = TypeVar("R")
KEPT_BY: Final[Mapping[type, str]] = {
    Source: "sources",
    Run: "runs",
    SourceMapping: "mappings",
    MatchPair: "pairs",
    Merge: "merges",
    Export: "exports",
    Endpoint: "webhooks",
    Delivery: "webhooks",
}
"""Kinds that are kept by a store of their own, because there is more to keep or to ask than their fields."""


def refuse_special(kind: type) -> None:
    """Raises TypeError for kinds that are not `Tx.store`'s."""
    if kind in KEPT_BY:
        raise TypeError(f"{kind.__name__} is kept by the unit of work's {KEPT_BY[kind]}.")


@dataclass(slots=True)
class Recorded:
    """What a unit of work did so far, for `Service-Dry-Run: explain`; `forecasts` are further parts of the preview by name."""

    changes: list[Change] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    jobs: list[NewJob] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    forecasts: dict[str, Any] = field(default_factory=dict)

    def lengths(self) -> tuple[int, int, int, int]:
        """How much there is, for `shorten`."""
        return len(self.changes), len(self.events), len(self.jobs), len(self.warnings)

    def shorten(self, lengths: tuple[int, int, int, int]) -> None:
        """Forget what was recorded since: it was undone."""
        changes, events, jobs, warnings = lengths
        del self.changes[changes:], self.events[events:], self.jobs[jobs:], self.warnings[warnings:]


class Tx(Protocol):
    """The stores of one tenant inside one transaction, each made when it is first asked for.

    `dry` makes the edge roll back instead of committing. A plain resource's store is asked for by its dataclass.
    """

    tenant: Tenant
    context: AuditContext
    now: datetime
    recorded: Recorded
    dry: bool

    def store(self, kind: type[R]) -> Store[R]:
        """The store of a plain resource. Raises TypeError for one that has a store of its own (KEPT_BY)."""
        ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """A savepoint: undone on an exception, which goes on to the caller; the transaction stays usable."""
        ...

    @property
    def keys(self) -> KeyStore: ...

    @property
    def orgs(self) -> OrgStore: ...

    @property
    def oauth(self) -> AppStore: ...

    @property
    def sources(self) -> SourceStore: ...

    @property
    def runs(self) -> RunStore: ...

    @property
    def mappings(self) -> MappingStore: ...

    @property
    def pushes(self) -> PushStore: ...

    @property
    def storage(self) -> StorageLedger: ...

    @property
    def catalogue(self) -> CatalogueStore: ...

    @property
    def pairs(self) -> PairStore: ...

    @property
    def merges(self) -> MergeStore: ...

    @property
    def match_index(self) -> MatchIndexStore: ...

    @property
    def media(self) -> MediaStore: ...

    @property
    def events(self) -> EventLog: ...

    @property
    def jobs(self) -> JobStore: ...

    @property
    def usage(self) -> UsageMeters: ...

    @property
    def audit(self) -> AuditLog: ...

    @property
    def idempotency(self) -> IdempotencyStore: ...

    @property
    def request_logs(self) -> RequestLogStore: ...

    @property
    def webhooks(self) -> WebhookStore: ...

    @property
    def exports(self) -> ExportStore: ...

    @property
    def sso(self) -> SsoStore: ...


class UnitOfWork(Protocol):
    """Only edges call this: a request, a job attempt, a batch of a run."""

    def begin(self, tenant: Tenant, context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        """A transaction: committed on leaving, rolled back on an exception or when `tx.dry` is set."""
        ...

    def scratch(self, tenant: Tenant, context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        """A transaction that is always rolled back: what it writes, only it sees."""
        ...

    def snapshot(self, tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        """Stores for reading, all of one moment, for hours if need be, on a connection of their own. Raises Unavailable.

        What holds it open has the database keep what everybody has replaced since.
        """
        ...

    def read(self, tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        """Stores for reading, each statement by itself; writing through it is a mistake."""
        ...
