"""One unit of work: a transaction of one tenant, in which everything commits or nothing does, and the stores in it."""

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
    """The rows of one kind of resource in a tenant's transaction, by id. Pages are newest first."""

    async def get(self, id: str, *, lock: bool = False) -> R | None:
        """Return one row; `lock` keeps others from changing it until the transaction ends."""
        ...

    async def add(self, row: R) -> None:
        """Insert a row. Raises Conflict when what must be unique is taken."""
        ...

    async def add_all(self, rows: Sequence[R]) -> None:
        """Insert many rows at a time, as `add` does."""
        ...

    async def save(self, row: R, *, expected_version: int | None = None) -> None:
        """Update a row. Raises PreconditionFailed when another version than expected is stored, NotFound for no row."""
        ...

    async def remove(self, id: str) -> bool:
        """Delete a row; return whether there was one."""
        ...

    async def page(self, request: PageRequest, filter: Filter | None = None) -> Page[R]:
        """Return a page of the rows that match the filter."""
        ...


@dataclass(slots=True)
class Recorded:
    """What a unit of work did so far, for `Service-Dry-Run: explain`.

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
        """Return how much is recorded, for `shorten`."""
        return len(self.changes), len(self.events), len(self.jobs), len(self.warnings)

    def shorten(self, lengths: tuple[int, int, int, int]) -> None:
        """Forget what was recorded since those lengths were taken: it was rolled back."""
        changes, events, jobs, warnings = lengths
        del self.changes[changes:], self.events[events:], self.jobs[jobs:], self.warnings[warnings:]


class Tx(Protocol):
    """A transaction of one tenant. `tx[Port]` is the store behind a port; it is made when it is first used.

    `dry` makes the edge roll back instead of committing.
    """

    tenant: Tenant
    context: AuditContext
    now: datetime
    recorded: Recorded
    dry: bool

    def __getitem__(self, port: type[P]) -> P:
        """Return the store behind a port. Raises KeyError for a port that no store is registered for."""
        ...

    def store(self, kind: type[R]) -> Store[R]:
        """Return the store of a plain resource. Raises TypeError for a kind that is kept behind a port of its own."""
        ...

    def savepoint(self) -> AbstractAsyncContextManager[None]:
        """Open a savepoint: an exception undoes what was done since and propagates; the transaction stays usable."""
        ...


class UnitOfWork(Protocol):
    """Begins transactions. Only edges call it: a request, an attempt at a job, a portion of a run."""

    def begin(self, tenant: Tenant, context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        """Begin a transaction: committed on leaving, rolled back on an exception or when `tx.dry` is set."""
        ...

    def scratch(self, tenant: Tenant, context: AuditContext) -> AbstractAsyncContextManager[Tx]:
        """Begin a transaction that is always rolled back: no other transaction sees what it writes."""
        ...

    def snapshot(self, tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        """Return stores for reading, all of one moment, for hours if need be, on a connection of their own. Raises Unavailable.

        While it is open the database keeps every row version that has been replaced since.
        """
        ...

    def read(self, tenant: Tenant) -> AbstractAsyncContextManager[Tx]:
        """Return stores for reading, each statement by itself; writing through it is an error."""
        ...
