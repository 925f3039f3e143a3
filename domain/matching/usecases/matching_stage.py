"""The matching job after a run: it indexes changed variants, then matches them with the items of all other sources."""

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol, TypeVar

from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.jobs.usecases.lane_processor import LEASE
from domain.matching.candidates import BatchMatcher, BatchResult, CandidateCache, IndexRequest, IndexSteps
from domain.matching.features import MatchFeatures, StoredVariant, compute_features, compute_features_from_texts
from domain.matching.index import (
    ALL_ITEMS_KEY,
    IndexedItem,
    KeyChange,
    MatchModel,
    QueuedVariant,
    build_lookup_keys,
    compute_key_changes,
)
from domain.matching.model import ScoredPair
from domain.matching.ports import MatchIndexStore
from domain.matching.scoring import DEFAULT_WEIGHTS, SAMPLE_SIZE, Weights
from ports.unit_of_work import Tx, UnitOfWork

R = TypeVar("R")
_LOG = logging.getLogger("joinery.matching")
INDEX_BATCH_SIZE = 1_000
"""Maximum number of variants that are indexed in one transaction."""
MATCH_BATCH_SIZE = 500
"""Maximum number of variants that are matched in one transaction."""
_MAX_CONCURRENT_BATCHES = 2
"""Maximum number of batches that are matched at the same time."""
_MIN_SOURCES = 2
"""Minimum number of sources for matching."""
_GROWTH_FACTOR = 2
"""Growth factor of the number of items at which weights are learned again."""


class MatchPairWriter(Protocol):
    """Port that stores scored pairs."""

    async def store_scores(self, tx: Tx, matched_variants: Sequence[str], scored_pairs: Sequence[ScoredPair]) -> None:
        """Store the scores of the pairs of variants that were matched.

        Args:
            tx: The transaction.
            matched_variants: The IDs of the matched variants.
            scored_pairs: All pairs of these variants with a probability of at least MIN_STORED_PROBABILITY.
        """
        ...


class _VariantsQueued(Exception):
    """Signal that further variants were queued before the job could finish."""


class NumberSet:
    """Set of item numbers, at least 0, stored in one byte for each number up to the largest."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, number: int) -> None:
        """Add a number to the set."""
        if number >= len(self._bytes):
            self._bytes.extend(bytes(number + 1 - len(self._bytes)))
        self._bytes[number] = 1

    def __contains__(self, number: object) -> bool:
        """Return whether the set contains the number."""
        return isinstance(number, int) and number < len(self._bytes) and self._bytes[number] == 1


@dataclass(frozen=True, slots=True)
class MatchingJob:
    """Handler of `matching.match` jobs.

    All queued variants are indexed before any is matched, so that the items of one run are scored together. Each batch
    is a transaction that the job's lease fences and that can be repeated.

    Attributes:
        pair_writer: Stores scored pairs.
        lease: The time for which a transaction extends the job's lease.
        index_batch_size: The maximum number of variants that are indexed in one transaction.
        match_batch_size: The maximum number of variants that are matched in one transaction.
    """

    uow: UnitOfWork
    pair_writer: MatchPairWriter
    lease: timedelta = LEASE
    index_batch_size: int = INDEX_BATCH_SIZE
    match_batch_size: int = MATCH_BATCH_SIZE

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Index and match variants until the queue is empty."""
        work = _MatchingAttempt(self, job)
        while True:
            await work.index_all()
            await work.match_all()
            if await work.try_finish():
                return


@dataclass(frozen=True, slots=True)
class _IndexBatch:
    """Batch of queued variants to index.

    Attributes:
        items: The variants as index entries.
        changes: The changes to the listings of lookup keys, by key and source.
        deleted: The queued variants that no longer exist.
        last_id: The ID of the last variant of the batch.
    """

    items: Sequence[IndexedItem]
    changes: Mapping[tuple[str, str], KeyChange]
    deleted: Sequence[QueuedVariant]
    last_id: str


@dataclass(frozen=True, slots=True)
class _MatchedBatch:
    """Batch of matched variants with the result and the cache that was used for matching."""

    batch: Sequence[QueuedVariant]
    result: BatchResult
    cache: CandidateCache


