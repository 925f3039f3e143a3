"""Storage of exports, and compression of their files."""

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import Protocol

from domain.exports.model import Export
from domain.kernel.lines import Lines
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import Store, Tx


class ExportStore(Store[Export], Protocol):
    """Exports in a tenant's transaction."""

    async def take_turns(self) -> None:
        """Lock the creation of exports of this tenant until the transaction ends."""
        ...

    async def open(self) -> int:
        """Return the number of pending and running exports."""
        ...

    async def kept(self) -> Sequence[Export]:
        """Return the exports whose files exist, newest first."""
        ...


class ExportUpkeep(Protocol):
    """Exports across tenants, for the scheduler."""

    async def due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Return exports whose files are due for deletion, longest due first, as (tenant, id)."""
        ...

    async def waiting_since(self) -> datetime | None:
        """Return when the longest waiting export was requested; None if none waits. Raises Unavailable."""
        ...


class Datasets(Protocol):
    """Datasets of an organisation's export, each line as that dataset's API read returns it."""

    @property
    def names(self) -> Sequence[str]:
        """The datasets, including `products`, in the order of their files."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes that reading all datasets requires."""
        ...

    def lines(self, tx: Tx, dataset: str) -> AsyncGenerator[Lines, None]:
        """Yield all lines of a dataset in portions."""
        ...


class Packer(Protocol):
    """Compressor of one file. Calls may block for a while and release the interpreter lock."""

    @property
    def size(self) -> int:
        """The number of bytes returned so far."""
        ...

    @property
    def sha256(self) -> str:
        """The hexadecimal SHA-256 of the bytes returned so far."""
        ...

    def pack(self, data: bytes) -> bytes:
        """Return compressed bytes for the data; may be empty."""
        ...

    def end(self) -> bytes:
        """Return the remaining bytes, once."""
        ...


Packing = Callable[[], Packer]
"""Factory of the compressor of a file."""
