"""Pairs and merges in memory."""

from collections.abc import Sequence
from typing import Final

from adapters.memory.table import Table, TableStore, Transaction
from domain.kernel.paging import Page, PageRequest
from domain.matching.model import MatchPair, Merge, MergeFilter, MergeStatus, PairFilter, PairStatus

PAIRS: Final = Table[MatchPair](
    "match_pairs",
    lambda pair: pair.id,
    unique=lambda pair: (pair.left, pair.right),
    conflict="There is a pair of these two already.",
)
MERGES: Final = Table[Merge](
    "merges",
    lambda merge: merge.id,
    unique=lambda merge: merge.merged if merge.status == MergeStatus.APPLIED else None,
    conflict="It is merged already.",
)


class MemoryPairs(TableStore[MatchPair]):
    """PairStore."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction, PAIRS)

    async def matching(self, filter: PairFilter, page_request: PageRequest) -> Page[MatchPair]:
        return self.rows.page(page_request, filter.matches)

    async def of_variants(self, variants: Sequence[str], *, lock: bool = False) -> Sequence[MatchPair]:
        if lock:
            await self.transaction.lock()
        sought = set(variants)
        found = self.rows.where(lambda pair: not sought.isdisjoint((pair.left, pair.right)))
        return sorted(found, key=lambda pair: pair.id)

    async def open_of(self, variants: Sequence[str]) -> Sequence[MatchPair]:
        return [pair for pair in await self.of_variants(variants, lock=True) if pair.status == PairStatus.OPEN]

    async def unjudged(self, limit: int) -> Sequence[MatchPair]:
        found = self.rows.where(lambda one: one.status == PairStatus.OPEN and not one.held and one.judgement is None)
        return sorted(found, key=lambda pair: (-pair.probability, pair.id))[:limit]


class MemoryMerges(TableStore[Merge]):
    """MergeStore."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(transaction, MERGES)

    async def matching(self, filter: MergeFilter, page_request: PageRequest) -> Page[Merge]:
        return self.rows.page(page_request, filter.matches)

    async def applied(self, ids: Sequence[str]) -> Sequence[Merge]:
        sought = set(ids)
        found = self.rows.where(lambda one: one.status == MergeStatus.APPLIED and one.merged in sought)
        return sorted(found, key=lambda one: one.id)
