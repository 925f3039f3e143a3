"""Ports of sources: storage of sources and their encrypted credentials, and of scheduled pulls."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.tenancy import Tenant
from domain.sources.model import Follower, Source
from ports.unit_of_work import Store


class SourceStore(Store[Source], Protocol):
    """Storage of sources and their encrypted credentials in a tenant's transaction."""

    async def save_encrypted_credentials(self, id: str, encrypted: bytes | None) -> None:
        """Store the encrypted credentials of the source; None deletes the stored ones."""
        ...

    async def count(self, *, lock: bool = False) -> int:
        """Return the number of the tenant's sources, except sources that the service has disabled.

        With `lock`, other such calls of the tenant wait until the transaction ends.
        """
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
