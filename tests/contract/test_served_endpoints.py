"""Endpoints that a deliverer serves when the store fails or shards move at the worst moment."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
import pytest_asyncio

from domain.changes.model import FeedPosition
from domain.kernel.errors import Unavailable
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import compute_shard
from domain.webhooks.ports import DeliveryProgress, DeliveryStore, Shards, Subscriber, WebhookStore
from tests.contract.delivery_harness import CALL, DeliveryHarness, wait_for_deliveries, wait_until
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def harness(backend: Backend, tenant: Tenant) -> DeliveryHarness:
    return DeliveryHarness(backend, tenant)


class FailingDeliveryStore:
    """Delivery store that fails for one endpoint as often as configured, and blocks until `gate` is set."""

    def __init__(self, log: DeliveryStore) -> None:
        self._log = log
        self.endpoint = ""
        self.failures_left = {"known": 0, "open": 0}
        self.gate = asyncio.Event()
        self.gate.set()
        self.lookups = 0

    async def _fail_if_configured(self, name: str, endpoint: str) -> None:
        if endpoint == self.endpoint and self.failures_left[name]:
            self.failures_left[name] -= 1
            raise Unavailable

    async def list_subscribers(self, shards: Sequence[int]) -> Sequence[Subscriber]:
        return await self._log.list_subscribers(shards)

    async def get_subscriber(self, tenant: Tenant, endpoint: str) -> Subscriber | None:
        found = await self._log.get_subscriber(tenant, endpoint)
        self.lookups += 1
        await self.gate.wait()
        return found

    async def list_known_positions(
        self, tenant: Tenant, endpoint: str, after: FeedPosition
    ) -> frozenset[tuple[bool, int]]:
        await self._fail_if_configured("known", endpoint)
        return await self._log.list_known_positions(tenant, endpoint, after)

    async def list_open(self, tenant: Tenant, endpoint: str) -> Any:
        await self._fail_if_configured("open", endpoint)
        return await self._log.list_open(tenant, endpoint)

    async def get_body(self, tenant: Tenant, delivery: str) -> bytes | None:
        return await self._log.get_body(tenant, delivery)

    async def filter_by_categories(
        self, tenant: Tenant, products: Sequence[str], categories: Sequence[str]
    ) -> frozenset[str]:
        return await self._log.filter_by_categories(tenant, products, categories)

    async def record_progress(self, progress: DeliveryProgress) -> None:
        await self._log.record_progress(progress)


class RebalancedShards:
    """Shards of the backend, of which the test requests some for another worker."""

    def __init__(self, shards: Shards) -> None:
        self._shards = shards
        self.surplus: frozenset[int] = frozenset()
        self.released: frozenset[int] = frozenset()

    async def rebalance(self) -> frozenset[int]:
        return await self._shards.rebalance() - self.released

    async def find_surplus(self) -> frozenset[int]:
        return self.surplus - self.released

    async def count_workers(self) -> int:
        return 2

    async def release(self, shards: frozenset[int]) -> None:
        await self._shards.release(shards)
        self.released |= shards

    async def close(self) -> None:
        await self._shards.close()


@pytest.mark.parametrize("step", ["known", "open"])
async def test_an_endpoint_is_served_after_a_failed_load(harness: DeliveryHarness, step: str) -> None:
    log = FailingDeliveryStore(harness.backend.delivery_log)
    log.failures_left[step] = 2
    endpoint = await harness.create_endpoint()
    log.endpoint = endpoint.id
    async with harness.run_deliverer(log=log):
        await harness.publish(harness.build_event("ofr_1"))
        await wait_for_deliveries(harness, endpoint, 1)
    assert not log.failures_left[step]
    assert len(harness.receivers.list_posts(endpoint.url)) == 1


async def test_a_changed_endpoint_is_served_after_a_failed_load(harness: DeliveryHarness) -> None:
    log = FailingDeliveryStore(harness.backend.delivery_log)
    endpoint = await harness.create_endpoint()
    async with harness.run_deliverer(log=log):
        await harness.publish(harness.build_event("ofr_1"))
        [delivery] = await wait_for_deliveries(harness, endpoint, 1)
        log.endpoint, log.failures_left["open"] = endpoint.id, 1
        async with harness.backend.uow.begin(harness.tenant, CALL) as tx:
            await tx[WebhookStore].requeue(delivery, tx.now)
        await wait_until(lambda: len(harness.receivers.list_posts(endpoint.url)) == 2)
        await harness.publish(harness.build_event("ofr_2"))
        await wait_until(lambda: len(harness.receivers.list_posts(endpoint.url)) == 3)


async def test_an_endpoint_whose_shard_is_released_during_its_look_up_is_not_served(harness: DeliveryHarness) -> None:
    log, shards = FailingDeliveryStore(harness.backend.delivery_log), RebalancedShards(harness.backend.shards())
    other = await harness.create_endpoint()
    async with harness.run_deliverer(log=log, shards=shards):
        await harness.publish(harness.build_event("ofr_1"))
        await wait_for_deliveries(harness, other, 1)
        log.gate.clear()
        endpoint = await harness.create_endpoint()
        await wait_until(lambda: log.lookups)
        shards.surplus = frozenset((compute_shard(endpoint.id),))
        await wait_until(lambda: shards.released == shards.surplus, seconds=20)
        log.gate.set()
        await harness.publish(harness.build_event("ofr_2"))
        await wait_until(
            lambda: len(harness.receivers.list_posts(other.url)) == 2 or compute_shard(other.id) in shards.released
        )
        await asyncio.sleep(0.2)
    assert not harness.receivers.list_posts(endpoint.url)


async def test_the_deliverer_stops_when_its_shards_are_lost(harness: DeliveryHarness) -> None:
    async with asyncio.timeout(20):
        async with harness.run_deliverer() as deliverer:
            await wait_until(lambda: deliverer._shard_numbers)
            await asyncio.sleep(0.1)
            deliverer._discard_state()
            await asyncio.sleep(0)
