"""Webhook endpoints, their secrets and deliveries (domain/webhooks/ports.py)."""

import asyncio
import random
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from domain.changes.model import FeedPosition
from domain.events.model import LogPosition
from domain.kernel.errors import PreconditionFailed
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.webhooks.model import (
    Delivery,
    DeliveryAttempt,
    DeliveryFilter,
    EncryptedSecrets,
    Endpoint,
    Filters,
    Recovery,
    Rotation,
)
from domain.webhooks.ports import WebhookStore
from ports.unit_of_work import UnitOfWork
from tests.support import builders, filters
from tests.support.backend import Backend
from tests.support.pagination import check_insertions, check_pagination

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
MOMENT = builders.MOMENT
SECRETS = EncryptedSecrets(b"\x00sealed\xff")


async def _add_endpoints(uow: UnitOfWork, tenant: Tenant, *endpoints: Endpoint) -> None:
    async with uow.begin(tenant, CALL) as tx:
        for endpoint in endpoints:
            await tx[WebhookStore].add(endpoint, SECRETS, FeedPosition())


async def _add_deliveries(uow: UnitOfWork, tenant: Tenant, *deliveries: Delivery) -> None:
    async with uow.begin(tenant, CALL) as tx:
        for delivery in deliveries:
            await tx[WebhookStore].add_delivery(delivery)


async def test_keeps_every_field(uow: UnitOfWork, tenant: Tenant) -> None:
    endpoint = builders.endpoint(
        event_types=("offer.changed", "product.created"),
        filters=Filters(("src_1", "src_2"), ("ctg_1",), ("cat_1",)),
        payload="fat",
        coalesce_seconds=30,
        description="The shop's cache.",
        status="disabled",
        disabled_for="gone",
        rotation=Rotation(MOMENT + timedelta(hours=24), "Zz9="),
        version=7,
        updated_at=MOMENT + timedelta(microseconds=3),
        last_success_at=MOMENT - timedelta(hours=1),
        failing_since=MOMENT - timedelta(minutes=9),
    )
    await _add_endpoints(uow, tenant, endpoint)
    async with uow.begin_reading(tenant) as tx:
        assert await tx[WebhookStore].get(endpoint.id) == endpoint
        assert (await tx[WebhookStore].page(PageRequest())).items == (endpoint,)
        assert await tx[WebhookStore].get_secrets(endpoint.id) == SECRETS
        assert await tx[WebhookStore].get("whe_0000000000000000000000") is None
        assert await tx[WebhookStore].get_secrets("whe_0000000000000000000000") is None


async def test_belongs_to_one_tenant_and_mode(backend: Backend, tenant: Tenant) -> None:
    endpoint = builders.endpoint()
    delivery = builders.delivery(endpoint.id, status="failed", next_attempt_at=None)
    await _add_endpoints(backend.uow, tenant, endpoint)
    await _add_deliveries(backend.uow, tenant, delivery)
    for other in (replace(tenant, livemode=False), await backend.tenant()):
        async with backend.uow.begin(other, CALL) as tx:
            assert await tx[WebhookStore].count() == 0
            assert await tx[WebhookStore].get(endpoint.id) is None
            assert await tx[WebhookStore].get(endpoint.id, lock=True) is None
            assert await tx[WebhookStore].get_secrets(endpoint.id) is None
            assert await tx[WebhookStore].get_delivery(endpoint.id, delivery.id) is None
            assert (await tx[WebhookStore].page(PageRequest())).items == ()
            assert (
                await tx[WebhookStore].list_deliveries(DeliveryFilter(endpoint=endpoint.id), PageRequest())
            ).items == ()
            far = MOMENT + timedelta(days=9)
            assert await tx[WebhookStore].recover(endpoint.id, MOMENT - timedelta(days=9), far, MOMENT, 9) == Recovery(
                0, False
            )
            assert await tx[WebhookStore].fail_open_deliveries(endpoint.id, MOMENT) == 0
            await tx[WebhookStore].remove(endpoint.id)
    async with backend.uow.begin_reading(tenant) as tx:
        assert await tx[WebhookStore].get(endpoint.id) == endpoint