class _MatchingAttempt:
    """One attempt of a matching job. Computations run in threads to keep the event loop free."""

    def __init__(self, stage: MatchingJob, job: ClaimedJob) -> None:
        self._stage, self._job = stage, job
        self._context = job.create_context()
        self._indexed_again = NumberSet()
        self._next_number = 1
        self._has_one_source: bool | None = None

    async def index_all(self) -> None:
        """Index all queued variants; while one batch is written, the next one is read."""
        async with self._stage.uow.begin_reading(self._job.tenant) as tx:
            self._next_number = (await tx[MatchIndexStore].find_free_numbers(0)).start
        next_batch = asyncio.ensure_future(self._read_batch(""))
        try:
            while (batch := await next_batch) is not None:
                next_batch = asyncio.ensure_future(self._read_batch(batch.last_id))
                await self._store_index_batch(batch)
        finally:
            await _cancel_tasks([next_batch])

    async def _read_batch(self, after_id: str) -> "_IndexBatch | None":
        """Return the next batch of variants to index, with IDs greater than `after_id`; None at the end."""
        async with self._stage.uow.begin_reading(self._job.tenant) as tx:
            queued = await tx[MatchIndexStore].list_unindexed(after_id, self._stage.index_batch_size)
            if not queued:
                return None
            ids = [one.variant for one in queued]
            stored = await tx[MatchIndexStore].load_variants(ids)
            before = await tx[MatchIndexStore].find_items_of_variants(ids)
        stamps, numbers = {one.variant: one.stamp for one in queued}, {item.variant: item.number for item in before}
        for one in stored:
            if one.variant not in numbers:
                numbers[one.variant], self._next_number = self._next_number, self._next_number + 1
        items = await asyncio.to_thread(_build_items, stored, stamps, numbers)
        changed = await asyncio.to_thread(compute_key_changes, before, items)
        return _IndexBatch(items, changed, [one for one in queued if one.variant not in numbers], ids[-1])

    async def _store_index_batch(self, batch: "_IndexBatch") -> None:
        """Write a batch to the index, and remove deleted variants from the queue."""
        async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
            await tx[MatchIndexStore].store_items(batch.items, batch.changes)
            await tx[MatchIndexStore].dequeue(batch.deleted)
            await tx[JobStore].renew_lease(self._job, self._stage.lease)
        for item in batch.items:
            self._indexed_again.add(item.number)

    async def match_all(self) -> None:
        """Match all indexed variants in the queue; batches are computed while others are read or written."""
        weights: Weights | None = None
        after: str | None = ""
        self._has_one_source = None
        free_caches, running = (
            [CandidateCache() for _ in range(_MAX_CONCURRENT_BATCHES)],
            deque[asyncio.Task[_MatchedBatch]](),
        )
        try:
            while True:
                while free_caches and after is not None:
                    batch, items = await self._load_match_batch(after)
                    after = batch[-1].variant if batch else None
                    if batch:
                        weights = weights or (
                            DEFAULT_WEIGHTS if self._has_one_source else await self._load_weights(free_caches[0])
                        )
                        running.append(asyncio.create_task(self._match_batch(batch, items, weights, free_caches.pop())))
                if not running:
                    return
                matched = await running.popleft()
                free_caches.append(matched.cache)
                await self._store_matches(matched)
        finally:
            await _cancel_tasks(running)

    async def _load_match_batch(self, after_id: str) -> tuple[Sequence[QueuedVariant], Sequence[IndexedItem]]:
        """Return the next batch of indexed variants to match, with IDs greater than `after_id`, and their index entries.

        If the tenant has only one source, the index entries are not loaded.
        """
        async with self._stage.uow.begin_reading(self._job.tenant) as tx:
            if self._has_one_source is None:
                self._has_one_source = (
                    len((await tx[MatchIndexStore].find_listings([ALL_ITEMS_KEY])).get(ALL_ITEMS_KEY, ()))
                    < _MIN_SOURCES
                )
            batch = await tx[MatchIndexStore].list_matchable(
                after_id, self._stage.index_batch_size if self._has_one_source else self._stage.match_batch_size
            )
            return batch, () if self._has_one_source else await tx[MatchIndexStore].find_items_of_variants(
                [one.variant for one in batch]
            )

    async def _match_batch(
        self, batch: Sequence[QueuedVariant], items: Sequence[IndexedItem], weights: Weights, cache: CandidateCache
    ) -> "_MatchedBatch":
        """Match a batch of items and return the batch with its result."""
        changed = {one.variant for one in batch if not one.only_competitors_changed}
        result = await self._run_steps(
            BatchMatcher(cache, weights, self._indexed_again).match_batch(items, changed), cache
        )
        cache.evict()
        return _MatchedBatch(batch, result, cache)

    async def _store_matches(self, matched: "_MatchedBatch") -> None:
        """Store the pairs of a matched batch and remove its variants from the queue."""
        async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
            await self._stage.pair_writer.store_scores(tx, [one.variant for one in matched.batch], matched.result.pairs)
            if matched.result.variants_to_recheck:
                await tx[MatchIndexStore].requeue(matched.result.variants_to_recheck)
            await tx[MatchIndexStore].dequeue(matched.batch)
            await tx[JobStore].renew_lease(self._job, self._stage.lease)

    async def _load_weights(self, cache: CandidateCache) -> Weights:
        """Return the tenant's weights, or the default weights if there is too little data.

        The weights are learned again if the number of items has doubled.
        """
        async with self._stage.uow.begin_reading(self._job.tenant) as tx:
            model = await tx[MatchIndexStore].find_model()
            item_count = (await tx[MatchIndexStore].find_free_numbers(0)).start - 1
            if model is not None and item_count < _GROWTH_FACTOR * model.item_count:
                return model.weights
            sample = await tx[MatchIndexStore].find_items_by_number(
                range(1, item_count + 1, max(1, item_count // SAMPLE_SIZE))
            )
        current = model.weights if model else DEFAULT_WEIGHTS
        chosen = sorted(sample, key=lambda item: item.number)
        learned = await self._run_steps(
            BatchMatcher(cache, DEFAULT_WEIGHTS).learn_weights(chosen, DEFAULT_WEIGHTS), cache
        )
        if learned is None:
            return current
        async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
            await tx[MatchIndexStore].store_model(MatchModel(item_count, learned, tx.now))
            await tx[JobStore].renew_lease(self._job, self._stage.lease)
        return learned

    async def _run_steps(self, steps: IndexSteps[R], cache: CandidateCache) -> R:
        """Run a computation to its result; load the data that it requests from the match index."""
        while True:
            request, result = await asyncio.to_thread(_get_next_request, steps)
            if request is None:
                return result[0]
            async with self._stage.uow.begin_reading(self._job.tenant) as tx:
                listed = await tx[MatchIndexStore].find_listings(list(request.keys)) if request.keys else {}
                items = await tx[MatchIndexStore].find_items_by_number(list(request.numbers)) if request.numbers else ()
            cache.add(request.keys, listed, items)

    async def try_finish(self) -> bool:
        """Finish the job and return True, or return False if further variants were queued meanwhile.

        Variants that are queued later add a new job.
        """
        try:
            async with self._stage.uow.begin(self._job.tenant, self._context) as tx:
                await tx[JobStore].finish(self._job)
                _require_empty_queue(is_empty=await tx[MatchIndexStore].is_queue_empty())
        except _VariantsQueued:
            return False
        return True


async def _cancel_tasks(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """Cancel the tasks and wait until they have ended."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _require_empty_queue(*, is_empty: bool) -> None:
    """Raise _VariantsQueued unless the queue is empty."""
    if not is_empty:
        raise _VariantsQueued


def _build_items(
    stored: Sequence[StoredVariant], stamp_by_variant: dict[str, int], number_by_variant: dict[str, int]
) -> list[IndexedItem]:
    """Return the index entries of stored variants. The mappings are version stamps and item numbers by variant ID."""
    return [
        IndexedItem(
            one.variant,
            one.product,
            one.source,
            stamp_by_variant[one.variant],
            _compute_features(one),
            number_by_variant[one.variant],
        )
        for one in stored
    ]


def _compute_features(stored: StoredVariant) -> MatchFeatures:
    """Return the features of a variant.

    If they cannot be computed, empty features are returned, so that one variant does not block the others.
    """
    try:
        features = compute_features(stored)
        build_lookup_keys(features)
    except Exception as error:
        _LOG.warning(
            "features of a variant not computed",
            extra={"variant": stored.variant, "error": type(error).__name__},
        )
        return compute_features_from_texts(stored.variant, {})
    return features


def _get_next_request(steps: IndexSteps[R]) -> tuple[IndexRequest | None, list[R]]:
    """Resume a computation; return its next request and an empty list, or None and a list with its result."""
    # StopIteration cannot leave a thread, so the end is a return value
    try:
        return next(steps), []
    except StopIteration as end:
        return None, [end.value]
