"""Usage (domain/usage/ports.py): counts, reservations, aggregation, thresholds and held deliveries."""

import asyncio
from datetime import date, timedelta
from secrets import token_hex

import pytest

from adapters.api_json.event_schemas import EVENT_SCHEMAS
from adapters.api_json.usage import render_usage
from domain.kernel.tenancy import Tenant
from domain.orgs.model import MeterAllowance
from domain.orgs.ports import OrgStore
from domain.sources.ports import SourceStore
from domain.usage.meters import DELIVERIES, RECORDS, SOURCES, STORED_BYTES, Threshold, find_month_start
from domain.usage.ports import UsageMeters
from domain.usage.usecases import quota
from domain.usage.usecases.aggregation import UsageAggregator
from domain.webhooks.usecases.service import request_endpoint_reload
from entrypoints.factories import create_usage_service
from entrypoints.operations.validation import Validator
from ports.unit_of_work import Tx, UnitOfWork
from tests.contract.delivery_harness import DeliveryHarness, wait_for_deliveries, wait_until
from tests.support import builders
from tests.support.backend import Backend
from tests.support.closed_schemas import close_schema

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


class _BackendClock:
    def __init__(self, backend: Backend) -> None:
        self.now = backend.now


async def create_tenant(backend: Backend, *, livemode: bool = True, **included: int) -> Tenant:
    """Create a tenant whose plan includes these amounts."""
    meters = {name: MeterAllowance(most, 1, 0) for name, most in included.items()}
    plan = builders.plan(f"p{token_hex(6)}", meters=meters)
    await backend.offer(plan)
    return Tenant((await backend.organisation(plan=plan)).id, livemode)


async def aggregate_usage(backend: Backend, *tenants: Tenant) -> None:
    """Aggregate as the scheduler does, for these tenants only, because other tests share the store."""
    folding = UsageAggregator(
        backend.uow,
        backend.usage,
        _BackendClock(backend),
        render_usage,
        create_usage_service(),
        request_endpoint_reload,
    )
    for tenant in tenants:
        assert tenant in await backend.usage.find_unaggregated(1_000_000)
        await folding._run_step(tenant, folding._aggregate)


async def read_usage(uow: UnitOfWork, tenant: Tenant) -> dict[str, int]:
    async with uow.begin_reading(tenant) as tx:
        return {one.meter: one.used for one in (await create_usage_service().get_month_usage(tx)).meters}


async def test_aggregation_keeps_counts(backend: Backend, uow: UnitOfWork) -> None:
    tenant, other = await create_tenant(backend), await create_tenant(backend)
    for amount in (3, 4):
        async with uow.begin(tenant, CALL) as tx:
            await tx[UsageMeters].add_usage(RECORDS, amount, "run_1")
    async with uow.begin(tenant, CALL) as tx:
        await tx[UsageMeters].add_usage(DELIVERIES, 5, "one")
        await tx[UsageMeters].add_usage(DELIVERIES, 6, "two")
    async with uow.begin(tenant, CALL) as tx:
        await tx[UsageMeters].add_usage(RECORDS, 100, "run_2")
        tx.is_dry_run = True
    before = await read_usage(uow, tenant)
    assert (before[RECORDS], before[DELIVERIES]) == (7, 11)
    await aggregate_usage(backend, tenant)
    assert tenant not in await backend.usage.find_unaggregated(1_000_000)
    async with uow.begin(tenant, CALL) as tx:
        await tx[UsageMeters].add_usage(RECORDS, 1, "run_1")
    await aggregate_usage(backend, tenant)
    assert (await read_usage(uow, tenant)) == before | {RECORDS: 8}
    assert (await read_usage(uow, other))[RECORDS] == 0


