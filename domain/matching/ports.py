"""Ports to the stored match index, match pairs and merges."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol

from domain.kernel.paging import Page, PageRequest
from domain.matching.features import StoredVariant
from domain.matching.index import IndexedItem, KeyChange, KeyListing, MatchingBacklog, MatchModel, QueuedVariant
from domain.matching.model import MatchPair, Merge, MergeFilter, PairFilter
from ports.unit_of_work import Store


class MatchBacklogReader(Protocol):
    """Port that measures the matching backlog of all tenants."""

    async def measure_backlog(self) -> MatchingBacklog:
        """Return the number of variants that wait to be matched, over all tenants, and their greatest age."""
        ...


class MatchIndexStore(Protocol):
    """Match index, and the queue of variants to match, within a tenant's transaction.

    Only one job per tenant writes the index at a time. Runs only add variants to the queue.
    """

    async def list_unindexed(self, after_id: str, limit: int) -> Sequence[QueuedVariant]:
        """Return up to `limit` queued variants whose current version is not indexed yet.

        The variants are ordered by ID; their IDs are greater than `after_id`.
        """
        ...

    async def list_matchable(self, after_id: str, limit: int) -> Sequence[QueuedVariant]:
        """Return up to `limit` queued variants whose current version is indexed, so that they can be matched.

        The variants are ordered by ID; their IDs are greater than `after_id`.
        """
        ...

    async def is_queue_empty(self) -> bool:
        """Return whether the queue is empty."""
        ...

    async def load_variants(self, variants: Sequence[str]) -> Sequence[StoredVariant]:
        """Return the stored data of the variants, ordered by ID.

        The price is the lowest price of an offer; if no offer has a price, the lowest recommended price.
        """
        ...

    async def list_single_variants(self, source: str, after: str, limit: int) -> Sequence[StoredVariant]:
        """Return up to `limit` variants of the source's active products that have only one variant, without prices.

        They are ordered by product; the IDs of their products are greater than `after`.
        """
        ...

    async def find_shown_products(self, products: Sequence[str]) -> Mapping[str, str]:
        """Return the ID of the product that is shown for each existing product, by the ID of the product."""
        ...

    async def find_items_of_variants(self, variants: Sequence[str]) -> Sequence[IndexedItem]:
        """Return the index entries of the variants, ordered by ID; variants that are not indexed are omitted."""
        ...

    async def find_items_by_number(self, numbers: Sequence[int]) -> Sequence[IndexedItem]:
        """Return the index entries with these numbers, in any order."""
        ...

    async def find_free_numbers(self, count: int) -> range:
        """Return `count` consecutive numbers that no index entry uses.

        With a count of 0, the range is empty and starts at the next free number.
        """
        ...

    async def find_listings(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, KeyListing]]:
        """Return the listings of the keys, by key and source; keys without items are omitted."""
        ...

    async def store_items(self, items: Sequence[IndexedItem], changes: Mapping[tuple[str, str], KeyChange]) -> None:
        """Store index entries, replacing earlier versions, and apply changes of key listings by key and source."""
        ...

    async def dequeue(self, variants: Sequence[QueuedVariant]) -> None:
        """Remove the variants from the queue, except variants that have changed since they were read."""
        ...

    async def requeue(self, variants: Sequence[str]) -> None:
        """Add indexed variants to the queue; variants that are already queued stay unchanged."""
        ...

    async def requeue_products(self, products: Sequence[str]) -> int:
        """Add the indexed variants of products to the queue; return the number of variants added."""
        ...

    async def delete_model_and_requeue(self) -> int:
        """Delete the learned weights and queue every indexed variant; return the number of variants added to the queue."""
        ...

    async def find_model(self) -> MatchModel | None:
        """Return the tenant's learned weights; None if there are none or they do not fit the current comparisons."""
        ...

    async def store_model(self, model: MatchModel) -> None:
        """Store learned weights, replacing the previous ones."""
        ...


class PairStore(Store[MatchPair], Protocol):
    """Match pairs within a tenant's transaction. Any two variants have at most one pair."""

    async def list_pairs(self, filter: PairFilter, page_request: PageRequest) -> Page[MatchPair]:
        """Return a page of the match pairs that meet the conditions, newest first."""
        ...

    async def find_pairs_of_variants(self, variants: Sequence[str], *, lock: bool = False) -> Sequence[MatchPair]:
        """Return every pair that contains one of the variants on either side, ordered by ID.

        Args:
            variants: The IDs of the variants.
            lock: Whether to lock the pairs until the end of the transaction.
        """
        ...

    async def lock_open_pairs(self, variants: Sequence[str]) -> Sequence[MatchPair]:
        """Lock the open pairs that contain one of the variants until the end of the transaction, and return them."""
        ...

    async def list_unjudged(self, limit: int) -> Sequence[MatchPair]:
        """Return up to `limit` open pairs that are neither held nor judged, in descending order of probability."""
        ...

    async def list_certain(
        self, min_probability: float, until: datetime, omitted: Sequence[str], limit: int
    ) -> Sequence[MatchPair]:
        """Return open pairs without conflict that are not held, in descending order of probability.

        Args:
            min_probability: The lowest probability.
            until: The time after which newer pairs are omitted.
            omitted: IDs of pairs to omit.
            limit: Maximum number of pairs.
        """
        ...

    async def sample_certain(self, min_probability: float, limit: int) -> Sequence[MatchPair]:
        """Return the least likely of the pairs that `list_certain` returns, in ascending order of probability."""
        ...

    async def count_certain(self, min_probability: float, limit: int) -> int:
        """Return the number of open pairs without conflict that are not held and have the probability; at most `limit`."""
        ...


class MergeStore(Store[Merge], Protocol):
    """Merges within a tenant's transaction. A product or variant has at most one applied merge into another."""

    async def list_merges(self, filter: MergeFilter, page_request: PageRequest) -> Page[Merge]:
        """Return a page of the merges that meet the conditions, newest first."""
        ...

    async def find_applied_merges(self, ids: Sequence[str]) -> Sequence[Merge]:
        """Return the applied merges whose merged product or variant is among the IDs, ordered by ID."""
        ...
