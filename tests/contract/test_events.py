"""The event log (ports/events.py)."""

import pytest

from domain.kernel.ids import is_id, new_id
from domain.kernel.tenancy import Tenant
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


async def test_events_are_given_ids(backend: Backend, tenant: Tenant) -> None:
    named = builders.event("src_1", id=new_id("evt"))
    fresh = builders.event("src_2")
    id = named.id
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx.events.append([named, fresh])
        await tx.events.append([])
        assert named.id == id and is_id("evt", fresh.id)
        assert [event.subject for event in tx.recorded.events] == ["src_1", "src_2"]


async def test_the_high_watermark_moves_with_commits_and_never_back(backend: Backend, tenant: Tenant) -> None:
    before = await backend.events.high_watermark()
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx.events.append([builders.event("src_1")])
        while_open = await backend.events.high_watermark()
        assert while_open >= before
    after = await backend.events.high_watermark()
    assert after > before and after > while_open
    with pytest.raises(LookupError):
        async with backend.uow.begin(tenant, CALL) as tx:
            await tx.events.append([builders.event("src_1")])
            raise LookupError
    assert await backend.events.high_watermark() >= after


async def test_the_high_watermark_waits_for_whoever_appended_first(backend: Backend, tenant: Tenant) -> None:
    if backend.name == "memory":
        pytest.skip("one writes at a time here")
    other = await backend.tenant()
    async with backend.uow.begin(tenant, CALL) as slow:
        await slow.events.append([builders.event("src_1")])
        held = await backend.events.high_watermark()
        async with backend.uow.begin(other, CALL) as quick:
            await quick.events.append([builders.event("src_2")])
        assert await backend.events.high_watermark() == held
    assert await backend.events.high_watermark() > held
