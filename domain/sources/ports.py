"""Ports of sources: storage of sources and their encrypted credentials, and of scheduled pulls."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.sources.model import Follower, Source, SourceContents
from ports.unit_of_work import Store


class SourceStore(Store[Source], Protocol):
    """Storage of sources and their encrypted credentials in a tenant's transaction."""

    async def save_encrypted_credentials(self, id: str, encrypted: bytes | None) -> None:
        """Store the encrypted credentials of the source; None deletes the stored ones."""
        ...

    async def count(self, *, lock: bool = False) -> int:
        """Return the number of the tenant's sources, except those that the service has disabled and the one with corrections.

        With `lock`, other such calls of the tenant wait until the transaction ends.
        """
        ...

    async def summarise_contents(
        self, sources: Collection[str], max_products: int, max_sampled: int
    ) -> Sequence[SourceContents]:
        """Return the numbers of products and offers of each source.

        Args:
            sources: IDs of the sources.
            max_products: Number up to which the products of a source are counted.
            max_sampled: Number of the newest products and offers of a source that are examined.
        """
        ...

    async def sample_documents(self, sources: Collection[str], max_products: int) -> Sequence[tuple[str, bytes]]:
        """Return the JSON of the newest products of each source, as (source ID, product); of merged ones, the merged product."""
        ...

    async def load_encrypted_credentials(self, id: str) -> bytes | None:
        """Return the encrypted credentials of the source, or None."""
        ...


class SourceSchedule(Protocol):
    """Scheduled pulls of all tenants, for the scheduler."""

    async def list_due(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str, str]]:
        """Return due pulls of sources as (tenant, source ID, stream), earliest due time first."""
        ...

    async def find_next_due(self) -> datetime | None:
        """Return the time of the earliest scheduled pull, or None."""
        ...

    async def list_followers(self, now: datetime) -> Sequence[Follower]:
        """Return the sources that follow catalogues and whose next run may start at the time `now`.

        A source whose newest run is open, or ended or failed a short time ago, is omitted.
        """
        ...
