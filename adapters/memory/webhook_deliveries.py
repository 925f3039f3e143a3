"""The worker's side of webhooks in memory: one process, which serves every endpoint."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from adapters.memory.catalogue_overlay import PRODUCTS
from adapters.memory.orgs import ORGS
from adapters.memory.runs import TRACED
from adapters.memory.table import EVERYWHERE, MemoryDatabase
from adapters.memory.usage import REACHED, count
from adapters.memory.webhooks import DELIVERIES, ENDPOINTS, KeptEndpoint
from domain.changes.model import OPEN_END, FeedPosition
from domain.kernel.errors import LeaseLost
from domain.kernel.tenancy import Tenant
from domain.usage.meters import DELIVERIES as DELIVERED
from domain.webhooks.model import Delivery, DeliveryStatus, EndpointStatus, shard_of
from domain.webhooks.ports import Progress, Subscriber
from ports.clock import Clock

FAT: Final = "fat_webhooks"


class MemoryDeliveryLog:
    """DeliveryLog; `below` gives a category's id with those of all below it. `lost` makes recording fail as a lost lock does."""

    def __init__(self, store: MemoryDatabase, clock: Clock, below: Callable[[str], frozenset[str]]) -> None:
        self._store, self._clock, self._below = store, clock, below
        self.lost = False

    async def subscribers(self, shards: Sequence[int]) -> Sequence[Subscriber]:
        everyone = self._store.everyone(ENDPOINTS)
        found = [self._subscriber(tenant, kept) for tenant, kept in everyone if shard_of(kept.endpoint.id) in shards]
        return [subscriber for subscriber in found if subscriber is not None]

    async def subscriber(self, tenant: Tenant, endpoint: str) -> Subscriber | None:
        kept = self._store.committed(ENDPOINTS, tenant).get(endpoint)
        return self._subscriber(tenant, kept) if kept else None

    def _subscriber(self, tenant: Tenant, kept: KeptEndpoint) -> Subscriber | None:
        held_back = any(reached.held_back for reached in self._store.committed(REACHED, tenant).values())
        if kept.endpoint.status != EndpointStatus.ENABLED or held_back:
            return None
        organisation = self._store.committed(ORGS, EVERYWHERE).get(tenant.org)
        fat = organisation is not None and FAT in organisation.plan.features
        return Subscriber(tenant, kept.endpoint, kept.secrets, kept.checkpoint, fat)

    def _of(self, tenant: Tenant, endpoint: str) -> list[Delivery]:
        rows = self._store.committed(DELIVERIES, tenant).values()
        return sorted((row for row in rows if row.endpoint == endpoint), key=lambda row: (row.position, row.id))

    async def open(self, tenant: Tenant, endpoint: str) -> Sequence[Delivery]:
        rows = [row for row in self._of(tenant, endpoint) if row.is_open]
        return [replace(row, body=None, attempts=(), made=len(row.attempts)) for row in rows]

    async def known(self, tenant: Tenant, endpoint: str, after: FeedPosition) -> frozenset[tuple[bool, int]]:
        positions = ((row.network, position) for row in self._of(tenant, endpoint) for position in row.positions)
        beyond = (after.own.position, after.network.position)
        return frozenset((network, position) for network, position in positions if position > beyond[network])

    async def body(self, tenant: Tenant, delivery: str) -> bytes | None:
        row = self._store.committed(DELIVERIES, tenant).get(delivery)
        return row.body if row else None

    async def lapsed_rotations(self, now: datetime, limit: int) -> Sequence[tuple[Tenant, str]]:
        over = [
            (kept.endpoint.rotation.expires_at, tenant, kept.endpoint.id)
            for tenant, kept in self._store.everyone(ENDPOINTS)
            if kept.endpoint.rotation is not None and kept.endpoint.rotation.expires_at <= now
        ]
        return [(tenant, id) for _, tenant, id in sorted(over, key=lambda one: one[0])[:limit]]

    async def trace(self, tenant: Tenant, run: str) -> str | None:
        found = self._store.committed(TRACED, tenant).get(run)
        return found.trace if found else None

    async def filed_under(self, tenant: Tenant, products: Sequence[str], categories: Sequence[str]) -> frozenset[str]:
        wanted = frozenset(one for category in categories for one in self._below(category))
        rows = self._store.committed(PRODUCTS, tenant)
        return frozenset(id_ for id_ in products if id_ in rows and rows[id_].data.get("category") in wanted)

    async def record(self, progress: Progress) -> None:
        if self.lost:
            raise LeaseLost
        for tenant, reported in progress.deliveries:
            kept = self._store.committed(ENDPOINTS, tenant).get(reported.endpoint)
            if kept is not None:
                stored = self._store.committed(DELIVERIES, tenant).get(reported.id)
                enabled = kept.endpoint.status == EndpointStatus.ENABLED
                merged = reported.merged(stored, enabled=enabled, at=self._clock.now())
                self._store.write(DELIVERIES, tenant, merged)
                if merged.status == DeliveryStatus.SUCCEEDED and (stored is None or stored.status != merged.status):
                    count(self._store, tenant, DELIVERED, self._clock.now().date())
        for key in progress.checkpoint.keys() | progress.succeeded.keys() | progress.failing.keys():
            self._progress(key, progress)

    def _progress(self, key: tuple[Tenant, str], progress: Progress) -> None:
        tenant, endpoint = key
        kept = self._store.committed(ENDPOINTS, tenant).get(endpoint)
        if kept is None:
            return
        state = kept.endpoint
        if key in progress.succeeded:
            state = replace(state, last_success_at=progress.succeeded[key])
        if key in progress.failing:
            state = replace(state, failing_since=progress.failing[key])
        checkpoint = _furthest(kept.checkpoint, progress.checkpoint.get(key, kept.checkpoint))
        self._store.write(ENDPOINTS, tenant, replace(kept, endpoint=state, checkpoint=checkpoint))


def _furthest(kept: FeedPosition, told: FeedPosition) -> FeedPosition:
    """Neither log's goes back, unless the network's has."""
    own = max(kept.own, told.own, key=lambda one: one.position)
    network = told.network
    if network.epoch in (0, kept.network.epoch) and kept.network.position < OPEN_END:
        network = max(kept.network, network, key=lambda one: one.position)
    return FeedPosition(own, network)


class MemoryShards:
    """Shards of the one process there is."""

    def __init__(self, shards: int) -> None:
        self._all = frozenset(range(shards))

    async def rebalance(self) -> frozenset[int]:
        return self._all

    async def members(self) -> int:
        return 1

    async def surplus(self) -> frozenset[int]:
        return frozenset()

    async def release(self, shards: frozenset[int]) -> None:
        """Nobody else would take them."""

    async def close(self) -> None:
        """Nothing to do."""
