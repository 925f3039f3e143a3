"""Storage of the audit log (domain/audit/ports.py): chain, lists and dependencies of entries."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.audit.model import AuditFilter, Change
from domain.audit.ports import AuditLog
from domain.audit.usecases import AuditService
from domain.kernel.errors import DomainError
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, Tenant
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
ANNA = replace(builders.CALL, actor=Actor("user", "usr_anna"), operation="sources.update", is_reversible=True)
BOT = replace(builders.CALL, actor=Actor("agent", "agt_bot", "usr_anna"), operation="webhooks.update", request_id=None)
NAME = "name"


def build_change(old: Any, new: Any, id: str = "src_1", field: str = NAME) -> Change:
    """Return a change of a source's field."""
    return Change("source", id, "update", {field: old}, {field: new})


async def record_act(uow: UnitOfWork, tenant: Tenant, *changes: Change, call: Any = ANNA, undoing: str = "") -> str:
    """Record one act and return its ID."""
    async with uow.begin(tenant, call) as tx:
        if undoing:
            await tx[AuditLog].link_undone_act(await tx[AuditLog].list_entries_of_acts([undoing]))
        act = await tx[AuditLog].add(changes[0])
        await tx[AuditLog].add_all(changes[1:])
    return act


async def count_faults(uow: UnitOfWork, tenant: Tenant) -> tuple[int, int]:
    """Return the numbers of entries and faults in the chain."""
    async with uow.begin_reading(tenant) as tx:
        report = await AuditService().verify_chain(tx)
    return report.valid_entries, len(report.faults)


async def list_entry_ids(uow: UnitOfWork, tenant: Tenant, filter: AuditFilter, **page: Any) -> list[str]:
    """Return the IDs of a page of entries."""
    async with uow.begin_reading(tenant) as tx:
        return [entry.id for entry in (await tx[AuditLog].page(PageRequest(**page), filter)).items]


async def test_entries_of_any_content_are_chained(uow: UnitOfWork, tenant: Tenant) -> None:
    assert await count_faults(uow, tenant) == (0, 0)
    odd: Mapping[str, Any] = {
        "number": 1e22, "fraction": 0.1, "small": 1e-9, "minus": -0.0, "text": 'ä"\\ \U0001f6cb', "none": None,
        "list": [1, 2.50, {"b": True, "a": []}], "empty": {},
    }  # fmt: skip
    await record_act(uow, tenant, Change("source", "src_1", "create", {}, odd))
    await record_act(uow, tenant, *[build_change(n, n + 1, f"src_{n}") for n in range(5)], call=BOT)
    async with uow.begin(tenant, ANNA) as tx:
        tx.is_dry_run = True
        await tx[AuditLog].add(build_change("a", "b"))
    async with uow.begin(tenant, ANNA) as tx:
        with pytest.raises(LookupError):
            async with tx.savepoint():
                await tx[AuditLog].add(build_change("a", "lost"))
                raise LookupError
        await tx[AuditLog].add(build_change("a", "b"))
    assert await count_faults(uow, tenant) == (7, 0)
    assert await count_faults(uow, Tenant(tenant.org, False)) == (0, 0), "each mode has its own"


async def test_an_act_contains_all_changes_of_a_transaction(uow: UnitOfWork, tenant: Tenant) -> None:
    act = await record_act(uow, tenant, build_change(1, 2), build_change(1, 2, "src_2"), call=BOT)
    other = await record_act(uow, tenant, build_change(2, 3))
    async with uow.begin_reading(tenant) as tx:
        both, alone = await tx[AuditLog].list_entries_of_acts([act]), await tx[AuditLog].get(other)
        assert await tx[AuditLog].get(act) == both[0]
        assert await tx[AuditLog].get("aud_0") is None
    assert alone is not None
    assert [(entry.act, entry.change.id, entry.sequence) for entry in both] == [(act, "src_1", 1), (act, "src_2", 2)]
    assert (alone.act, alone.sequence, alone.context) == (other, 3, ANNA)
    assert both[0].context == BOT