async def test_save_compares_versions(uow: UnitOfWork, tenant: Tenant) -> None:
    endpoint = builders.endpoint(version=3)
    await _add_endpoints(uow, tenant, endpoint)
    changed = replace(endpoint, version=4, filters=Filters(("src_1",)), status="disabled", disabled_for="failing")
    async with uow.begin(tenant, CALL) as tx:
        await tx[WebhookStore].save(changed, expected_version=3)
        with pytest.raises(PreconditionFailed):
            async with tx.savepoint():
                await tx[WebhookStore].save(changed, expected_version=3)
        await tx[WebhookStore].save(
            replace(changed, coalesce_seconds=9), checkpoint=FeedPosition(LogPosition(position=12))
        )
        assert await tx[WebhookStore].get(endpoint.id, lock=True) == replace(changed, coalesce_seconds=9)


async def test_secrets_are_replaced(uow: UnitOfWork, tenant: Tenant) -> None:
    endpoint = builders.endpoint()
    await _add_endpoints(uow, tenant, endpoint)
    async with uow.begin(tenant, CALL) as tx:
        await tx[WebhookStore].replace_secrets(endpoint.id, EncryptedSecrets(b"new", SECRETS.current))
    async with uow.begin_reading(tenant) as tx:
        assert await tx[WebhookStore].get_secrets(endpoint.id) == EncryptedSecrets(b"new", SECRETS.current)


async def test_ended_rotations_are_found(backend: Backend) -> None:
    now, tenants = backend.now(), [await backend.tenant(), await backend.tenant(livemode=False)]
    lapsed, lasting, none = (
        builders.endpoint(rotation=Rotation(now - timedelta(hours=2), "abc=")),
        builders.endpoint(rotation=Rotation(now + timedelta(hours=1), "abc=")),
        builders.endpoint(),
    )
    for tenant in tenants:
        for endpoint in (lapsed, lasting, none):
            await _add_endpoints(backend.uow, tenant, replace(endpoint, id=f"{endpoint.id}"))
    found = [one for one in await backend.delivery_log.list_ended_rotations(now, 1000) if one[0] in tenants]
    assert sorted(found, key=repr) == sorted([(tenant, lapsed.id) for tenant in tenants], key=repr)
    assert len(await backend.delivery_log.list_ended_rotations(now, 1)) == 1
    async with backend.uow.begin(tenants[0], CALL) as tx:
        await tx[WebhookStore].save(replace(lapsed, rotation=None))
    found = [one for one in await backend.delivery_log.list_ended_rotations(now, 1000) if one[0] in tenants]
    assert found == [(tenants[1], lapsed.id)]


async def test_counting_endpoints_blocks_concurrent_creations(backend: Backend, tenant: Tenant) -> None:
    order: list[str] = []

    async def second() -> None:
        async with backend.uow.begin(tenant, CALL) as tx:
            assert await tx[WebhookStore].count() == 1
            order.append("second")

    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[WebhookStore].count() == 0
        waiting = asyncio.create_task(second())
        await asyncio.sleep(0.05)
        order.append("first")
        await tx[WebhookStore].add(builders.endpoint(), SECRETS, FeedPosition())
    await waiting
    assert order == ["first", "second"]


@pytest.mark.parametrize("count", [0, 1, 2, 23])
async def test_pages_newest_first(uow: UnitOfWork, tenant: Tenant, count: int) -> None:
    endpoints = [builders.endpoint() for _ in range(count)]
    await _add_endpoints(uow, tenant, *endpoints)
    async with uow.begin_reading(tenant) as tx:
        await check_pagination(tx[WebhookStore].page, endpoints[::-1], lambda endpoint: endpoint.id)


async def test_removing_an_endpoint_deletes_its_secrets_and_fails_open_deliveries(
    uow: UnitOfWork, tenant: Tenant
) -> None:
    endpoint = builders.endpoint()
    waiting = builders.delivery(endpoint.id)
    await _add_endpoints(uow, tenant, endpoint)
    await _add_deliveries(uow, tenant, waiting)
    async with uow.begin(tenant, CALL) as tx:
        now = tx.now
        await tx[WebhookStore].remove(endpoint.id)
    async with uow.begin_reading(tenant) as tx:
        assert await tx[WebhookStore].get(endpoint.id) is None
        assert await tx[WebhookStore].get_secrets(endpoint.id) is None
        expected = replace(waiting, status="failed", next_attempt_at=None, completed_at=now)
        assert await tx[WebhookStore].get_delivery(endpoint.id, waiting.id) == expected


