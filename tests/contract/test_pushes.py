"""Parts of pushed batches (domain/runs/ports.py)."""

from dataclasses import replace

import pytest

from domain.kernel.errors import Conflict
from domain.kernel.tenancy import Tenant
from domain.runs.model import PushInput
from domain.runs.ports import PushStore, RunStore
from domain.storage.model import build_push_key
from domain.storage.ports import StorageLedger
from ports.unit_of_work import Tx, UnitOfWork
from tests.support import builders

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


async def add_part(tx: Tx, run: str, sequence: int, records: bytes) -> bool:
    """Add a part of a batch, in a tenant with a storage account."""
    assert await tx[StorageLedger].make_space(0)
    return await tx[PushStore].add_part(run, sequence, records, builders.MOMENT)


async def test_parts_are_read_in_order(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        for sequence in (10, 2, 0):
            assert await add_part(tx, "run_1", sequence, f"[{sequence}]".encode())
        assert await add_part(tx, "run_2", 0, b"[]")
        parts = [await tx[PushStore].get_part("run_1", sequence) for sequence in (0, 1, 2, 10)]
        assert parts == [b"[0]", None, b"[2]", b"[10]"]
        with pytest.raises(Conflict):
            async with tx.savepoint():
                await add_part(tx, "run_1", 2, b"[]")
        await tx[PushStore].delete_parts("run_1")
        await tx[PushStore].delete_parts("run_3")
        assert await tx[PushStore].get_part("run_1", 0) is None
        assert await tx[PushStore].get_part("run_2", 0) == b"[]"
    async with uow.begin_reading(replace(tenant, livemode=False)) as tx:
        assert await tx[PushStore].get_part("run_2", 0) is None


async def test_the_run_of_a_batch_is_found(uow: UnitOfWork, tenant: Tenant) -> None:
    waiting = PushInput("monday", parts=1)
    run = builders.run("src_1", trigger="push", input=waiting)
    others = [
        builders.run("src_1", trigger="push", input=replace(waiting, batch="tuesday")),
        builders.run("src_1", trigger="push", input=replace(waiting, open=False)),
        builders.run("src_1", trigger="push", status="failed", input=waiting),
        builders.run("src_2", trigger="push", input=waiting),
    ]
    async with uow.begin(tenant, CALL) as tx:
        for one in (*others, run):
            await tx[RunStore].add(one)
        assert await tx[PushStore].find_collecting("src_1", "monday") == run
        assert await tx[PushStore].find_collecting("src_1", "friday") is None
        await tx[RunStore].save(replace(run, input=replace(waiting, open=False)))
        assert await tx[PushStore].find_collecting("src_1", "monday") is None


async def test_parts_count_until_they_are_deleted(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        await add_part(tx, "run_1", 0, b"[1]")
        await add_part(tx, "run_1", 1, b"[22]")
        await add_part(tx, "run_2", 0, b"[]")
    async with uow.begin(tenant, CALL) as tx:
        assert await tx[StorageLedger].count_used_bytes() == 4 + 5 + 3
        entry = await tx[StorageLedger].get(build_push_key(tenant, "run_1"))
        assert entry is not None and (entry.bytes, entry.run, entry.free_after) == (0, "run_1", builders.MOMENT)
        assert await tx[PushStore].add_part("run_3", 0, b"[333]")
        assert await tx[StorageLedger].get(build_push_key(tenant, "run_3")) is None, "without a batch nothing expires"
        await tx[PushStore].delete_parts("run_3")
        await tx[PushStore].delete_parts("run_1")
        assert await tx[StorageLedger].count_used_bytes() == 3
        await tx[PushStore].delete_parts("run_1")
        assert await tx[StorageLedger].count_used_bytes() == 3
        assert await tx[StorageLedger].get(build_push_key(tenant, "run_1")) is None


async def test_the_newest_run_of_a_batch_is_found(uow: UnitOfWork, tenant: Tenant) -> None:
    runs = [builders.run("src_1", trigger="push", status="cancelled", input=PushInput(batch)) for batch in "aab"]
    async with uow.begin(tenant, CALL) as tx:
        for run in runs:
            await tx[RunStore].add(run)
        assert await tx[PushStore].find_newest("src_1", "a") == runs[1]
        assert await tx[PushStore].find_newest("src_1", "c") is None
        assert await tx[PushStore].find_newest("src_2", "a") is None
