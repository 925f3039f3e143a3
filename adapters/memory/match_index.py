"""The index of matching in memory."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from adapters.memory.catalogue_overlay import PRODUCTS
from adapters.memory.match_queue import QUEUE
from adapters.memory.table import MemoryDatabase, Table, Transaction
from domain.catalogue.model import Product, Variant
from domain.matching.features import StoredVariant, going_price
from domain.matching.index import COUNTED, LISTED, Backlog, Item, KeyChange, Listed, MatchModel, Queued
from ports.clock import Clock


@dataclass(frozen=True, slots=True)
class _Key:
    key: str
    source: str
    listed: Listed


ITEMS: Final = Table[Item]("match_items", lambda item: item.variant, descending=False)
KEYS: Final = Table[_Key]("match_keys", lambda row: _place(row.key, row.source))
MODELS: Final = Table[MatchModel]("match_models", lambda model: "")


class MemoryMatchIndex:
    """MatchIndexStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._now = transaction.now
        self._products, self._queue = transaction.rows(PRODUCTS), transaction.rows(QUEUE)
        self._items, self._keys, self._models = (
            transaction.rows(ITEMS),
            transaction.rows(KEYS),
            transaction.rows(MODELS),
        )

    async def stale(self, after: str, limit: int) -> Sequence[Queued]:
        return self._queue.sorted(lambda one: one.variant > after and self._stamp(one.variant) != one.stamp)[:limit]

    async def waiting(self, after: str, limit: int) -> Sequence[Queued]:
        return self._queue.sorted(lambda one: one.variant > after and self._stamp(one.variant) == one.stamp)[:limit]

    def _stamp(self, variant: str) -> int | None:
        found = self._items.get(variant)
        return found.stamp if found else None

    async def idle(self) -> bool:
        return not self._queue.where()

    async def stored(self, variants: Sequence[str]) -> Sequence[StoredVariant]:
        sought = set(variants)
        found = [
            _stored(product, variant)
            for product in self._products.where()
            for variant in product.variants
            if variant.id in sought
        ]
        return sorted(found, key=lambda one: one.variant)

    async def of_variants(self, variants: Sequence[str]) -> Sequence[Item]:
        return [found for id in sorted(set(variants)) if (found := self._items.get(id))]

    async def numbered(self, numbers: Sequence[int]) -> Sequence[Item]:
        sought = set(numbers)
        return self._items.where(lambda item: item.number in sought)

    async def numbers(self, count: int) -> range:
        first = 1 + max((item.number for item in self._items.where()), default=0)
        return range(first, first + count)

    async def listed(self, keys: Sequence[str]) -> Mapping[str, Mapping[str, Listed]]:
        sought, found = set(keys), dict[str, dict[str, Listed]]()
        for row in self._keys.where(lambda row: row.key in sought):
            found.setdefault(row.key, {})[row.source] = row.listed
        return found

    async def index(self, items: Sequence[Item], changes: Mapping[tuple[str, str], KeyChange]) -> None:
        for item in items:
            await self._items.put(item)
        for (key, source), change in changes.items():
            row = self._keys.get(_place(key, source))
            await self._keys.put(_Key(key, source, _changed(key, row.listed if row else Listed(0), change)))

    async def matched(self, variants: Sequence[Queued]) -> None:
        for one in variants:
            found = self._queue.get(one.variant)
            if found is not None and found.stamp == one.stamp:
                await self._queue.remove(one.variant)

    async def requeue(self, variants: Sequence[str]) -> None:
        for item in await self.of_variants(variants):
            if self._queue.get(item.variant) is None:
                await self._queue.put(Queued(item.variant, item.stamp, again=True, since=self._now))

    async def requeue_all(self) -> int:
        await self._models.remove("")
        waiting = [item for item in self._items.where() if self._queue.get(item.variant) is None]
        for item in waiting:
            await self._queue.put(Queued(item.variant, item.stamp, again=True, since=self._now))
        return len(waiting)

    async def model(self) -> MatchModel | None:
        return self._models.get("")

    async def keep_model(self, model: MatchModel) -> None:
        await self._models.put(model)


class MemoryMatchBacklog:
    """MatchBacklog."""

    def __init__(self, store: MemoryDatabase, clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def backlog(self) -> Backlog:
        since = [queued.since for _, queued in self._store.everyone(QUEUE)]
        oldest = min(filter(None, since), default=None)
        return Backlog(len(since), (self._clock.now() - oldest).total_seconds() if oldest else 0.0)


def _place(key: str, source: str) -> str:
    return f"{source} {key}"


def _changed(key: str, before: Listed, change: KeyChange) -> Listed:
    items = before.items + change.items
    bearing = before.codes + change.codes, before.stems + change.stems
    listed = before.numbers is not None or not before.items
    if key[0] in COUNTED or items > LISTED or not listed:
        return Listed(items, None, *bearing)
    kept = [number for number in before.numbers or () if number not in change.removed]
    return Listed(items, [*kept, *change.added], *bearing)


def _stored(product: Product, variant: Variant) -> StoredVariant:
    price = going_price((offer.id, offer.data) for offer in variant.offers if offer.withdrawn_at is None)
    return StoredVariant(variant.id, product.id, variant.source, product.data, variant.data, *price)
