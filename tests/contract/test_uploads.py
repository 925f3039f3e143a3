"""Uploads in the generic store (ports/unit_of_work.py)."""

from dataclasses import replace

import pytest

from domain.kernel.tenancy import Tenant
from domain.runs.model import MAX_SNAPSHOT_BYTES
from domain.uploads.model import Upload
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


async def test_keeps_and_saves(uow: UnitOfWork, tenant: Tenant) -> None:
    upload = builders.upload("src_1", bytes=MAX_SNAPSHOT_BYTES)
    async with uow.begin(tenant, CALL) as tx:
        await tx.store(Upload).add(upload)
        assert await tx.store(Upload).get(upload.id, lock=True) == upload
    completed = upload.with_completion("run_1", builders.MOMENT)
    async with uow.begin(tenant, CALL) as tx:
        await tx.store(Upload).save(completed)
    async with uow.begin_reading(tenant) as tx:
        assert await tx.store(Upload).get(upload.id) == completed
        assert await tx.store(Upload).get("upl_0000000000000000000000") is None


async def test_belongs_to_one_tenant_and_mode(backend: Backend, tenant: Tenant) -> None:
    upload = builders.upload("src_1")
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx.store(Upload).add(upload)
    for other in (replace(tenant, livemode=False), await backend.tenant()):
        async with backend.uow.begin(other, CALL) as tx:
            assert await tx.store(Upload).get(upload.id) is None
            assert await tx.store(Upload).get(upload.id, lock=True) is None
