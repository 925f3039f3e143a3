"""Exports in store."""

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import Protocol

from domain.exports.model import Export
from domain.kernel.lines import Lines
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import Store, Tx


class ExportStore(Store[Export], Protocol):
    """In a tenant's transaction."""

    async def take_turns(self) -> None:
        """Whoever asks for exports of this tenant waits from here on until the transaction ends."""
        ...

    async def open(self) -> int:
        """How many wait or run."""
        ...

    async def kept(self) -> Sequence[Export]:
        """Those whose files are there, newest first."""
        ...


class ExportUpkeep(Protocol):
    """Across tenants, for the scheduler."""

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Return exports whose files must be deleted, the longest overdue first: (tenant, ID)."""
        ...

    async def waiting_since(self) -> datetime | None:
        """When the one was asked for that waits the longest; None when none does. Raises Unavailable."""
        ...


class Datasets(Protocol):
    """What of an organisation its export holds beside the products: each line as that dataset's API read answers it."""

    @property
    def names(self) -> Sequence[str]:
        """The datasets, `products` among them, in the order of their files."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """The permissions that reading all of them takes."""
        ...

    def lines(self, tx: Tx, dataset: str) -> AsyncGenerator[Lines, None]:
        """All of a dataset, in portions."""
        ...


class Packer(Protocol):
    """One file's; each call may take a while, and lets other threads run meanwhile."""

    @property
    def size(self) -> int:
        """How many bytes have come out so far."""
        ...

    @property
    def sha256(self) -> str:
        """The hexadecimal SHA-256 of what has come out so far."""
        ...

    def pack(self, data: bytes) -> bytes:
        """Compress the data and return the available output, which may be empty."""
        ...

    def end(self) -> bytes:
        """Return the rest of the output, once."""
        ...


Packing = Callable[[], Packer]
"""Begins a file."""
