"""Pairs and merges in store."""

from collections.abc import Sequence
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.matching.model import MatchPair, Merge, MergeFilter, PairFilter
from ports.store import Store


class PairStore(Store[MatchPair], Protocol):
    """In a tenant's transaction. There is one pair of any two variants."""

    async def matching(self, filter: PairFilter, page_request: PageRequest) -> Page[MatchPair]:
        """A page of the pairs that pass the filter, newest first."""
        ...

    async def of_variants(self, variants: Sequence[str], *, lock: bool = False) -> Sequence[MatchPair]:
        """Every pair that has one of them on either side, by id."""
        ...

    async def open_of(self, variants: Sequence[str]) -> Sequence[MatchPair]:
        """Those of them that are open, locked."""
        ...

    async def unjudged(self, limit: int) -> Sequence[MatchPair]:
        """Open pairs that nobody holds and no model has judged, likeliest first."""
        ...


class MergeStore(Store[Merge], Protocol):
    """In a tenant's transaction. Something is merged at most once at a time."""

    async def matching(self, filter: MergeFilter, page_request: PageRequest) -> Page[Merge]:
        """A page of the merges that pass the filter, newest first."""
        ...

    async def applied(self, ids: Sequence[str]) -> Sequence[Merge]:
        """The applied merges by which any of these products or variants is merged into another, by id."""
        ...