async def test_lists_are_filtered(backend: Backend, tenant: Tenant) -> None:
    uow = backend.uow
    began = backend.now()
    first = await record_act(uow, tenant, build_change(1, 2))
    second = await record_act(uow, tenant, build_change(1, 2, "src_2"), call=BOT)
    third = await record_act(uow, tenant, Change("webhook_endpoint", "whe_1", "delete", {"url": "x"}, {}), call=BOT)
    fourth = await record_act(uow, tenant, build_change(2, 3, "src_2"))
    ids = {first: 1, second: 2, third: 3, fourth: 4}

    async def shown(**given: Any) -> list[int]:
        return [ids[one] for one in await list_entry_ids(uow, tenant, AuditFilter(**given))]

    assert await shown() == [4, 3, 2, 1]
    assert await shown(actor="agt_bot") == [3, 2]
    assert await shown(action="sources.update") == [4, 1]
    assert await shown(object="webhook_endpoint") == [3]
    assert await shown(target="src_2") == [4, 2]
    assert await shown(reversible=True) == [4, 1]
    assert await shown(target="src_2", actor="agt_bot") == [2]
    assert await shown(actor="usr_anna", object="source", reversible=True) == [4, 1]
    assert await shown(action="sources.update", object="webhook_endpoint") == []
    assert await shown(since=began - timedelta(seconds=9), until=backend.now() + timedelta(seconds=9)) == [4, 3, 2, 1]
    assert await shown(since=backend.now() + timedelta(seconds=9), actor="agt_bot") == []
    assert await shown(until=began - timedelta(seconds=9), object="source") == []
    for given in ({}, {"object": "source", "reversible": True}):
        every = await list_entry_ids(uow, tenant, AuditFilter(**given))
        assert await list_entry_ids(uow, tenant, AuditFilter(**given), limit=1, key=every[0]) == every[1:2]
        assert (
            await list_entry_ids(uow, tenant, AuditFilter(**given), limit=1, key=every[1], backwards=True) == every[:1]
        )


async def test_later_entries_depend_on_earlier_ones(uow: UnitOfWork, tenant: Tenant) -> None:
    async def standing(*acts: str) -> Mapping[str, str]:
        async with uow.begin_reading(tenant) as tx:
            return await tx[AuditLog].find_dependents(await tx[AuditLog].list_entries_of_acts(acts))

    first = await record_act(uow, tenant, build_change("a", "b"))
    elsewhere = await record_act(uow, tenant, build_change("a", "b", "src_2"))
    await record_act(uow, tenant, build_change(1, 2, field="status"))
    assert await standing(first, elsewhere) == {}
    second = await record_act(uow, tenant, build_change("b", "c"))
    assert await standing(first, second, elsewhere) == {first: second}
    undoing = await record_act(uow, tenant, build_change("c", "b"), undoing=second)
    assert await standing(first, undoing) == {}, "a change and its undo cancel out"
    again = await record_act(uow, tenant, build_change("b", "c"), undoing=undoing)
    assert await standing(first, again) == {first: again}, "a repeated change is in effect"
    await record_act(uow, tenant, build_change("c", "b"), undoing=again)
    assert await standing(first) == {}
    gone = await record_act(uow, tenant, Change("source", "src_1", "delete", {"name": "b"}, {}))
    assert await standing(first) == {first: gone}, "a deletion touches every field"
    async with uow.begin_reading(tenant) as tx:
        assert (await tx[AuditLog].find_undoing_acts([first, second, undoing])).keys() == {second, undoing}


async def test_an_act_is_undone_once(uow: UnitOfWork, tenant: Tenant) -> None:
    act = await record_act(uow, tenant, build_change("a", "b"))

    async def undo() -> bool:
        try:
            await record_act(uow, tenant, build_change("b", "a"), undoing=act)
        except DomainError as error:
            assert error.code == "conflict"
            return False
        return True

    assert sum(await asyncio.gather(*(undo() for _ in range(4)))) == 1
    assert await count_faults(uow, tenant) == (2, 0)


async def test_encrypted_values_are_stored_for_their_entry(backend: Backend, tenant: Tenant) -> None:
    async with backend.uow.begin(tenant, ANNA) as tx:
        entry = await tx[AuditLog].add(build_change("a", "b"))
        await tx[AuditLog].store_sealed(entry, b"sealed")
    async with backend.uow.begin_reading(tenant) as tx:
        assert await tx[AuditLog].get_sealed(entry) == b"sealed"
        assert await tx[AuditLog].get_sealed("aud_0") is None
        found = await tx[AuditLog].get(entry)
    assert found is not None
    assert found.has_sealed
    assert await count_faults(backend.uow, tenant) == (1, 0)
    async with backend.uow.begin_reading(await backend.tenant()) as tx:
        assert await tx[AuditLog].get_sealed(entry) is None


async def test_concurrent_writers_extend_one_chain(uow: UnitOfWork, tenant: Tenant) -> None:
    async def write(writer: int) -> None:
        for turn in range(6):
            await record_act(uow, tenant, *[build_change(turn, turn + 1, f"src_{writer}") for _ in range(1 + turn % 3)])

    await asyncio.gather(*(write(writer) for writer in range(8)))
    assert await count_faults(uow, tenant) == (8 * 12, 0)
