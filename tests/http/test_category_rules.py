"""Category rules over HTTP: refusals, storage and dry runs."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from domain.catalogue import categories
from domain.runs.ports import RunStore
from tests.http.application import OPERATOR
from tests.http.sources import FILE_SOURCE, SourceHarness, open_source_harness
from tests.support import builders
from tests.support.catalogues import add_products

pytestmark = pytest.mark.asyncio
CHAIRS, SOFAS = (
    next(entry.id for entry in categories.category_by_id().values() if entry.slug == slug)
    for slug in ("chairs", "sofas")
)


@pytest_asyncio.fixture(name="harness")
async def open_harness() -> AsyncIterator[SourceHarness]:
    """Run the application."""
    async with open_source_harness() as harness:
        yield harness


async def _create_source(harness: SourceHarness) -> Any:
    """Create a source with two products."""
    source = await harness.create_source(**FILE_SOURCE)
    paths = (["Furniture", "Sofas"], ["Furniture", "Odd"])
    made = [
        builders.product(source["id"], source["catalogue"], f"P{number}", data={"title": "A", "category_path": path})
        for number, path in enumerate(paths)
    ]
    await add_products(harness.application.uow, harness.tenant, *made)
    return source


def _build_rule(category: str | None, *path: str) -> dict[str, Any]:
    return {"path": list(path), "category": category}


async def _start_run(harness: SourceHarness, source: Any, *rules: Any, status: int = 200, **headers: str) -> Any:
    response = await harness.client.post(f"/v1/sources/{source['id']}/categories", {"rules": list(rules)}, **headers)
    assert response.status == status, response.body
    return response.json()


async def _read_rules(harness: SourceHarness, source: Any) -> Any:
    response = await harness.client.get(f"/v1/sources/{source['id']}/categories")
    assert response.status == 200, response.body
    return response.json()


async def _finish_run(harness: SourceHarness, id: str) -> None:
    async with harness.application.uow.begin(harness.tenant, OPERATOR) as tx:
        run = await tx[RunStore].get(id)
        await tx[RunStore].save(run.with_end("succeeded", tx.now))


async def test_paths_with_suggestions(harness: SourceHarness) -> None:
    source = await _create_source(harness)
    shown = {"object": "source_category", "products": 1}
    suggested = {"id": SOFAS, "path": ["Seating", "Sofas"]}
    assert await _read_rules(harness, source) == {
        "object": "category_rules",
        "left_out": 0,
        "categories": [
            shown | {"path": ["Furniture"], "products": 2},
            shown | {"path": ["Furniture", "Odd"]},
            shown | {"path": ["Furniture", "Sofas"]} | {"suggestion": suggested},
        ],
    }


async def test_rules_are_stored_and_a_run_is_queued(harness: SourceHarness) -> None:
    source = await _create_source(harness)
    response = await _start_run(
        harness, source, _build_rule(CHAIRS, "Furniture", "Odd"), _build_rule(SOFAS, "Nobody has this")
    )
    assert response["run"]["trigger"] == "category_rules" and response["run"]["status"] == "queued"
    [job] = harness.list_jobs()
    assert (job.kind, job.lane) == ("runs.refile", f"source:{source['id']}")
    rules = {
        tuple(one["path"]): one.get("rule", {}).get("id") for one in (await _read_rules(harness, source))["categories"]
    }
    assert rules == {
        ("Nobody has this",): SOFAS,
        ("Furniture",): None,
        ("Furniture", "Odd"): CHAIRS,
        ("Furniture", "Sofas"): None,
    }
    [entry] = [
        entry for entry in (await harness.list_audit_entries(source["id"])) if entry.change.object == "category_rules"
    ]
    assert entry.change.after["rules"][0] == {"path": ["Furniture", "Odd"], "category": CHAIRS}
    assert [entry.change.action for entry in (await harness.list_audit_entries(response["run"]["id"]))] == ["create"]


async def test_rules_are_removed_by_null(harness: SourceHarness) -> None:
    source = await _create_source(harness)
    await _finish_run(
        harness,
        (await _start_run(harness, source, _build_rule(CHAIRS, "Furniture"), _build_rule(SOFAS, "Gone")))["run"]["id"],
    )
    response = await _start_run(harness, source, _build_rule(None, "Gone"), _build_rule(None, "Never there"))
    assert [one["path"] for one in response["categories"]] == [
        ["Furniture"],
        ["Furniture", "Odd"],
        ["Furniture", "Sofas"],
    ]
    assert [one["inherited"]["id"] for one in response["categories"][1:]] == [CHAIRS, CHAIRS]


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        ([_build_rule("ctg_0000000000000000000000", "A")], 422),
        ([_build_rule(CHAIRS, "A"), _build_rule(SOFAS, "A")], 400),
        ([_build_rule(CHAIRS)], 400),
        ([_build_rule(CHAIRS, "")], 400),
        ([_build_rule(CHAIRS, "A\0")], 400),
        ([_build_rule(CHAIRS, *("A",) * 21)], 400),
        ([_build_rule("prod_0000000000000000000000", "A")], 400),
        ([{"path": ["A"]}], 400),
        ([], 400),
        ([_build_rule(CHAIRS, f"A{number}") for number in range(1_001)], 400),
    ],
)
async def test_bad_rules_are_refused(harness: SourceHarness, rules: list[Any], status: int) -> None:
    source = await _create_source(harness)
    await _start_run(harness, source, *rules, status=status)
    assert harness.list_jobs() == [] and all(
        "rule" not in one for one in (await _read_rules(harness, source))["categories"]
    )


@pytest.mark.parametrize("status", ["paused", "disabled", "blocked"])
async def test_a_source_that_is_not_active_keeps_its_rules(harness: SourceHarness, status: str) -> None:
    source = await _create_source(harness)
    await harness.change_source(source["id"], status=status)
    await _start_run(harness, source, _build_rule(CHAIRS, "Furniture"), status=409)
    assert "rule" not in (await _read_rules(harness, source))["categories"][0]


async def test_rules_wait_for_the_end_of_a_run_of_any_stream(harness: SourceHarness) -> None:
    source = await _create_source(harness)
    run = builders.run(source["id"], stream="stock", status="running")
    async with harness.application.uow.begin(harness.tenant, OPERATOR) as tx:
        await tx[RunStore].add(run)
    await _start_run(harness, source, _build_rule(CHAIRS, "Furniture"), status=409)
    await _finish_run(harness, run.id)
    first = await _start_run(harness, source, _build_rule(CHAIRS, "Furniture"))
    assert (
        first["run"]["id"] in (await _start_run(harness, source, _build_rule(SOFAS, "Furniture"), status=409))["detail"]
    )


async def test_a_dry_run_stores_nothing(harness: SourceHarness) -> None:
    source = await _create_source(harness)
    response = await _start_run(harness, source, _build_rule(CHAIRS, "Furniture"), service_dry_run="true")
    assert response["categories"][0]["rule"]["id"] == CHAIRS
    assert harness.list_jobs() == [] and "rule" not in (await _read_rules(harness, source))["categories"][0]


async def test_a_source_has_a_bounded_number_of_rules(harness: SourceHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("domain.runs.usecases.category_rules.MAX_RULES", 1)
    source = await _create_source(harness)
    await _start_run(harness, source, _build_rule(CHAIRS, "A"), _build_rule(SOFAS, "B"), status=422)
    await _start_run(harness, source, _build_rule(CHAIRS, "A"), _build_rule(None, "B"))
