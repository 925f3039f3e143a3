"""Console reads that the API does not have: filter values, the log of a product's offers, daily counts of runs."""

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from adapters.api_json.events import JsonEventRendering
from domain.catalogue import categories, search_terms
from domain.catalogue.completions import complete_query
from domain.catalogue.filter_counts import FilterCounts, list_most_frequent
from domain.catalogue.model import Product, ProductFilter
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.service import CatalogueService
from domain.changes.usecases.log_tailer import LogTailer
from domain.changes.usecases.service import ChangesService
from domain.events.model import FieldChange
from domain.events.ports import EventLog
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.runs.model import RunDay
from domain.runs.ports import RunStore
from tests.support import builders
from tests.support.backend import Backend
from tests.support.catalogues import add_products, random_product

pytestmark = pytest.mark.asyncio


async def _count_values(backend: Backend, tenant: Tenant, **filter: object) -> FilterCounts:
    async with backend.uow.begin_reading(tenant) as tx:
        return await tx[CatalogueStore].count_filter_values(ProductFilter(**filter))


def _count_expected(products: list[Product], value: object) -> dict[str, int]:
    found: dict[str, int] = {}
    for product in products:
        for one in value(product):
            found[one] = found.get(one, 0) + 1
    return found


async def test_counts_state_how_a_list_can_be_filtered(backend: Backend, tenant: Tenant) -> None:
    dice, source, catalogue = random.Random(7), new_id("src"), new_id("cat")
    made = [random_product(dice, source, catalogue, f"k{n}") for n in range(40)]
    kept = await add_products(backend.uow, tenant, *made)
    counts = await _count_values(backend, tenant)
    assert counts.counted_products == 40 and counts.is_complete
    assert dict(counts.statuses) == _count_expected(kept, lambda one: [str(one.status)])
    assert dict(counts.availabilities) == _count_expected(kept, search_terms.list_availabilities)
    assert list(counts.categories) == list(
        list_most_frequent(_count_expected(kept, lambda one: categories.path_ids(one.data.get("category"))))
    )
    assert dict(counts.sources) == {source: 40}
    keys = _count_expected(
        kept, lambda one: [search_terms.normalise_brand(one.data["brand"])] if one.data.get("brand") else []
    )
    assert {search_terms.normalise_brand(brand): count for brand, count in counts.brands} == keys
    for name, expected in (
        ("brand", counts.brands),
        ("status", counts.statuses),
        ("availability", counts.availabilities),
        ("category", counts.categories),
    ):
        for value, count in expected:
            given = value if name == "brand" else [value]
            assert (await _count_values(backend, tenant, **{name: given})).counted_products == count, (name, value)
    assert (await _count_values(backend, tenant, q="oak table", status=["active"])).is_complete
    assert (await _count_values(backend, tenant, catalogue=new_id("cat"))).counted_products == 0


async def test_prefixes_are_completed_to_existing_words(backend: Backend, tenant: Tenant) -> None:
    source, catalogue = new_id("src"), new_id("cat")
    titles = ("Oak table", "Oaken chair", "Oakley lamp", "Pine tabouret")
    made = [
        builders.product(source, catalogue, f"k{n}", data={"title": title, "brand": "Öak"})
        for n, title in enumerate(titles)
    ]
    for number, product in enumerate(made):
        builders.variant(product, f"v{number}", data={"sku": f"LM-10{number}", "mpn": f"M{number}"})
    kept = await add_products(backend.uow, tenant, *made)
    async with backend.uow.begin_reading(tenant) as tx:
        service = CatalogueService()
        assert list((await service.find_completions(tx, "oak")).words) == ["oaken", "oakley"]
        typed = await service.find_completions(tx, "Pine TAB")
        assert list(typed.words) == ["table", "tabouret"] and complete_query("Pine TAB", typed) == [
            "pine table",
            "pine tabouret",
        ]
        assert (
            not (await service.find_completions(tx, "oak ")).words
            and not (await service.find_completions(tx, "")).words
        )
        assert list((await service.find_completions(tx, "lm-10")).variants) == [one.variants[0].id for one in kept]
        assert list((await service.find_completions(tx, "LM 102")).variants) == [kept[2].variants[0].id]
        assert not (await service.find_completions(tx, "lm")).variants
    async with backend.uow.begin_reading(Tenant(tenant.org, not tenant.livemode)) as tx:
        assert (
            not (await service.find_completions(tx, "oak")).words
            and not (await service.find_completions(tx, "lm10")).variants
        )


async def test_a_products_log_contains_its_offers_events_in_order(backend: Backend, tenant: Tenant) -> None:
    mine, other = new_id("prod"), new_id("prod")
    events = [
        builders.event(new_id("ofr"), type="offer.changed", data={"product": mine if n % 3 else other})
        for n in range(12)
    ]
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[EventLog].append(events)
    changes = ChangesService(backend.events, LogTailer(backend.events, JsonEventRendering(), backend.signals))
    history = await changes.find_product_history(tenant, [mine])
    assert [one.id for one in history.events] == [
        one.id for one in events if one.product == mine
    ] and history.is_complete
    newest = await changes.find_product_history(tenant, [mine], 3)
    assert [one.id for one in newest.events] == [one.id for one in history.events][-3:] and not newest.is_complete
    assert not (await changes.find_product_history(Tenant(tenant.org, not tenant.livemode), [mine])).events


async def test_changes_of_prices_are_counted_by_source(backend: Backend, tenant: Tenant) -> None:
    first, second = new_id("src"), new_id("src")
    changes = [(first, "price"), (first, "cost"), (first, "quantity"), (second, "msrp"), (None, "price")]
    events = [
        builders.event(
            new_id("ofr"),
            type="offer.changed",
            source=source,
            data={"title": '"path":"price"'},
            fields=(FieldChange(path, 1, 2), FieldChange("quantity", 1, 2)),
        )
        for source, path in changes
    ]
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[EventLog].append(events)
    service = ChangesService(backend.events, LogTailer(backend.events, JsonEventRendering(), backend.signals))
    counted = await service.count_price_changes(tenant, backend.now() - timedelta(hours=1))
    assert dict(counted.by_source) == {first: 2, second: 1} and counted.is_complete
    assert not (await service.count_price_changes(tenant, backend.now() + timedelta(hours=2))).by_source
    assert not (await service.count_price_changes(await backend.tenant(), backend.now() - timedelta(hours=1))).by_source


async def test_daily_counts_state_how_runs_ended(backend: Backend, tenant: Tenant) -> None:
    source, now = new_id("src"), builders.MOMENT
    made = [
        builders.run(source, status=status, trigger=trigger, created_at=now - timedelta(days=days))
        for status, trigger, days in (
            ("succeeded", "schedule", 0), ("failed", "manual", 0), ("failed", "schedule", 2), ("succeeded", "stock_check", 2),
            ("cancelled", "manual", 1), ("succeeded", "schedule", 30),
        )
    ]  # fmt: skip
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        for run in made:
            await tx[RunStore].add(replace(run, stream="stock" if run.status == "failed" else "catalogue"))
    async with backend.uow.begin_reading(tenant) as tx:
        days = await tx[RunStore].count_by_day(now - timedelta(days=14))
    assert list(days) == [RunDay(source, (now - timedelta(days=2)).date(), 0, 1), RunDay(source, now.date(), 1, 1)]