async def test_reservations_are_not_aggregated_until_they_end(backend: Backend, uow: UnitOfWork) -> None:
    tenant = await create_tenant(backend, records=100)
    async with uow.begin(tenant, CALL) as tx:
        assert await quota.reserve_quota(tx, RECORDS, 60, "run_1")
    async with uow.begin(tenant, CALL) as tx:
        await tx[UsageMeters].add_usage(RECORDS, 10, "run_1")
        assert not await quota.reserve_quota(tx, RECORDS, 41, "run_2"), "reservations count for other runs"
        assert await quota.reserve_quota(tx, RECORDS, 40, "run_2")
    assert tenant not in await backend.usage.find_unaggregated(1_000_000)
    assert (await read_usage(uow, tenant))[RECORDS] == 10, "reservations are not usage"
    async with uow.begin(tenant, CALL) as tx:
        await tx[UsageMeters].release(RECORDS, "run_1")
        assert not await quota.is_spent(tx, RECORDS)
        assert await quota.reserve_quota(tx, RECORDS, 50, "run_3"), "unused reservations are available again"
    await aggregate_usage(backend, tenant)
    async with uow.begin(tenant, CALL) as tx:
        assert not await quota.reserve_quota(tx, RECORDS, 51, "run_3")
        await tx[UsageMeters].add_usage(RECORDS, 90, "run_2")
        assert await quota.is_spent(tx, RECORDS)


async def test_concurrent_reservations_do_not_exceed_the_quota(backend: Backend, uow: UnitOfWork) -> None:
    tenant = await create_tenant(backend, records=50)

    async def reserve(number: int) -> bool:
        async with uow.begin(tenant, CALL) as tx:
            return await quota.reserve_quota(tx, RECORDS, 10, f"run_{number}")

    assert sum(await asyncio.gather(*(reserve(number) for number in range(8)))) == 5


async def test_the_sandbox_is_counted_and_never_refused(backend: Backend, uow: UnitOfWork) -> None:
    tenant = await create_tenant(backend, livemode=False, records=1)
    async with uow.begin(tenant, CALL) as tx:
        assert await quota.reserve_quota(tx, RECORDS, 1_000, "run_1")
        await tx[UsageMeters].add_usage(RECORDS, 1_000, "run_1")
        assert not await quota.is_spent(tx, RECORDS)
    await aggregate_usage(backend, tenant)
    assert (await read_usage(uow, tenant))[RECORDS] == 1_000
    async with uow.begin_reading(tenant) as tx:
        assert await tx[UsageMeters].list_thresholds(find_month_start(tx.now.date())) == []


async def list_thresholds(tx: Tx) -> list[tuple[str, int]]:
    return [(one.meter, one.percent) for one in await tx[UsageMeters].list_thresholds(find_month_start(tx.now.date()))]


async def test_thresholds_are_notified_once(backend: Backend, uow: UnitOfWork) -> None:
    tenant = await create_tenant(backend, records=10, sources=0, stored_bytes=10)
    endpoint = await DeliveryHarness(backend, tenant).create_endpoint()
    harness = DeliveryHarness(backend, tenant)
    for amount, expected in ((7, []), (1, [(RECORDS, 80)]), (1, [(RECORDS, 80)]), (5, [(RECORDS, 80), (RECORDS, 100)])):
        async with uow.begin(tenant, CALL) as tx:
            await tx[UsageMeters].add_usage(RECORDS, amount, "run_1")
        await aggregate_usage(backend, tenant)
        async with uow.begin_reading(tenant) as tx:
            assert sorted(await list_thresholds(tx)) == expected
    async with harness.run_deliverer():
        harness.receivers.urls.add(endpoint.url)
        await wait_until(lambda: len(harness.receivers.list_posts(endpoint.url)) == 2)
    events = [post.event for post in harness.receivers.list_posts(endpoint.url)]
    assert [event["type"] for event in events] == ["usage.threshold_reached"] * 2
    assert [(event["data"]["threshold"], event["data"]["used"]) for event in events] == [(80, 8), (100, 14)]
    schema = Validator(close_schema(dict(EVENT_SCHEMAS["usage.threshold_reached"])))
    assert [fault for event in events for fault in schema.find_field_errors(event)] == []
    assert events[0]["data"]["included"] == 10 and events[0]["subject"] == tenant.org


