"""Stores of the match index, pairs and merges."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.matching.features import StoredVariant
from domain.matching.index import Backlog, Item, KeyChange, Listed, MatchModel, Queued
from domain.matching.model import MatchPair, Merge, MergeFilter, PairFilter
from ports.unit_of_work import Store


class MatchBacklog(Protocol):
    """The matching backlog of all tenants."""

    async def backlog(self) -> Backlog:
        """Return the backlog of variants to be matched."""
        ...


class MatchIndexStore(Protocol):
    """The match index within a tenant's transaction. One job per tenant writes at a time; runs only queue variants."""

    async def stale(self, after: str, limit: int) -> Sequence[Queued]:
        """Return queued variants whose current version is not indexed, by ID after `after`."""
        ...

    async def waiting(self, after: str, limit: int) -> Sequence[Queued]:
        """Return queued variants whose current version is indexed, by ID after `after`."""
        ...

    async def idle(self) -> bool:
        """Return whether the queue is empty."""
        ...

    async def stored(self, variants: Sequence[str]) -> Sequence[StoredVariant]:
        """Return the stored data of variants, by ID; the price is the lowest price of an offer, else the recommended price."""
        ...

    async def of_variants(self, variants: Sequence[str]) -> Sequence[Item]:
        """Return those of the variants that are indexed, by ID."""
        ...

    async def numbered(self, numbers: Sequence[int]) -> Sequence[Item]:
        """Return the items with these numbers, unordered."""
        ...

    async def numbers(self, count: int) -> range:
        """Return a range of numbers that are not in use."""
        ...

    async def listed(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Listed]]:
        """Return the items of the keys, by key and source; keys without items are left out."""
        ...

    async def index(self, items: Sequence[Item], changes: Mapping[tuple[str, str], KeyChange]) -> None:
        """Replace indexed items, and apply the changes of keys and sources."""
        ...

    async def matched(self, variants: Sequence[Queued]) -> None:
        """Remove variants from the queue, unless they have changed since."""
        ...

    async def requeue(self, variants: Sequence[str]) -> None:
        """Queue indexed items again; those already queued stay unchanged."""
        ...

    async def requeue_all(self) -> int:
        """Queue every indexed item again after weights were learned; return how many were not queued."""
        ...

    async def model(self) -> MatchModel | None:
        """Return the learned weights."""
        ...

    async def keep_model(self, model: MatchModel) -> None:
        """Replace the learned weights."""
        ...


class PairStore(Store[MatchPair], Protocol):
    """Pairs within a tenant's transaction. Any two variants have at most one pair."""

    async def matching(self, filter: PairFilter, page_request: PageRequest) -> Page[MatchPair]:
        """Return a page of the pairs that match the filter, newest first."""
        ...

    async def of_variants(self, variants: Sequence[str], *, lock: bool = False) -> Sequence[MatchPair]:
        """Return every pair with one of the variants on either side, by ID."""
        ...

    async def open_of(self, variants: Sequence[str]) -> Sequence[MatchPair]:
        """Return the open pairs of the variants, locked."""
        ...

    async def unjudged(self, limit: int) -> Sequence[MatchPair]:
        """Return open pairs that are neither held nor judged, most probable first."""
        ...


class MergeStore(Store[Merge], Protocol):
    """Merges within a tenant's transaction. An object has at most one active merge."""

    async def matching(self, filter: MergeFilter, page_request: PageRequest) -> Page[Merge]:
        """Return a page of the merges that match the filter, newest first."""
        ...

    async def applied(self, ids: Sequence[str]) -> Sequence[Merge]:
        """Return the applied merges that merge any of these products or variants into another, by ID."""
        ...
