"""Storage of agreements (domain/agreements/ports.py), and publication by operators."""

import asyncio
from dataclasses import replace

import pytest

from adapters.postgres.agreements import PostgresAgreementRegistry
from domain.agreements.model import Agreement, AgreementKind
from domain.agreements.ports import AgreementStore
from domain.kernel.errors import Conflict
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from tests.support import builders
from tests.support.backend import Backend
from tests.support.pagination import check_pagination

pytestmark = [pytest.mark.asyncio, pytest.mark.settable_clock]
KIND = AgreementKind.VENDOR_DATA


async def publish_next(backend: Backend) -> Agreement:
    """Publish a version after those of other tests."""
    registry = PostgresAgreementRegistry(backend.pool)
    newest = await registry.get_newest(KIND)
    made = builders.agreement(version=newest.version + 1 if newest else 1)
    assert await registry.publish(made)
    return made


async def test_versions_are_the_same_for_all_tenants(backend: Backend) -> None:
    first, second = await publish_next(backend), await publish_next(backend)
    registry = PostgresAgreementRegistry(backend.pool)
    assert [*await registry.list_versions()][:2] == [second, first]
    for tenant in (await backend.tenant(), await backend.tenant(livemode=False)):
        async with backend.uow.begin(tenant, builders.CALL) as tx:
            assert await tx[AgreementStore].get_newest(KIND) == second
            assert await tx[AgreementStore].find_version(KIND, first.version) == first
            assert await tx[AgreementStore].find_version(KIND, second.version + 1) is None


async def test_a_version_is_published_once(backend: Backend) -> None:
    made = await publish_next(backend)
    registry = PostgresAgreementRegistry(backend.pool)
    others = [builders.agreement(f"text {number}", version=made.version + 1) for number in range(4)]
    assert sorted(await asyncio.gather(*map(registry.publish, others))) == [False, False, False, True]
    assert await registry.get_newest(KIND) in others


async def test_acceptances_belong_to_a_tenant(backend: Backend) -> None:
    version, tenant = await publish_next(backend), await backend.tenant()
    made = builders.acceptance(version)
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        assert await tx[AgreementStore].find_newest_acceptance(KIND, lock=True) is None
        await tx[AgreementStore].add(made)
        with pytest.raises(Conflict, match="already accepted"):
            async with tx.savepoint():
                await tx[AgreementStore].add(builders.acceptance(version))
    for other in (tenant, replace(tenant, livemode=False), await backend.tenant()):
        async with backend.uow.begin_reading(other) as tx:
            expected = made if other == tenant else None
            assert await tx[AgreementStore].find_newest_acceptance(KIND) == expected
            assert (await tx[AgreementStore].page(PageRequest())).items == ((made,) if expected else ())


async def test_acceptances_are_paged_and_the_highest_version_is_the_newest(backend: Backend) -> None:
    tenant = await backend.tenant()
    versions = [builders.agreement(version=number) for number in range(1, 8)]
    made = [builders.acceptance(version, ip=None, user_agent=None) for version in versions]
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        for row in made[::-1]:
            await tx[AgreementStore].add(row)
        assert await tx[AgreementStore].find_newest_acceptance(KIND) == made[-1]

    async def read_page(tenant: Tenant, request: PageRequest) -> Page[object]:
        async with backend.uow.begin_reading(tenant) as tx:
            return await tx[AgreementStore].page(request)

    expected = sorted(made, key=lambda row: row.id, reverse=True)
    await check_pagination(lambda request: read_page(tenant, request), expected, lambda row: row.id)
