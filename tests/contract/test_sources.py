"""Sources, their credentials and schedules (domain/sources/ports.py)."""

import asyncio
import json
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.kernel.errors import PreconditionFailed
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.resource import with_changes
from domain.kernel.tenancy import Tenant
from domain.sources.model import Schedule, Source, SourceContents, SourceStatus, StatusReason
from domain.sources.ports import SourceStore
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.merged_catalogues import MergedCatalogue
from tests.support.pagination import check_insertions, check_pagination

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


def _get_id(source: Source) -> str:
    return source.id


async def _add_sources(uow: UnitOfWork, tenant: Tenant, *sources: Source) -> None:
    async with uow.begin(tenant, CALL) as tx:
        for source in sources:
            await tx[SourceStore].add(source)


async def test_keeps_every_field(uow: UnitOfWork, tenant: Tenant) -> None:
    moment = builders.MOMENT
    source = builders.source(
        config={"url": "https://vendor.example/a.csv", "inbound": {"senders": ["a@vendor.example"]}},
        schedule=Schedule(60, 15, adaptive=True),
        status="degraded",
        status_reason=StatusReason("fetch_failed", "It answered 503."),
        first_party=True,
        inbound_address=f"{new_id('src')[4:].lower()}@in.joinery.example",
        failures=4,
        catalogue_at=moment - timedelta(hours=2),
        stock_at=moment - timedelta(minutes=2, microseconds=5),
        next_pull=moment,
        next_stock_pull=moment + timedelta(minutes=9),
        interval_factor={"catalogue": 2.0, "stock": 0.5},
        version=7,
    )
    await _add_sources(uow, tenant, source)
    async with uow.begin_reading(tenant) as tx:
        assert await tx[SourceStore].get(source.id) == source
        assert (await tx[SourceStore].page(PageRequest())).items == (source,)


async def test_counts_sources_against_the_plan(backend: Backend, tenant: Tenant) -> None:
    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[SourceStore].count() == 0
    await _add_sources(backend.uow, tenant, *(builders.source(status=status) for status in SourceStatus))
    await _add_sources(backend.uow, replace(tenant, livemode=False), builders.source())
    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[SourceStore].count() == len(SourceStatus) - 1, "sources that the service disabled do not count"


async def test_concurrent_counts_include_each_other(backend: Backend, tenant: Tenant) -> None:
    async def add() -> bool:
        async with backend.uow.begin(tenant, CALL) as tx:
            if await tx[SourceStore].count(lock=True) >= 3:
                return False
            await asyncio.sleep(0.01)
            await tx[SourceStore].add(builders.source())
            return True

    assert sum(await asyncio.gather(*(add() for _ in range(8)))) == 3


async def test_an_unknown_source_is_none(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin_reading(tenant) as tx:
        assert await tx[SourceStore].get("src_0000000000000000000000") is None


async def test_belongs_to_one_tenant_and_mode(backend: Backend, tenant: Tenant) -> None:
    source = builders.source()
    await _add_sources(backend.uow, tenant, source)
    for other in (replace(tenant, livemode=False), await backend.tenant()):
        async with backend.uow.begin(other, CALL) as tx:
            assert await tx[SourceStore].get(source.id) is None
            assert await tx[SourceStore].get(source.id, lock=True) is None
            assert (await tx[SourceStore].page(PageRequest())).items == ()
            assert await tx[SourceStore].load_encrypted_credentials(source.id) is None


async def test_save_compares_versions(uow: UnitOfWork, tenant: Tenant) -> None:
    source = builders.source(version=3)
    await _add_sources(uow, tenant, source)
    renamed = with_changes(source, builders.MOMENT, name="changed")
    async with uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].save(renamed, expected_version=3)
        with pytest.raises(PreconditionFailed):
            async with tx.savepoint():
                await tx[SourceStore].save(renamed, expected_version=3)
        await tx[SourceStore].save(replace(renamed, name="again"))
        found = await tx[SourceStore].get(source.id)
    assert found is not None and (found.name, found.version) == ("again", 4)


async def test_encrypts_and_deletes_credentials(uow: UnitOfWork, tenant: Tenant) -> None:
    source = builders.source()
    await _add_sources(uow, tenant, source)
    async with uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].save_encrypted_credentials(source.id, b"\x00sealed\xff")
        await tx[SourceStore].save(with_changes(source, tx.now, has_credentials=True))
    async with uow.begin(tenant, CALL) as tx:
        found = await tx[SourceStore].get(source.id)
        assert found is not None and found.has_credentials
        assert await tx[SourceStore].load_encrypted_credentials(source.id) == b"\x00sealed\xff"
        await tx[SourceStore].save(with_changes(found, tx.now, name="still sealed"))
        assert await tx[SourceStore].load_encrypted_credentials(source.id) == b"\x00sealed\xff"
        await tx[SourceStore].save_encrypted_credentials(source.id, None)
        found = await tx[SourceStore].get(source.id)
        assert found is not None and not found.has_credentials
        assert await tx[SourceStore].load_encrypted_credentials(source.id) is None


