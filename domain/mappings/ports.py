"""Port to the stored column mappings."""

from collections.abc import Sequence
from typing import Protocol

from domain.ingestion.mapping.learned import ConfirmedMapping
from domain.mappings.model import SourceMapping
from ports.unit_of_work import Store


class MappingStore(Store[SourceMapping], Protocol):
    """Column mappings within a tenant's transaction.

    Adding a second mapping for the same headers of a source raises Conflict.
    """

    async def lock_by_digest(self, source: str, digests: Sequence[str]) -> Sequence[SourceMapping]:
        """Lock and return the mappings of a source whose headers have these digests."""
        ...

    async def list_confirmed(self, source: str, max_mappings: int) -> Sequence[ConfirmedMapping]:
        """Return the latest confirmed mappings of the source, followed by the mappings of the tenant's other sources.

        Each of the two groups has up to `max_mappings` mappings, latest confirmed first.
        """
        ...

    async def prune(self, source: str, max_mappings: int) -> None:
        """Delete the oldest unconfirmed mappings of a source, as long as it has more than `max_mappings` mappings."""
        ...
