"""Mappings in memory."""

from collections.abc import Sequence
from typing import Final

from adapters.memory.table import Table, TableStore, Transaction
from domain.ingestion.mapping.learned import KnownMapping
from domain.mappings.model import MappingStatus, SourceMapping

MAPPINGS: Final = Table[SourceMapping](
    "mappings",
    lambda mapping: mapping.id,
    unique=lambda mapping: (mapping.source, mapping.digest),
    conflict="The source has a mapping of these headers already.",
)


class MemoryMappings(TableStore[SourceMapping]):
    """MappingStore."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction, MAPPINGS)

    async def of_headers(self, source: str, digests: Sequence[str]) -> Sequence[SourceMapping]:
        await self.transaction.lock()
        return self.rows.where(lambda one: one.source == source and one.digest in digests)

    async def confirmed(self, source: str, most: int) -> Sequence[KnownMapping]:
        found = self.rows.where(lambda one: one.status == MappingStatus.CONFIRMED)
        found.sort(key=lambda one: (one.confirmed_at or one.updated_at, one.id), reverse=True)
        own = [one for one in found if one.source == source][:most]
        others = [one for one in found if one.source != source][:most]
        return [
            KnownMapping(one.digest, one.source == source, one.headers, one.columns, one.unmapped)
            for one in (*own, *others)
        ]

    async def prune(self, source: str, keep: int) -> None:
        found = sorted(self.rows.where(lambda one: one.source == source), key=lambda one: one.id, reverse=True)
        for one in found[keep:]:
            if one.status == MappingStatus.PROPOSED:
                await self.rows.remove(one.id)