@pytest.mark.parametrize("count", [0, 1, 2, 23])
async def test_pages_newest_first(uow: UnitOfWork, tenant: Tenant, count: int) -> None:
    sources = [builders.source() for _ in range(count)]
    await _add_sources(uow, tenant, *sources)
    await _add_sources(uow, replace(tenant, livemode=False), builders.source())
    async with uow.begin_reading(tenant) as tx:
        expected = sorted(sources, key=_get_id, reverse=True)
        await check_pagination(tx[SourceStore].page, expected, _get_id)


async def test_pages_are_stable_while_sources_are_added(uow: UnitOfWork, tenant: Tenant) -> None:
    sources = [builders.source() for _ in range(9)]
    await _add_sources(uow, tenant, *sources)

    async def fetch(page_request: PageRequest) -> Page[Source]:
        async with uow.begin_reading(tenant) as tx:
            return await tx[SourceStore].page(page_request)

    async def insert() -> None:
        await _add_sources(uow, tenant, builders.source())

    await check_insertions(fetch, insert, sorted(sources, key=_get_id, reverse=True), _get_id)


async def test_due_pulls(backend: Backend, tenant: Tenant) -> None:
    now = builders.MOMENT
    ago = timedelta(minutes=1)
    both = builders.source(next_pull=now - 3 * ago, next_stock_pull=now - ago)
    late = builders.source(next_pull=now, status="degraded")
    later = builders.source(next_pull=now + ago)
    stopped = [builders.source(next_pull=now - ago, status=status) for status in ("paused", "blocked", "disabled")]
    test = builders.source(next_pull=now - 2 * ago)
    await _add_sources(backend.uow, tenant, both, late, later, *stopped, builders.source())
    await _add_sources(backend.uow, replace(tenant, livemode=False), test)
    due = [pull for pull in await backend.schedule.list_due(now, 10_000) if pull[0].org == tenant.org]
    assert due == [
        (tenant, both.id, "catalogue"),
        (replace(tenant, livemode=False), test.id, "catalogue"),
        (tenant, both.id, "stock"),
        (tenant, late.id, "catalogue"),
    ]
    assert len(await backend.schedule.list_due(now, 1)) == 1
    earliest = await backend.schedule.find_next_due()
    assert earliest is not None and earliest <= now - 3 * ago


async def test_contents_are_counted_and_sampled(backend: Backend, tenant: Tenant) -> None:
    shop = MergedCatalogue(backend.uow, tenant)
    first, second, empty = await shop.create_source(), await shop.create_source(), builders.source()
    await _add_sources(backend.uow, tenant, empty)
    for number in range(3):
        await shop.load_product(first, f"A{number}", "red")
    other = await shop.load_product(second, "B", "red")
    async with backend.uow.begin_reading(tenant) as tx:
        ids = [first.id, second.id, empty.id, "src_unknown"]
        found = {one.source: one for one in await tx[SourceStore].summarise_contents(ids, 2, 10)}
        assert found[first.id] == SourceContents(first.id, 2, 3, 0, 3, 0), "products are counted up to the limit"
        assert found[second.id] == SourceContents(second.id, 1, 1, 0, 1, 0)
        assert found[empty.id] == SourceContents(empty.id, 0, 0, 0, 0, 0)
        documents = await tx[SourceStore].sample_documents(ids, 2)
        assert sorted(source for source, _ in documents) == sorted([first.id, first.id, second.id])
        assert json.loads(next(body for source, body in documents if source == second.id))["id"] == other.id
    await shop.merge_variants(shop.products[0].variants[0], other.variants[0])
    async with backend.uow.begin_reading(tenant) as tx:
        found = {one.source: one for one in await tx[SourceStore].summarise_contents(ids, 10, 10)}
        assert [found[id].matched_products for id in ids[:3]] == [1, 1, 0]
    async with backend.uow.begin_reading(await backend.tenant()) as tx:
        assert not await tx[SourceStore].sample_documents(ids, 2)
        assert all(one.products == 0 for one in await tx[SourceStore].summarise_contents(ids, 2, 10))