async def test_keeps_every_field_of_deliveries(uow: UnitOfWork, tenant: Tenant) -> None:
    endpoint = builders.endpoint()
    attempts = (
        DeliveryAttempt(MOMENT, "failed", 15000, "timeout"),
        DeliveryAttempt(
            MOMENT + timedelta(microseconds=7), "failed", 31, "http_status", 503, 'nope "ü"\n', {"retry-after": "9"}
        ),
        DeliveryAttempt(MOMENT + timedelta(hours=1), "succeeded", 12, None, 204, ""),
    )
    delivery = builders.delivery(
        endpoint.id, positions=(4, 9, 11), status="succeeded", body=b'{"a":1.50}', attempts=attempts, tries=3, attempts_made=3,
        next_attempt_at=None, completed_at=MOMENT + timedelta(hours=1),
    )  # fmt: skip
    await _add_endpoints(uow, tenant, endpoint)
    await _add_deliveries(uow, tenant, delivery)
    async with uow.begin(tenant, CALL) as tx:
        found = await tx[WebhookStore].get_delivery(endpoint.id, delivery.id, lock=True)
        assert found == delivery
        assert await tx[WebhookStore].get_delivery("whe_0000000000000000000000", delivery.id) is None
        assert await tx[WebhookStore].get_delivery(endpoint.id, "dlv_0000000000000000000000") is None


def _build_deliveries(endpoint: str) -> list[Delivery]:
    dice = random.Random(7)
    return [
        builders.delivery(
            endpoint,
            status=dice.choice(["succeeded", "failed", "pending"]),
            type=dice.choice(["offer.changed", "offer.created", "product.created"]),
            event=dice.choice(["evt_1", "evt_2"]),
        )
        for _ in range(40)
    ]


@pytest.mark.parametrize(
    "wanted",
    [
        DeliveryFilter(),
        DeliveryFilter(status="failed"),
        DeliveryFilter(type="offer.created"),
        DeliveryFilter(event="evt_2"),
        DeliveryFilter("failed", "offer.changed", "evt_1"),
        DeliveryFilter(event="evt_9"),
    ],
)
async def test_deliveries_are_listed(uow: UnitOfWork, tenant: Tenant, wanted: DeliveryFilter) -> None:
    endpoint, other = builders.endpoint(), builders.endpoint()
    made = _build_deliveries(endpoint.id)
    await _add_endpoints(uow, tenant, endpoint, other)
    await _add_deliveries(uow, tenant, *made, *_build_deliveries(other.id))

    async def fetch(page_request: PageRequest) -> Page[Delivery]:
        async with uow.begin_reading(tenant) as tx:
            return await tx[WebhookStore].list_deliveries(replace(wanted, endpoint=endpoint.id), page_request)

    expected = [delivery for delivery in reversed(made) if filters.equals(wanted, delivery)]
    await check_pagination(fetch, expected, lambda delivery: delivery.id)


async def test_pages_of_deliveries_are_stable_while_others_are_added(uow: UnitOfWork, tenant: Tenant) -> None:
    endpoint = builders.endpoint()
    made = [builders.delivery(endpoint.id) for _ in range(9)]
    await _add_endpoints(uow, tenant, endpoint)
    await _add_deliveries(uow, tenant, *made)

    async def fetch(page_request: PageRequest) -> Page[Delivery]:
        async with uow.begin_reading(tenant) as tx:
            return await tx[WebhookStore].list_deliveries(DeliveryFilter(endpoint=endpoint.id), page_request)

    await check_insertions(
        fetch, lambda: _add_deliveries(uow, tenant, builders.delivery(endpoint.id)), made[::-1], lambda one: one.id
    )


def _build_finished_delivery(endpoint: str, status: str, at: datetime) -> Delivery:
    attempt = DeliveryAttempt(at, status, 5, None if status == "succeeded" else "connect")
    return builders.delivery(
        endpoint, status=status, created_at=at, completed_at=at, next_attempt_at=None, tries=1, attempts_made=1,
        attempts=(attempt,), body=b"{}",
    )  # fmt: skip