async def test_deliveries_count_once_and_wait_when_the_month_is_spent(backend: Backend, uow: UnitOfWork) -> None:
    tenant = await create_tenant(backend, deliveries=10)
    harness = DeliveryHarness(backend, tenant)
    endpoint = await harness.create_endpoint()
    async with harness.run_deliverer():
        await harness.publish(*(harness.build_event(f"ofr_{n}") for n in range(12)))
        await wait_for_deliveries(harness, endpoint, 12)
    assert (await read_usage(uow, tenant))[DELIVERIES] == 12
    await aggregate_usage(backend, tenant)
    async with harness.run_deliverer():
        await harness.publish(harness.build_event("ofr_1"))
        await asyncio.sleep(0.3)
        assert await backend.delivery_log.get_subscriber(tenant, endpoint.id) is None
        before = len(harness.receivers.list_posts(endpoint.url))
        assert tenant not in await backend.usage.list_resumable(find_month_start(backend.now().date()))
        later = find_month_start(backend.now().date() + timedelta(days=40))
        assert tenant in await backend.usage.list_resumable(later)
        folding = UsageAggregator(
            backend.uow,
            backend.usage,
            _BackendClock(backend),
            render_usage,
            create_usage_service(),
            request_endpoint_reload,
        )
        await folding._run_step(tenant, folding._resume_deliveries)
        await wait_until(lambda: len(harness.receivers.list_posts(endpoint.url)) > before)


async def test_a_larger_plan_releases_held_deliveries(backend: Backend, uow: UnitOfWork) -> None:
    tenant = await create_tenant(backend, deliveries=10)
    month = find_month_start(backend.now().date())
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[UsageMeters].record_threshold(
            Threshold(DELIVERIES, month, 100, 10, tx.now), suspends_deliveries=True
        )
        assert not await tx[UsageMeters].record_threshold(
            Threshold(DELIVERIES, month, 100, 10, tx.now), suspends_deliveries=True
        )
        plan = (await tx[OrgStore].get_organisation()).plan
    assert tenant not in await backend.usage.list_resumable(month)
    await backend.offer(builders.plan(plan.code, meters={"deliveries": MeterAllowance(20, 1, 0)}))
    assert tenant in await backend.usage.list_resumable(month)


async def test_a_series_has_every_day_and_carries_levels_forward(backend: Backend, uow: UnitOfWork) -> None:
    tenant = await create_tenant(backend)
    today = backend.now().date()
    async with uow.begin(tenant, CALL) as tx:
        await tx[UsageMeters].add_usage(RECORDS, 5, "run_1")
        await tx[SourceStore].add(builders.source())
    await aggregate_usage(backend, tenant)
    async with uow.begin_reading(tenant) as tx:
        series = await create_usage_service().get_series(tx, None, today - timedelta(days=2), None)
        days = {meter: [(one.day, one.amount) for one in each] for meter, each in series.days.items()}
        assert [amount for _, amount in days[RECORDS]] == [0, 0, 5]
        assert [amount for _, amount in days[SOURCES]] == [0, 0, 1]
        assert [day for day, _ in days[STORED_BYTES]] == [today - timedelta(days=2 - n) for n in range(3)]
        assert (await tx[UsageMeters].get_last_level(SOURCES, today + timedelta(days=1))) is not None
        assert (await tx[UsageMeters].get_last_level(SOURCES, date(2020, 1, 1))) is None


async def test_reserved_usage_counts_on_the_day_of_its_reservation(backend: Backend, uow: UnitOfWork) -> None:
    """Usage is also not counted twice on the next day or in another month."""
    tenant = await create_tenant(backend, records=100)
    async with uow.begin(tenant, CALL) as tx:
        assert await quota.reserve_quota(tx, RECORDS, 60, "run_1")
        begun = tx.now.date()
    for amount, now in ((20, timedelta()), (30, timedelta(days=1))):
        async with uow.begin(tenant, CALL) as tx:
            advance_transaction(tx, now)
            await tx[UsageMeters].add_usage(RECORDS, amount, "run_1")
    async with uow.begin(tenant, CALL) as tx:
        assert {
            one.day: one.amount for one in await tx[UsageMeters].list_days([RECORDS], begun, begun + timedelta(days=1))
        } == {begun: 50}
        assert await quota.reserve_quota(tx, RECORDS, 40, "run_2") and not await quota.reserve_quota(
            tx, RECORDS, 41, "run_3"
        )


def advance_transaction(tx: Tx, by: timedelta) -> None:
    """Advance the transaction's time."""
    for inner in (getattr(tx, "session", None), getattr(tx, "transaction", None)):
        if inner is not None:
            inner.now += by
