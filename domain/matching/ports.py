"""The index that new and changed variants are matched by, in store."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.matching.features import StoredVariant
from domain.matching.index import Backlog, Item, KeyChange, Listed, MatchModel, Queued
from domain.matching.model import MatchPair, Merge, MergeFilter, PairFilter
from ports.unit_of_work import Store


class MatchBacklog(Protocol):
    """Across tenants: how far matching is behind."""

    async def backlog(self) -> Backlog:
        """Return the backlog of variants to be matched."""
        ...


class MatchIndexStore(Protocol):
    """In a tenant's transaction. One job a tenant writes at a time; runs only put variants in the queue."""

    async def stale(self, after: str, limit: int) -> Sequence[Queued]:
        """Variants of the queue that the index does not have as they are now, by id from behind `after`."""
        ...

    async def waiting(self, after: str, limit: int) -> Sequence[Queued]:
        """Variants of the queue that the index has as they are now, by id from behind `after`."""
        ...

    async def idle(self) -> bool:
        """Whether nothing is in the queue."""
        ...

    async def stored(self, variants: Sequence[str]) -> Sequence[StoredVariant]:
        """Return the stored data of variants, by ID; the price is the lowest price of an offer, else the recommended price."""
        ...

    async def of_variants(self, variants: Sequence[str]) -> Sequence[Item]:
        """Those of the variants that are in the index, by id."""
        ...

    async def numbered(self, numbers: Sequence[int]) -> Sequence[Item]:
        """Return the items with these numbers, unordered."""
        ...

    async def numbers(self, count: int) -> range:
        """Return a range of numbers that are not in use."""
        ...

    async def listed(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Listed]]:
        """Who shares the keys, by key and source; keys that nobody has are not among them."""
        ...

    async def index(self, items: Sequence[Item], changes: Mapping[tuple[str, str], KeyChange]) -> None:
        """Keep items, in place of what was kept of their variants, and what that changes of keys and sources."""
        ...

    async def matched(self, variants: Sequence[Queued]) -> None:
        """Take variants out of the queue, unless they have changed since."""
        ...

    async def requeue(self, variants: Sequence[str]) -> None:
        """Have items of the index matched once more; those that wait already stay as they are."""
        ...

    async def requeue_all(self) -> int:
        """Have every item of the index matched once more, by weights that are learnt anew; answers how many were not waiting."""
        ...

    async def model(self) -> MatchModel | None:
        """Return the learned weights."""
        ...

    async def keep_model(self, model: MatchModel) -> None:
        """Keep learnt weights in place of those before."""
        ...


class PairStore(Store[MatchPair], Protocol):
    """In a tenant's transaction. There is one pair of any two variants."""

    async def matching(self, filter: PairFilter, page_request: PageRequest) -> Page[MatchPair]:
        """Return a page of the pairs that match the filter, newest first."""
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
        """Return a page of the merges that match the filter, newest first."""
        ...

    async def applied(self, ids: Sequence[str]) -> Sequence[Merge]:
        """Return the applied merges that merge any of these products or variants into another, by ID."""
        ...
