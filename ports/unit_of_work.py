"""Unit of work: a transaction of one tenant with its stores."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, TypeVar

from domain.kernel.paging import Filter, Page, PageRequest
from domain.kernel.tenancy import AuditContext, Tenant

R = TypeVar("R")
P = TypeVar("P")


class Store(Protocol[R]):
    """Rows of one resource type in a tenant's transaction, by id. Pages are newest first."""

    async def get(self, id: str, *, lock: bool = False) -> R | None:
        """Return one row; `lock` locks it until the transaction ends."""
        ...

    async def add(self, row: R) -> None:
        """Insert a row. Raises Conflict if a unique value is taken."""
        ...

    async def add_all(self, rows: Sequence[R]) -> None:
        """Insert many rows at once. Raises Conflict if a unique value is taken."""
        ...

    async def save(self, row: R, *, expected_version: int | None = None) -> None:
        """Update a row. Raises PreconditionFailed if the stored version is not the expected one, NotFound if there is no row."""
        ...

    async def remove(self, id: str) -> bool:
        """Delete a row; return whether it existed."""
        ...

    async def page(self, request: PageRequest, filter: Filter | None = None) -> Page[R]:
        """Return a page of the rows that match the filter."""
        ...


@dataclass(slots=True)
class Recorded:
    """Effects of a unit of work so far, for `Service-Dry-Run: explain`.

    Attributes:
        changes: audit changes (`domain.audit.model.Change`).
        events: events (`domain.events.model.Event`).
        jobs: queued jobs (`domain.jobs.model.NewJob`).
        warnings: sentences for the caller.
        forecasts: further parts of the preview, by name.
    """

    changes: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    jobs: list[Any] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    forecasts: dict[str, Any] = field(default_factory=dict)

    def lengths(self) -> tuple[int, int, int, int]:
        """Return the current lengths, for `shorten`."""
        return len(self.changes), len(self.events), len(self.jobs), len(self.warnings)

    def shorten(self, lengths: tuple[int, int, int, int]) -> None:
        """Discard what was recorded after the lengths were taken, because it was rolled back."""
        changes, events, jobs, warnings = lengths
        del self.changes[changes:], self.events[events:], self.jobs[jobs:], self.warnings[warnings:]


class Tx(Protocol):
    """Transaction of one tenant. `tx[Port]` is the store that implements a port, created on first use.

    If `dry` is set, the edge rolls back instead of committing.
    """

    tenant: Tenant
    context: AuditContext
    now: datetime
    recorded: Recorded
    dry: bool

    def __getitem__(self, port: type[P]) -> P:
        """Return the port's store. Raises KeyError if no store is registered for the port."""
        ...

    def store(self, kind: type[R]) -> Store[R]:
        """Return the store of a plain resource. Raises TypeError for a type that has a port of its own."""
        ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """Open a savepoint; an exception rolls back to it and propagates, and the transaction stays usable."""
        ...


class UnitOfWork(Protocol):
    """Factory of transactions. Only edges call it: a request, an attempt at a job, a portion of a run."""

    def begin(self, tenant: Tenant, context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        """Begin a transaction; leaving commits it, an exception or `tx.dry` rolls it back."""
        ...

    def scratch(self, tenant: Tenant, context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        """Begin a transaction that is always rolled back."""
        ...

    def snapshot(self, tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        """Return read-only stores over one snapshot of the database, on their own connection. Raises Unavailable.

        The snapshot may stay open for hours. Meanwhile the database keeps every row version replaced since.
        """
        ...

    def read(self, tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        """Return read-only stores without a transaction; each statement sees its own snapshot."""
        ...
