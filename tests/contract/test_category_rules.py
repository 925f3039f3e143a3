"""Category rules: counts of paths, lists of products by path, and reassignment of categories."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.catalogue import categories
from domain.catalogue.category_rules import CategoryRules, ProductCategory, RuleChange
from domain.catalogue.model import Product, ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.jobs.model import ClaimedJob
from domain.jobs.ports import JobStore
from domain.kernel.errors import LeaseLost
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.runs.model import Run, RunStatus, RunTrigger
from domain.runs.ports import RunStore
from domain.runs.run_queue import REASSIGN_CATEGORIES, new_execution_job, new_run
from domain.runs.usecases import category_rules
from domain.runs.usecases.category_rules import CategoryReassignment
from domain.sources.ports import SourceStore
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.backend import Backend
from tests.support.catalogues import add_products

pytestmark = pytest.mark.asyncio
CALL = builders.CALL
CHAIRS, SOFAS = (
    next(entry.id for entry in categories.category_by_id().values() if entry.slug == slug)
    for slug in ("chairs", "sofas")
)
SOURCE, OTHER = "src_0000000000000000000001", "src_0000000000000000000002"


def _build_product(key: str, *path: str, source: str = SOURCE, stated: str | None = None, **data: Any) -> Product:
    data = {"title": key, **({"category_path": list(path)} if path else {}), **data}
    return builders.product(source, "cat_1", key, data=data, stated_category=stated)


async def test_paths_are_counted_by_source_in_descending_order(uow: UnitOfWork, tenant: Tenant) -> None:
    await add_products(
        uow,
        tenant,
        _build_product("1", "A", "B"),
        _build_product("2", "A", "B"),
        _build_product("3", "Ä\tß"),
        _build_product("4"),
    )
    await add_products(uow, tenant, _build_product("1", "A", source=OTHER))
    async with uow.begin_reading(tenant) as tx:
        found = await tx[CatalogueStore].list_category_paths(SOURCE, 10, 100)
        assert (found.product_count_by_path, found.omitted_count) == ({("A", "B"): 2, ("Ä\tß",): 1}, 0)
        few = await tx[CatalogueStore].list_category_paths(SOURCE, 1, 100)
        assert (few.product_count_by_path, few.omitted_count) == ({("A", "B"): 2}, 1)
        short = await tx[CatalogueStore].list_category_paths(SOURCE, 10, 12)  # `["A","B"]` has 9
        assert (short.product_count_by_path, short.omitted_count) == ({("A", "B"): 2}, 1)
        assert (await tx[CatalogueStore].list_category_paths("src_3", 1, 100)).product_count_by_path == {}
    async with uow.begin_reading(Tenant(tenant.org, not tenant.livemode)) as tx:
        assert (await tx[CatalogueStore].list_category_paths(SOURCE, 10, 100)).product_count_by_path == {}


async def test_product_categories_are_listed_by_id(uow: UnitOfWork, tenant: Tenant) -> None:
    first, second = _build_product("1", "A", category=CHAIRS, stated=SOFAS), _build_product("2")
    await add_products(uow, tenant, first, second)
    await add_products(uow, tenant, _build_product("1", "A", source=OTHER))
    expected = sorted(
        [ProductCategory(first.id, "1", ("A",), CHAIRS, SOFAS), ProductCategory(second.id, "2", (), None, None)]
    )
    async with uow.begin_reading(tenant) as tx:
        assert await tx[CatalogueStore].list_product_categories(SOURCE, "", 10) == expected
        assert await tx[CatalogueStore].list_product_categories(SOURCE, "", 1) == expected[:1]
        assert await tx[CatalogueStore].list_product_categories(SOURCE, expected[0].id, 10) == expected[1:]
    async with uow.begin(tenant, CALL) as tx:
        assert (await tx[CatalogueStore].load_products(SOURCE, ["1"]))["1"].stated_category == SOFAS


async def _queue_run(uow: UnitOfWork, tenant: Tenant, *changes: RuleChange) -> Run:
    """Save the rules of the source and queue the run that reassigns its products."""
    source = builders.source(id=SOURCE)
    async with uow.begin(tenant, CALL) as tx:
        if await tx[SourceStore].get(SOURCE) is None:
            await tx[SourceStore].add(source)
            await tx.store(CategoryRules).add(CategoryRules(SOURCE, tx.now, tx.now))
        rules = await tx.store(CategoryRules).get(SOURCE, lock=True)
        assert rules is not None
        await tx.store(CategoryRules).save(rules.with_changes(tx.now, changes))
        run = new_run(SOURCE, RunTrigger.CATEGORY_RULES, tx.now)
        await tx[RunStore].add(run)
        await tx[JobStore].add(new_execution_job(run, tenant))
    return run


async def _claim_job(backend: Backend, tenant: Tenant) -> ClaimedJob:
    [job] = await backend.dispatch.claim(f"{tenant.org}/source:{SOURCE}", 1, timedelta(seconds=30))
    assert job.kind == REASSIGN_CATEGORIES
    return job


async def _run_reassignment(backend: Backend, tenant: Tenant, run: Run) -> Run:
    await CategoryReassignment(backend.uow)(await _claim_job(backend, tenant), asyncio.Event())
    async with backend.uow.begin_reading(tenant) as tx:
        return await tx[RunStore].get(run.id) or run


async def test_reassignment_writes_only_changed_products_in_batches(
    backend: Backend, tenant: Tenant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(category_rules, "READ_BATCH", 4)
    monkeypatch.setattr(category_rules, "WRITE_BATCH", 2)
    uow = backend.uow
    await add_products(
        uow, tenant, *(_build_product(str(number), "A", "B") for number in range(7)), _build_product("other", "C")
    )
    run = await _run_reassignment(backend, tenant, await _queue_run(uow, tenant, RuleChange(("A",), CHAIRS)))
    assert (run.status, run.stats, run.snapshot) == (RunStatus.SUCCEEDED, {"products_changed": 7}, None)
    async with uow.begin_reading(tenant) as tx:
        loaded = await tx[CatalogueStore].list_product_categories(SOURCE, "", 100)
        assert [one.category for one in loaded if one.path == ("A", "B")] == [CHAIRS] * 7
        page = await tx[CatalogueStore].list_products(ProductFilter(category=[CHAIRS]), PageRequest(100))
        assert len(page.items) == 7 and all(CHAIRS.encode() in document.body for document in page.items)
    again = await _run_reassignment(backend, tenant, await _queue_run(uow, tenant))
    assert again.stats == {"products_changed": 0}
    gone = await _run_reassignment(backend, tenant, await _queue_run(uow, tenant, RuleChange(("A",), None)))
    assert gone.stats == {"products_changed": 7}
    async with uow.begin_reading(tenant) as tx:
        assert not (await tx[CatalogueStore].list_products(ProductFilter(category=[CHAIRS]), PageRequest(100))).items


async def test_a_worker_that_lost_its_lease_writes_nothing_more(backend: Backend, tenant: Tenant) -> None:
    await add_products(backend.uow, tenant, _build_product("1", "A"))
    await _queue_run(backend.uow, tenant, RuleChange(("A",), CHAIRS))
    job = await _claim_job(backend, tenant)
    with pytest.raises(LeaseLost):
        await CategoryReassignment(backend.uow)(replace(job, attempt=job.attempt - 1), asyncio.Event())
    async with backend.uow.begin_reading(tenant) as tx:
        assert [one.category for one in await tx[CatalogueStore].list_product_categories(SOURCE, "", 10)] == [None]


async def test_a_repeatedly_failing_run_ends(backend: Backend, tenant: Tenant, monkeypatch: pytest.MonkeyPatch) -> None:
    await add_products(backend.uow, tenant, _build_product("1", "A"))
    run = await _queue_run(backend.uow, tenant, RuleChange(("A",), CHAIRS))
    job = await _claim_job(backend, tenant)
    monkeypatch.setattr(category_rules, "READ_BATCH", "many")  # unexpected failure
    with pytest.raises(Exception):  # noqa: B017  any error of the store
        await CategoryReassignment(backend.uow)(job, asyncio.Event())
    monkeypatch.setattr(category_rules, "MAX_ATTEMPTS", job.attempt)
    await CategoryReassignment(backend.uow)(job, asyncio.Event())
    async with backend.uow.begin_reading(tenant) as tx:
        ended = await tx[RunStore].get(run.id)
        assert ended and ended.error and (ended.status, ended.error.code) == ("failed", "internal_error")
        assert await tx[RunStore].find_last_succeeded_or_failed(SOURCE, ended.stream) is None


async def test_rules_belong_to_one_tenant(uow: UnitOfWork, tenant: Tenant) -> None:
    await _queue_run(uow, tenant, RuleChange(("A",), CHAIRS))
    async with uow.begin_reading(Tenant(tenant.org, not tenant.livemode)) as tx:
        assert await tx.store(CategoryRules).get(SOURCE) is None
