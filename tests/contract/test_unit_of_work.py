"""Transactions and the record of their effects (ports/unit_of_work.py)."""

import asyncio

import pytest

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.events.ports import EventLog
from domain.jobs.model import NewJob
from domain.jobs.ports import JobStore
from domain.kernel.paging import PageRequest
from domain.kernel.resource import with_changes
from domain.kernel.tenancy import Tenant
from domain.sources.ports import SourceStore
from ports.unit_of_work import UnitOfWork
from tests.support import builders

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


async def _list_names(uow: UnitOfWork, tenant: Tenant) -> set[str]:
    async with uow.begin_reading(tenant) as tx:
        return {source.name for source in (await tx[SourceStore].page(PageRequest(100))).items}


async def test_commits_on_exit(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].add(builders.source(name="kept"))
        assert (await tx[SourceStore].page(PageRequest())).items[0].name == "kept"
        assert await _list_names(uow, tenant) == set()
    assert await _list_names(uow, tenant) == {"kept"}


async def test_rolls_back_on_an_exception(uow: UnitOfWork, tenant: Tenant) -> None:
    source = builders.source()
    with pytest.raises(LookupError):
        async with uow.begin(tenant, CALL) as tx:
            await tx[SourceStore].add(source)
            await tx[EventLog].append([builders.event(source.id)])
            await tx[JobStore].add(NewJob("runs.execute", f"source:{source.id}", tenant))
            raise LookupError
    assert await _list_names(uow, tenant) == set()


async def test_a_dry_transaction_has_no_effect(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        tx.is_dry_run = True
        await tx[SourceStore].add(builders.source())
    assert await _list_names(uow, tenant) == set()


async def test_a_scratch_transaction_reads_its_writes_and_has_no_effect(uow: UnitOfWork, tenant: Tenant) -> None:
    source = builders.source()
    async with uow.begin_scratch(tenant, CALL) as tx:
        await tx[SourceStore].add(source)
        assert await tx[SourceStore].get(source.id) == source
    assert await _list_names(uow, tenant) == set()


async def test_a_savepoint_is_rolled_back_alone(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].add(builders.source(name="before"))
        with pytest.raises(LookupError):
            async with tx.savepoint():
                await tx[SourceStore].add(builders.source(name="undone"))
                await tx[AuditLog].add(Change("source", "src_x", "create", {}, {}))
                tx.recorded.warnings.append("undone as well")
                raise LookupError
        async with tx.savepoint():
            await tx[SourceStore].add(builders.source(name="kept"))
        await tx[SourceStore].add(builders.source(name="after"))
        assert tx.recorded.changes == []
        assert tx.recorded.warnings == []
    assert await _list_names(uow, tenant) == {"before", "kept", "after"}


async def test_savepoints_nest(uow: UnitOfWork, tenant: Tenant) -> None:
    async with uow.begin(tenant, CALL) as tx:
        with pytest.raises(LookupError):
            async with tx.savepoint():
                async with tx.savepoint():
                    await tx[SourceStore].add(builders.source(name="inner"))
                raise LookupError
        await tx[SourceStore].add(builders.source(name="outer"))
    assert await _list_names(uow, tenant) == {"outer"}


async def test_a_savepoint_rolls_back_changes_of_a_row(uow: UnitOfWork, tenant: Tenant) -> None:
    source = builders.source()
    async with uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].add(source)
        with pytest.raises(LookupError):
            async with tx.savepoint():
                await tx[SourceStore].save(with_changes(source, tx.now, name="changed"))
                raise LookupError
        again = await tx[SourceStore].get(source.id)
        assert again is not None and again.name == source.name


async def test_records_its_effects(uow: UnitOfWork, tenant: Tenant) -> None:
    source = builders.source()
    change = Change("source", source.id, "create", {}, {"name": source.name})
    event, job = builders.event(source.id), NewJob("runs.execute", f"source:{source.id}", tenant, {"run": "run_x"})
    async with uow.begin(tenant, CALL) as tx:
        tx.is_dry_run = True
        await tx[AuditLog].add(change)
        await tx[EventLog].append([event])
        await tx[JobStore].add(job)
        assert tx.recorded.changes == [change]
        assert [one.subject for one in tx.recorded.events] == [source.id]
        assert tx.recorded.jobs == [job]
        assert tx.tenant == tenant and tx.context == CALL


async def test_a_lock_makes_others_wait(uow: UnitOfWork, tenant: Tenant) -> None:
    source = builders.source()
    async with uow.begin(tenant, CALL) as tx:
        await tx[SourceStore].add(source)

    async def rename(name: str) -> None:
        async with uow.begin(tenant, CALL) as tx:
            found = await tx[SourceStore].get(source.id, lock=True)
            assert found is not None
            await asyncio.sleep(0.01)
            await tx[SourceStore].save(with_changes(found, tx.now, name=f"{found.name} {name}"))

    await asyncio.gather(*(rename(str(number)) for number in range(5)))
    async with uow.begin_reading(tenant) as tx:
        found = await tx[SourceStore].get(source.id)
    assert found is not None and found.version == 6
    assert sorted(found.name.split()[2:]) == ["0", "1", "2", "3", "4"]
