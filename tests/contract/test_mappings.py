"""Column mappings (domain/mappings/ports.py)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.ingestion.mapping.learned import ConfirmedMapping, compute_header_digest
from domain.ingestion.model import Column, MappingTier, UnmappedColumn, UnmappedReason
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.mappings.model import MappingFilter, MappingStatus, SourceMapping
from domain.mappings.ports import MappingStore
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.pagination import check_insertions, check_pagination

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
NOW = builders.MOMENT


def _get_id(mapping: SourceMapping) -> str:
    return mapping.id


def _build_mapping(source: str, *headers: str, minutes: int = 0) -> SourceMapping:
    moment = NOW + timedelta(minutes=minutes)
    return builders.mapping(source, *headers, status=MappingStatus.CONFIRMED, confirmed_at=moment)


def _build_confirmed_mapping(mapping: SourceMapping, own: bool) -> ConfirmedMapping:
    return ConfirmedMapping(mapping.digest, own, mapping.headers, mapping.columns, mapping.unmapped)


async def _add_mappings(uow: UnitOfWork, tenant: Tenant, *mappings: SourceMapping) -> None:
    async with uow.begin(tenant, CALL) as tx:
        for mapping in mappings:
            await tx[MappingStore].add(mapping)


async def _list_ids(uow: UnitOfWork, tenant: Tenant, source: str) -> set[str]:
    async with uow.begin_reading(tenant) as tx:
        return {one.id for one in (await tx[MappingStore].page(PageRequest(limit=100), MappingFilter(source))).items}


async def test_keeps_every_field(uow: UnitOfWork, tenant: Tenant) -> None:
    mapping = builders.mapping(
        "src_1", "Maß (cm)", "", "Maß (cm)",
        samples=(("31", "", "ä"), ("", "{}", '"')),
        columns=(
            Column(0, "Maß (cm)", "dimensions.width", {"unit": "cm", "fallback": "1"}, MappingTier.FUZZY, confidence=0.4),
            Column(
                2, "Maß (cm)", "media", {}, MappingTier.PERSON, prefix=True, values={"n/a": ""}, ignored_problems=("missing",)
            ),
        ),
        unmapped=(UnmappedColumn(1, "", UnmappedReason.EMPTY),),
        stream="stock", confirmed_at=NOW + timedelta(microseconds=3),
    )  # fmt: skip
    await _add_mappings(uow, tenant, mapping)
    async with uow.begin_reading(tenant) as tx:
        assert await tx[MappingStore].get(mapping.id) == mapping


async def test_a_header_set_has_one_mapping(uow: UnitOfWork, tenant: Tenant) -> None:
    await _add_mappings(
        uow, tenant, builders.mapping("src_1", "A"), builders.mapping("src_1", "B"), builders.mapping("src_2", "A")
    )
    with pytest.raises(Conflict):
        await _add_mappings(uow, tenant, builders.mapping("src_1", "A"))


async def test_mappings_are_found_by_headers(uow: UnitOfWork, tenant: Tenant) -> None:
    first, second = builders.mapping("src_1", "A"), builders.mapping("src_1", "B")
    await _add_mappings(uow, tenant, first, second, builders.mapping("src_2", "A"))
    async with uow.begin(tenant, CALL) as tx:
        found = await tx[MappingStore].lock_by_digest(
            "src_1", [compute_header_digest(("A",)), compute_header_digest(("C",))]
        )
        assert list(found) == [first]
        assert list(await tx[MappingStore].lock_by_digest("src_1", [])) == []
        await tx[MappingStore].save(replace(first, status=MappingStatus.CONFIRMED, confirmed_at=NOW))
    async with uow.begin_reading(tenant) as tx:
        assert (await tx[MappingStore].get(first.id)).status == "confirmed"


async def test_confirmed_mappings_are_listed_own_first_and_newest_first(uow: UnitOfWork, tenant: Tenant) -> None:
    own = [_build_mapping("src_1", f"A{n}", minutes=n) for n in (2, 0, 1)]
    others = [_build_mapping(f"src_{n}", "A1", minutes=9 - n) for n in (2, 3, 4)]
    await _add_mappings(uow, tenant, *own, *others, builders.mapping("src_1", "B"), builders.mapping("src_2", "B"))
    async with uow.begin_reading(tenant) as tx:
        assert list(await tx[MappingStore].list_confirmed("src_1", 10)) == [
            _build_confirmed_mapping(own[0], True), _build_confirmed_mapping(own[2], True), _build_confirmed_mapping(own[1], True),
            *(_build_confirmed_mapping(other, False) for other in others),
        ]  # fmt: skip
        assert list(await tx[MappingStore].list_confirmed("src_1", 1)) == [
            _build_confirmed_mapping(own[0], True),
            _build_confirmed_mapping(others[0], False),
        ]
        assert [one.is_own for one in await tx[MappingStore].list_confirmed("src_9", 2)] == [False, False]


async def test_pruning_keeps_the_newest_and_confirmed_mappings(uow: UnitOfWork, tenant: Tenant) -> None:
    ids = sorted(new_id("map") for _ in range(6))
    mappings = [builders.mapping("src_1", f"A{n}", id=id) for n, id in enumerate(ids)]
    mappings[1] = _build_mapping("src_1", "A1")
    mappings[1] = replace(mappings[1], id=ids[1])
    other = builders.mapping("src_2", "A0")
    await _add_mappings(uow, tenant, *mappings, other)
    async with uow.begin(tenant, CALL) as tx:
        await tx[MappingStore].prune("src_1", 9)
        await tx[MappingStore].prune("src_1", 3)
    assert await _list_ids(uow, tenant, "src_1") == {ids[1], *ids[3:]}
    assert await _list_ids(uow, tenant, "src_2") == {other.id}


async def test_belongs_to_one_tenant_and_mode(backend: Backend, tenant: Tenant) -> None:
    mapping = _build_mapping("src_1", "A")
    await _add_mappings(backend.uow, tenant, mapping)
    for other in (replace(tenant, livemode=False), await backend.tenant()):
        async with backend.uow.begin(other, CALL) as tx:
            assert await tx[MappingStore].get(mapping.id) is None
            assert list(await tx[MappingStore].lock_by_digest("src_1", [mapping.digest])) == []
            assert (
                list(await tx[MappingStore].list_confirmed("src_1", 9))
                == list(await tx[MappingStore].list_confirmed("src_2", 9))
                == []
            )
            await tx[MappingStore].prune("src_1", 0)
        await _add_mappings(backend.uow, other, builders.mapping("src_1", "A"))
    assert await _list_ids(backend.uow, tenant, "src_1") == {mapping.id}


async def test_pages_newest_first(uow: UnitOfWork, tenant: Tenant) -> None:
    mappings = [builders.mapping("src_1", f"A{n}") for n in range(9)]
    await _add_mappings(uow, tenant, *mappings, builders.mapping("src_2", "A"))
    numbers = iter(range(100, 200))

    async def fetch(page_request: PageRequest) -> Page[SourceMapping]:
        async with uow.begin_reading(tenant) as tx:
            return await tx[MappingStore].page(page_request, MappingFilter("src_1"))

    async def insert() -> None:
        number = next(numbers)
        await _add_mappings(
            uow, tenant, builders.mapping("src_1", f"A{number}"), builders.mapping("src_2", f"A{number}")
        )

    expected = sorted(mappings, key=_get_id, reverse=True)
    await check_pagination(fetch, expected, _get_id)
    await check_insertions(fetch, insert, expected, _get_id)
