"""Contract of every declared table (ports/unit_of_work.py), without knowledge of a particular one."""

from dataclasses import fields, make_dataclass, replace
from typing import Any

import pytest

from adapters.postgres.table import Table, TableStore
from adapters.postgres.unit_of_work import PORTS_BY_TYPE, TABLES
from domain.kernel.errors import NotFound, PreconditionFailed
from domain.kernel.paging import Filter, Page, PageRequest
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import Store, Tx, UnitOfWork
from tests.support import builders, filters
from tests.support.backend import Backend
from tests.support.pagination import check_insertions, check_pagination
from tests.support.samples import FROM_LATER, build_sample

pytestmark = [pytest.mark.asyncio, pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)]
CALL = builders.CALL


def _get_id(row: Any) -> str:
    return str(row.id)


def get_store(tx: Any, table: Table[Any]) -> Store[Any]:
    """Return the table's own store if it has the generic methods, otherwise a generic one."""
    port = PORTS_BY_TYPE.get(table.kind)
    if port is None:
        plain: Store[Any] = tx.store(table.kind)
        return plain
    own = tx[port]
    if isinstance(own, TableStore):
        return own
    return TableStore(tx.session, table)


def create_rows(table: Table[Any], count: int) -> list[Any]:
    return [build_sample(table.kind, number) for number in range(count)]


def drop_computed_fields(table: Table[Any], row: Any) -> Any:
    """Return the row without computed fields, which are not stored."""
    return row and replace(row, **dict.fromkeys(table.expression_by_field))


def drop_unlisted_fields(table: Table[Any], row: Any) -> Any:
    """Return the row without fields that lists do not read."""
    return replace(row, **dict.fromkeys((*table.expression_by_field, *table.list_expression_by_field)))


async def read_page(tx: Tx, table: Table[Any], request: PageRequest) -> Page[Any]:
    page = await get_store(tx, table).page(request)
    return replace(page, items=tuple(drop_unlisted_fields(table, row) for row in page.items))


async def add_rows(uow: UnitOfWork, tenant: Tenant, table: Table[Any], *made: Any) -> None:
    async with uow.begin(tenant, CALL) as tx:
        for row in made:
            await get_store(tx, table).add(row)


async def test_keeps_every_field(uow: UnitOfWork, tenant: Tenant, table: Table[Any]) -> None:
    for row in create_rows(table, 2):
        await add_rows(uow, tenant, table, row)
        async with uow.begin_reading(tenant) as tx:
            found = await get_store(tx, table).get(row.id)
            assert drop_computed_fields(table, found) == drop_computed_fields(table, row)
            assert {field.name: type(getattr(found, field.name)) for field in fields(row)} == {
                field.name: type(getattr(row, field.name)) for field in fields(row)
            }


async def test_keeps_values_of_a_later_release(uow: UnitOfWork, tenant: Tenant, table: Table[Any]) -> None:
    """After a rollback to the previous release, values of the later one are read and kept."""
    row = build_sample(table.kind, FROM_LATER)
    await add_rows(uow, tenant, table, row)
    async with uow.begin(tenant, CALL) as tx:
        found = await get_store(tx, table).get(row.id)
        assert drop_computed_fields(table, found) == drop_computed_fields(table, row)
        await get_store(tx, table).save(found)
        assert drop_computed_fields(table, await get_store(tx, table).get(row.id)) == drop_computed_fields(table, row)


async def test_saves_every_field(uow: UnitOfWork, tenant: Tenant, table: Table[Any]) -> None:
    row, other = create_rows(table, 2)
    await add_rows(uow, tenant, table, row)
    changed = replace(other, id=row.id)
    async with uow.begin(tenant, CALL) as tx:
        assert drop_computed_fields(table, await get_store(tx, table).get(row.id, lock=True)) == drop_computed_fields(
            table, row
        )
        await get_store(tx, table).save(changed)
    async with uow.begin_reading(tenant) as tx:
        assert drop_computed_fields(table, await get_store(tx, table).get(row.id)) == drop_computed_fields(
            table, changed
        )


