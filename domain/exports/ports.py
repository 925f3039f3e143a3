"""Storage of exports, and compression of their files."""

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import Protocol

from domain.exports.model import Export
from domain.kernel.lines import Lines
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import Store, Tx


class ExportStore(Store[Export], Protocol):
    """Storage of exports in a tenant's transaction."""

    async def lock_creation(self) -> None:
        """Prevent other transactions from creating exports of this tenant until the transaction ends."""
        ...

    async def count_open(self) -> int:
        """Return the number of pending and running exports."""
        ...

    async def list_with_files(self) -> Sequence[Export]:
        """Return the exports whose files exist, newest first."""
        ...


class ExportUpkeep(Protocol):
    """Exports of all tenants, for the scheduler."""

    async def list_due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Return the tenant and ID of up to `limit` exports that must expire now, in the order of their expiry."""
        ...

    async def find_oldest_waiting(self) -> datetime | None:
        """Return when the oldest waiting export was created; None if no export waits. Raises Unavailable."""
        ...


class Datasets(Protocol):
    """Datasets in an export of an organisation, as lines of JSON; each line is an object as the API returns it."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the datasets, including `products`, in the order of their files."""
        ...

    @property
    def scopes(self) -> frozenset[str]:
        """The scopes that are required to read all datasets."""
        ...

    def stream_lines(self, tx: Tx, dataset: str) -> AsyncGenerator[Lines, None]:
        """Yield all lines of a dataset in portions."""
        ...


class Compressor(Protocol):
    """Compression of one file. Calls may block for a while, and release the interpreter lock."""

    @property
    def size(self) -> int:
        """Number of bytes returned so far."""
        ...

    @property
    def sha256(self) -> str:
        """Hexadecimal SHA-256 of the bytes returned so far."""
        ...

    def compress(self, data: bytes) -> bytes:
        """Compress the data; return the compressed bytes that are ready, which may be none."""
        ...

    def finish(self) -> bytes:
        """Return the remaining compressed bytes; call this once."""
        ...


CompressorFactory = Callable[[], Compressor]
"""Function that creates the compressor of one file."""
