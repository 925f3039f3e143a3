"""Units of work: transactions of one tenant, which give access to the tenant's stores."""

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
    """Storage of rows of one type in a tenant's transaction. Pages are newest first."""

    async def get(self, id: str, *, lock: bool = False) -> R | None:
        """Return the row with the ID, or None; `lock` locks it until the transaction ends."""
        ...

    async def add(self, row: R) -> None:
        """Insert a row. Raises Conflict if a unique value is taken."""
        ...

    async def add_all(self, rows: Sequence[R]) -> None:
        """Insert many rows at once. Raises Conflict if a unique value is taken."""
        ...

    async def save(self, row: R, *, expected_version: int | None = None) -> None:
        """Update a row.

        Raises PreconditionFailed if the stored version is not `expected_version` (None: any), NotFound if there is no row.
        """
        ...

    async def remove(self, id: str) -> bool:
        """Delete a row; return whether it existed."""
        ...

    async def page(self, request: PageRequest, filter: Filter | None = None) -> Page[R]:
        """Return a page of the rows that match the filter."""
        ...


@dataclass(slots=True)
class RecordedEffects:
    """Effects of a transaction so far, for the preview of a dry run (`Service-Dry-Run: explain`).

    Attributes:
        changes: Audited changes (`domain.audit.model.Change`).
        events: Events (`domain.events.model.Event`).
        jobs: Queued jobs (`domain.jobs.model.NewJob`).
        warnings: Sentences for the caller.
        extra_previews: Additional parts of the preview that an operation has computed, by name.
    """

    changes: list[Any] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    jobs: list[Any] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    extra_previews: dict[str, Any] = field(default_factory=dict)

    def get_lengths(self) -> tuple[int, int, int, int]:
        """Return the current lengths of the lists, to which `truncate` can shorten them later."""
        return len(self.changes), len(self.events), len(self.jobs), len(self.warnings)

    def truncate(self, lengths: tuple[int, int, int, int]) -> None:
        """Shorten the lists to earlier lengths, after a rollback of the effects recorded since then."""
        changes, events, jobs, warnings = lengths
        del self.changes[changes:], self.events[events:], self.jobs[jobs:], self.warnings[warnings:]


class Tx(Protocol):
    """Transaction of one tenant. `tx[Port]` is the store that implements a port.

    If `is_dry_run` is set, the transaction is rolled back instead of committed.
    """

    tenant: Tenant
    context: AuditContext
    now: datetime
    recorded: RecordedEffects
    is_dry_run: bool

    def __getitem__(self, port: type[P]) -> P:
        """Return the store that implements the port. Raises KeyError if there is none."""
        ...

    def store(self, kind: type[R]) -> Store[R]:
        """Return the store of a resource that has no port of its own. Raises TypeError for other types."""
        ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """Open a savepoint; an exception rolls back to it and is raised again, and the transaction remains usable."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[None]:
        """In autocommit mode, read from one snapshot of the database while the context is open; otherwise, do nothing."""
        ...


class UnitOfWork(Protocol):
    """Factory of transactions, one for each request, attempt at a job, or portion of a run."""

    def begin(self, tenant: Tenant, context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        """Begin a transaction. Leaving the context commits; an exception or `tx.is_dry_run` rolls back."""
        ...

    def begin_scratch(self, tenant: Tenant, context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        """Begin a transaction that is always rolled back."""
        ...

    def begin_snapshot(self, tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        """Begin a read-only transaction with one snapshot of the database, on a separate connection. Raises Unavailable.

        It may remain open for hours; meanwhile the database keeps all replaced versions of rows.
        """
        ...

    def begin_reading(self, tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        """Open a read-only Tx in autocommit mode: each statement sees the data that was committed before the statement."""
        ...