async def test_compares_versions(uow: UnitOfWork, tenant: Tenant, table: Table[Any]) -> None:
    [row] = create_rows(table, 1)
    if not hasattr(row, "version"):
        return
    await add_rows(uow, tenant, table, row)
    async with uow.begin(tenant, CALL) as tx:
        store = get_store(tx, table)
        with pytest.raises(PreconditionFailed):
            async with tx.savepoint():
                await store.save(row, expected_version=row.version + 1)
        await store.save(replace(row, version=row.version + 1), expected_version=row.version)
        found = await store.get(row.id)
        assert found is not None and found.version == row.version + 1


async def test_missing_rows_are_none(uow: UnitOfWork, tenant: Tenant, table: Table[Any]) -> None:
    [row] = create_rows(table, 1)
    async with uow.begin(tenant, CALL) as tx:
        store = get_store(tx, table)
        assert await store.get(row.id) is None
        assert not await store.remove(row.id)
        with pytest.raises(NotFound):
            async with tx.savepoint():
                await store.save(row)
        await store.add(row)
        assert await store.remove(row.id)
        assert await store.get(row.id, lock=True) is None


async def test_belongs_to_one_tenant_and_mode(backend: Backend, tenant: Tenant, table: Table[Any]) -> None:
    [row] = create_rows(table, 1)
    await add_rows(backend.uow, tenant, table, row)
    for other in (replace(tenant, livemode=False), await backend.tenant()):
        async with backend.uow.begin(other, CALL) as tx:
            store = get_store(tx, table)
            assert await store.get(row.id) is None
            assert await store.get(row.id, lock=True) is None
            assert (await store.page(PageRequest())).items == ()
            assert not await store.remove(row.id)
            with pytest.raises(NotFound):
                async with tx.savepoint():
                    await store.save(row)
    async with backend.uow.begin_reading(tenant) as tx:
        assert drop_computed_fields(table, await get_store(tx, table).get(row.id)) == drop_computed_fields(table, row)


@pytest.mark.parametrize("count", [0, 1, 2, 23])
async def test_pages_newest_first(uow: UnitOfWork, tenant: Tenant, table: Table[Any], count: int) -> None:
    made = create_rows(table, count)
    await add_rows(uow, tenant, table, *made)
    await add_rows(uow, replace(tenant, livemode=False), table, *create_rows(table, 1))
    async with uow.begin_reading(tenant) as tx:
        expected = [drop_unlisted_fields(table, row) for row in sorted(made, key=_get_id, reverse=True)]
        await check_pagination(lambda request: read_page(tx, table, request), expected, _get_id)


async def test_pages_are_stable_while_rows_are_added(uow: UnitOfWork, tenant: Tenant, table: Table[Any]) -> None:
    made = create_rows(table, 9)
    await add_rows(uow, tenant, table, *made)

    async def fetch(page_request: PageRequest) -> Page[Any]:
        async with uow.begin_reading(tenant) as tx:
            return await read_page(tx, table, page_request)

    async def insert() -> None:
        await add_rows(uow, tenant, table, *create_rows(table, 1))

    await check_insertions(
        fetch, insert, [drop_unlisted_fields(table, row) for row in sorted(made, key=_get_id, reverse=True)], _get_id
    )


async def test_filters_by_its_own_fields(uow: UnitOfWork, tenant: Tenant, table: Table[Any]) -> None:
    made = create_rows(table, 6)
    await add_rows(uow, tenant, table, *made)
    names = [
        name
        for name, value in list_fields(made[0]).items()
        if isinstance(value, str) and name not in table.expression_by_field
    ]
    kind = make_dataclass("Named", [(name, Any, None) for name in names], bases=(Filter,), frozen=True)
    async with uow.begin_reading(tenant) as tx:
        for name in names:
            wanted = kind(**{name: getattr(made[0], name)})
            page = await get_store(tx, table).page(PageRequest(), wanted)
            assert [row.id for row in page.items] == sorted(
                (row.id for row in made if filters.equals(wanted, row)), reverse=True
            )
            assert made[0].id in {row.id for row in page.items}


async def test_a_kind_has_one_store(uow: UnitOfWork, tenant: Tenant, table: Table[Any]) -> None:
    async with uow.begin_reading(tenant) as tx:
        if port := PORTS_BY_TYPE.get(table.kind):
            with pytest.raises(TypeError, match=port.__name__):
                tx.store(table.kind)
        else:
            assert tx.store(table.kind) is not None


def list_fields(row: Any) -> dict[str, Any]:
    """Return the row's fields."""
    return {field.name: getattr(row, field.name) for field in fields(row)}
