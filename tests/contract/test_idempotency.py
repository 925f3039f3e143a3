"""Stored responses and locks of idempotency keys (ports/idempotency.py)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.kernel.errors import RequestInProgress
from domain.kernel.tenancy import Tenant
from ports.idempotency import IdempotencyStore, StoredResponse
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
ANSWER = StoredResponse(
    b"\x00\xff", 201, (("location", "/v1/sources/src_1"), ("etag", '"1-ab"')), b'{"object":"source"}'
)


async def test_a_response_is_stored_with_its_effect(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[IdempotencyStore].lock("k") is None
        await tx[IdempotencyStore].store("k", ANSWER)
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[IdempotencyStore].lock("k") == ANSWER
        assert await tx[IdempotencyStore].lock("K") is None


async def test_rolled_back_requests_store_no_response(uow: UnitOfWork, tenant: Tenant) -> None:
    with pytest.raises(LookupError):
        async with uow.begin(tenant, CALL) as tx:
            await tx[IdempotencyStore].lock("k")
            await tx[IdempotencyStore].store("k", ANSWER)
            raise LookupError
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[IdempotencyStore].lock("k") is None


async def test_a_key_is_held_until_the_transaction_ends(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as first:
        assert await first[IdempotencyStore].lock("k") is None
        assert await first[IdempotencyStore].lock("k") is None
        async with uow.begin(tenant, CALL) as second:
            with pytest.raises(RequestInProgress) as refusal:
                async with second.savepoint():
                    await second[IdempotencyStore].lock("k")
            assert refusal.value.retry_after == 1
            assert await second[IdempotencyStore].lock("another") is None
        await first[IdempotencyStore].store("k", ANSWER)
    async with uow.begin(tenant, CALL) as third:
        assert await third[IdempotencyStore].lock("k") == ANSWER


async def test_a_failed_holder_releases_its_key(uow: UnitOfWork, tenant: Tenant) -> None:
    with pytest.raises(LookupError):
        async with uow.begin(tenant, CALL) as tx:
            await tx[IdempotencyStore].lock("k")
            raise LookupError
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[IdempotencyStore].lock("k") is None


async def test_tenants_and_modes_share_no_key(backend: Backend, tenant: Tenant) -> None:
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[IdempotencyStore].lock("k")
        await tx[IdempotencyStore].store("k", ANSWER)
        for other in (replace(tenant, livemode=False), await backend.tenant()):
            async with backend.uow.begin(other, CALL) as elsewhere:
                assert await elsewhere[IdempotencyStore].lock("k") is None


@pytest.mark.settable_clock
async def test_responses_are_deleted_after_a_day(backend: Backend, tenant: Tenant) -> None:
    async with backend.uow.begin(tenant, CALL) as tx:
        for key in ("k", "other"):
            await tx[IdempotencyStore].store(key, ANSWER)
    await backend.pass_time(timedelta(hours=23, minutes=59))
    assert await backend.maintenance.purge_stored_responses() == 0
    await backend.pass_time(timedelta(minutes=1))
    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[IdempotencyStore].lock("k") is None
    assert await backend.maintenance.purge_stored_responses() == 1
    assert await backend.maintenance.purge_stored_responses() == 0


async def test_a_stored_response_can_be_replaced(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        await tx[IdempotencyStore].lock("k")
        await tx[IdempotencyStore].store("k", ANSWER)
    async with uow.begin(tenant, CALL) as tx:
        await tx[IdempotencyStore].replace_body("k", b'{"object":"other"}')
        await tx[IdempotencyStore].replace_body("nothing", b"{}")
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[IdempotencyStore].lock("k") == replace(ANSWER, body=b'{"object":"other"}')
        assert await tx[IdempotencyStore].lock("nothing") is None
