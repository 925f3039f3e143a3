"""Port for stored mappings."""

from collections.abc import Sequence
from typing import Protocol

from domain.ingestion.mapping.learned import KnownMapping
from domain.mappings.model import SourceMapping
from ports.unit_of_work import Store


class MappingStore(Store[SourceMapping], Protocol):
    """Mappings in a tenant's transaction. Adding a second mapping of a source's header set raises Conflict."""

    async def of_headers(self, source: str, digests: Sequence[str]) -> Sequence[SourceMapping]:
        """Return and lock the source's mappings of these header sets."""
        ...

    async def confirmed(self, source: str, most: int) -> Sequence[KnownMapping]:
        """Return up to `most` confirmed mappings of the source and up to `most` of the tenant's other sources.

        Those of the source come first; each group is ordered by time of confirmation, latest first.
        """
        ...

    async def prune(self, source: str, keep: int) -> None:
        """Delete the source's oldest unconfirmed mappings beyond `keep` mappings in all."""
        ...