async def test_resending_keeps_the_body(uow: UnitOfWork, tenant: Tenant) -> None:
    endpoint = builders.endpoint()
    done, at = _build_finished_delivery(endpoint.id, "succeeded", MOMENT), MOMENT + timedelta(hours=2)
    await _add_endpoints(uow, tenant, endpoint)
    await _add_deliveries(uow, tenant, done)
    async with uow.begin(tenant, CALL) as tx:
        await tx[WebhookStore].requeue(done, at)
    async with uow.begin_reading(tenant) as tx:
        expected = replace(done, status="pending", tries=0, next_attempt_at=at, completed_at=None)
        assert await tx[WebhookStore].get_delivery(endpoint.id, done.id) == expected


async def test_recovers_failed_deliveries_of_the_time_range(uow: UnitOfWork, tenant: Tenant) -> None:
    endpoint, other = builders.endpoint(), builders.endpoint()
    moments = [MOMENT + timedelta(hours=hour) for hour in range(5)]
    failed = [_build_finished_delivery(endpoint.id, "failed", moment) for moment in moments]
    fine = _build_finished_delivery(endpoint.id, "succeeded", moments[2])
    elsewhere = _build_finished_delivery(other.id, "failed", moments[2])
    await _add_endpoints(uow, tenant, endpoint, other)
    await _add_deliveries(uow, tenant, *failed, fine, elsewhere)
    at = MOMENT + timedelta(days=1)
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[WebhookStore].recover(endpoint.id, moments[1], moments[3], at, 9) == Recovery(3, False)
        assert await tx[WebhookStore].recover(endpoint.id, moments[1], moments[3], at, 9) == Recovery(0, False)
    async with uow.begin_reading(tenant) as tx:
        now = {
            one.id: one
            for one in (
                await tx[WebhookStore].list_deliveries(DeliveryFilter(endpoint=endpoint.id), PageRequest())
            ).items
        }
        for delivery in failed[1:4]:
            expected = replace(delivery, status="pending", tries=0, next_attempt_at=at, completed_at=None)
            assert now[delivery.id] == expected
        assert [now[one.id] for one in (failed[0], failed[4], fine)] == [failed[0], failed[4], fine]
        assert await tx[WebhookStore].get_delivery(other.id, elsewhere.id) == elsewhere


async def test_recovers_up_to_the_limit_of_open_deliveries(uow: UnitOfWork, tenant: Tenant) -> None:
    endpoint = builders.endpoint()
    failed = sorted((_build_finished_delivery(endpoint.id, "failed", MOMENT) for _ in range(5)), key=lambda one: one.id)
    await _add_endpoints(uow, tenant, endpoint)
    await _add_deliveries(
        uow, tenant, *failed, builders.delivery(endpoint.id), builders.delivery(endpoint.id, status="sending")
    )
    async with uow.begin(tenant, CALL) as tx:
        for most, recovery in (
            (1, Recovery(0, True)),
            (5, Recovery(3, True)),
            (6, Recovery(1, True)),
            (9, Recovery(1, False)),
        ):
            assert await tx[WebhookStore].recover(endpoint.id, MOMENT, MOMENT, MOMENT, most) == recovery
            states = [(await tx[WebhookStore].get_delivery(endpoint.id, one.id)).status for one in failed]  # type: ignore[union-attr]
            assert states == sorted(states, reverse=True), "the oldest first"


async def test_open_deliveries_can_be_failed(uow: UnitOfWork, tenant: Tenant) -> None:
    endpoint = builders.endpoint()
    fine = _build_finished_delivery(endpoint.id, "succeeded", MOMENT)
    waiting, sending = builders.delivery(endpoint.id), builders.delivery(endpoint.id, status="sending")
    await _add_endpoints(uow, tenant, endpoint)
    await _add_deliveries(uow, tenant, fine, waiting, sending)
    at = MOMENT + timedelta(minutes=1)
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[WebhookStore].fail_open_deliveries(endpoint.id, at) == 2
        assert await tx[WebhookStore].fail_open_deliveries(endpoint.id, at) == 0
        assert await tx[WebhookStore].get_delivery(endpoint.id, fine.id) == fine
        for one in (waiting, sending):
            expected = replace(one, status="failed", next_attempt_at=None, completed_at=at)
            assert await tx[WebhookStore].get_delivery(endpoint.id, one.id) == expected
