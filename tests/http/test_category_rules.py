"""Category rules over HTTP: what is refused, what is kept, and what a dry run leaves."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from domain.catalogue import categories
from domain.runs.ports import RunStore
from tests.http.fakes import OPERATOR
from tests.http.sources import FILE_SOURCE, Shop, shop
from tests.support import builders
from tests.support.catalogues import add_products

pytestmark = pytest.mark.asyncio
CHAIRS, SOFAS = (
    next(entry.id for entry in categories.category_by_id().values() if entry.slug == slug)
    for slug in ("chairs", "sofas")
)


@pytest_asyncio.fixture(name="shop")
async def running_shop() -> AsyncIterator[Shop]:
    """A running application."""
    async with shop() as made:
        yield made


async def _source(shop: Shop) -> Any:
    """A source with two products."""
    source = await shop.create(**FILE_SOURCE)
    paths = (["Furniture", "Sofas"], ["Furniture", "Odd"])
    made = [
        builders.product(source["id"], source["catalogue"], f"P{number}", data={"title": "A", "category_path": path})
        for number, path in enumerate(paths)
    ]
    await add_products(shop.world.uow, shop.tenant, *made)
    return source


def _rule(category: str | None, *path: str) -> dict[str, Any]:
    return {"path": list(path), "category": category}


async def _post(shop: Shop, source: Any, *rules: Any, status: int = 200, **headers: str) -> Any:
    answer = await shop.client.post(f"/v1/sources/{source['id']}/categories", {"rules": list(rules)}, **headers)
    assert answer.status == status, answer.body
    return answer.json()


async def _get(shop: Shop, source: Any) -> Any:
    answer = await shop.client.get(f"/v1/sources/{source['id']}/categories")
    assert answer.status == 200, answer.body
    return answer.json()


async def _end(shop: Shop, id: str) -> None:
    async with shop.world.uow.begin(shop.tenant, OPERATOR) as tx:
        run = await tx[RunStore].get(id)
        await tx[RunStore].save(run.with_end("succeeded", tx.now))


async def test_paths_with_suggestions(shop: Shop) -> None:
    source = await _source(shop)
    shown = {"object": "source_category", "products": 1}
    suggested = {"id": SOFAS, "path": ["Seating", "Sofas"]}
    assert await _get(shop, source) == {
        "object": "category_rules",
        "left_out": 0,
        "categories": [
            shown | {"path": ["Furniture"], "products": 2},
            shown | {"path": ["Furniture", "Odd"]},
            shown | {"path": ["Furniture", "Sofas"]} | {"suggestion": suggested},
        ],
    }


async def test_rules_are_kept_and_a_run_is_queued(shop: Shop) -> None:
    source = await _source(shop)
    answer = await _post(shop, source, _rule(CHAIRS, "Furniture", "Odd"), _rule(SOFAS, "Nobody has this"))
    assert answer["run"]["trigger"] == "category_rules" and answer["run"]["status"] == "queued"
    [job] = shop.jobs()
    assert (job.kind, job.lane) == ("runs.refile", f"source:{source['id']}")
    rules = {tuple(one["path"]): one.get("rule", {}).get("id") for one in (await _get(shop, source))["categories"]}
    assert rules == {
        ("Nobody has this",): SOFAS,
        ("Furniture",): None,
        ("Furniture", "Odd"): CHAIRS,
        ("Furniture", "Sofas"): None,
    }
    [entry] = [entry for entry in (await shop.audited(source["id"])) if entry.change.object == "category_rules"]
    assert entry.change.after["rules"][0] == {"path": ["Furniture", "Odd"], "category": CHAIRS}
    assert [entry.change.action for entry in (await shop.audited(answer["run"]["id"]))] == ["create"]


async def test_rules_are_removed_by_null(shop: Shop) -> None:
    source = await _source(shop)
    await _end(shop, (await _post(shop, source, _rule(CHAIRS, "Furniture"), _rule(SOFAS, "Gone")))["run"]["id"])
    answer = await _post(shop, source, _rule(None, "Gone"), _rule(None, "Never there"))
    assert [one["path"] for one in answer["categories"]] == [
        ["Furniture"],
        ["Furniture", "Odd"],
        ["Furniture", "Sofas"],
    ]
    assert [one["inherited"]["id"] for one in answer["categories"][1:]] == [CHAIRS, CHAIRS]


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        ([_rule("ctg_0000000000000000000000", "A")], 422),
        ([_rule(CHAIRS, "A"), _rule(SOFAS, "A")], 400),
        ([_rule(CHAIRS)], 400),
        ([_rule(CHAIRS, "")], 400),
        ([_rule(CHAIRS, "A\0")], 400),
        ([_rule(CHAIRS, *("A",) * 21)], 400),
        ([_rule("prod_0000000000000000000000", "A")], 400),
        ([{"path": ["A"]}], 400),
        ([], 400),
        ([_rule(CHAIRS, f"A{number}") for number in range(1_001)], 400),
    ],
)
async def test_bad_rules_are_refused(shop: Shop, rules: list[Any], status: int) -> None:
    source = await _source(shop)
    await _post(shop, source, *rules, status=status)
    assert shop.jobs() == [] and all("rule" not in one for one in (await _get(shop, source))["categories"])


@pytest.mark.parametrize("status", ["paused", "disabled", "blocked"])
async def test_a_source_that_is_not_active_keeps_its_rules(shop: Shop, status: str) -> None:
    source = await _source(shop)
    await shop.change(source["id"], status=status)
    await _post(shop, source, _rule(CHAIRS, "Furniture"), status=409)
    assert "rule" not in (await _get(shop, source))["categories"][0]


async def test_rules_wait_for_the_end_of_a_run_of_any_stream(shop: Shop) -> None:
    source = await _source(shop)
    run = builders.run(source["id"], stream="stock", status="running")
    async with shop.world.uow.begin(shop.tenant, OPERATOR) as tx:
        await tx[RunStore].add(run)
    await _post(shop, source, _rule(CHAIRS, "Furniture"), status=409)
    await _end(shop, run.id)
    first = await _post(shop, source, _rule(CHAIRS, "Furniture"))
    assert first["run"]["id"] in (await _post(shop, source, _rule(SOFAS, "Furniture"), status=409))["detail"]


async def test_a_dry_run_keeps_nothing(shop: Shop) -> None:
    source = await _source(shop)
    answer = await _post(shop, source, _rule(CHAIRS, "Furniture"), service_dry_run="true")
    assert answer["categories"][0]["rule"]["id"] == CHAIRS
    assert shop.jobs() == [] and "rule" not in (await _get(shop, source))["categories"][0]


async def test_a_source_has_a_bounded_number_of_rules(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("domain.runs.usecases.category_rules.MAX_RULES", 1)
    source = await _source(shop)
    await _post(shop, source, _rule(CHAIRS, "A"), _rule(SOFAS, "B"), status=422)
    await _post(shop, source, _rule(CHAIRS, "A"), _rule(None, "B"))
