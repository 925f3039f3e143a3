"""Mappings in store."""

from collections.abc import Sequence
from typing import Protocol

from domain.ingestion.mapping.learned import KnownMapping
from domain.mappings.model import SourceMapping
from ports.unit_of_work import Store


class MappingStore(Store[SourceMapping], Protocol):
    """In a tenant's transaction. A source has one mapping a header set; adding another raises Conflict."""

    async def of_headers(self, source: str, digests: Sequence[str]) -> Sequence[SourceMapping]:
        """Those of the source for these header sets, kept from being changed by others."""
        ...

    async def confirmed(self, source: str, most: int) -> Sequence[KnownMapping]:
        """What was confirmed, last first: `most` of the source's own, then `most` of the tenant's other sources."""
        ...

    async def prune(self, source: str, keep: int) -> None:
        """Forget the oldest of the source's mappings beyond so many in all; confirmed ones stay."""
        ...
