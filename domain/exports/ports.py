"""Storage of exports, and compression of their files."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol

from domain.exports.layout import ExportLayout
from domain.exports.model import Export
from domain.exports.schedules import ExportTarget, ScheduledExport, TargetKind
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


class ProductFile(Protocol):
    """File of products in progress, in another format than JSON Lines. Calls may block for a while."""

    def add(self, documents: Sequence[bytes]) -> Lines:
        """Add products; return the number of added rows and the encoded bytes that are ready, which may be none."""
        ...

    def finish(self) -> Iterator[bytes]:
        """Yield the remaining bytes; call this once."""
        ...

    def list_omitted(self) -> Iterator[Lines]:
        """Yield the file of omitted items (`OmittedItem`) as CSV, after `finish`; nothing if the format requires no values."""
        ...


ProductFileFactory = Callable[[ExportLayout, Mapping[str, str], Path], ProductFile]
"""Function that creates a file by layout, names of the sources by ID, and an empty folder for temporary files."""


class ScheduledExportStore(Store[ScheduledExport], Protocol):
    """Storage of scheduled exports in a tenant's transaction."""

    async def lock_creation(self) -> None:
        """Prevent other transactions from creating scheduled exports of this tenant until the transaction ends."""
        ...

    async def count(self) -> int:
        """Return the number of scheduled exports."""
        ...


class ScheduledExportUpkeep(Protocol):
    """Scheduled exports of all tenants, for the scheduler."""

    async def list_due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        """Return the tenant and ID of up to `limit` scheduled exports that are due, in the order of their times."""
        ...


class DeliveryFailed(Exception):
    """A target could not be reached or refused the file. The message is for users and contains no secret.

    `is_final` is true if further attempts are useless.
    """

    def __init__(self, message: str, *, is_final: bool = False) -> None:
        self.is_final = is_final
        super().__init__(message)


class FileTarget(Protocol):
    """Place of another party to which files are sent. Only permitted addresses are contacted."""

    async def test(self, target: ExportTarget, credentials: Mapping[str, Any]) -> ExportTarget:
        """Write and delete a small file; return the target, in which the server's key is pinned. Raises DeliveryFailed."""
        ...

    async def send(
        self,
        target: ExportTarget,
        credentials: Mapping[str, Any],
        name: str,
        size: int,
        chunks: AsyncIterator[bytes],
    ) -> None:
        """Send a file, which becomes visible only when it is complete; a file of the same name is replaced.

        Raises DeliveryFailed.

        Args:
            target: The target.
            credentials: The target's credentials.
            name: The name of the file.
            size: The size in bytes.
            chunks: The contents.
        """
        ...


class FileTargets(dict[TargetKind, FileTarget]):
    """Clients of targets by kind; targets without files, such as mail, have none."""
