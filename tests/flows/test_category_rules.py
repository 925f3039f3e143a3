"""Category rules of a source: stored products, new products, and events."""

from typing import Any

import pytest

from domain.catalogue import categories
from tests.flows.api_client import ApiClient
from tests.flows.feeds import build_catalogue, build_csv
from tests.flows.service_processes import ServiceProcesses

BY_SLUG = {entry.slug: entry.id for entry in categories.category_by_id().values()}
CHAIRS, SOFAS, SEATING = BY_SLUG["chairs"], BY_SLUG["sofas"], BY_SLUG["seating"]
HEADERS = ("SKU", "Title", "Price", "Category", "Google product category")
PATH = ["Living Room", "Chairs"]


def _set_rules(api: ApiClient, source: str, *rules: tuple[list[str], str | None]) -> Any:
    """Set rules, and wait until they are applied."""
    body = {"rules": [{"path": path, "category": category} for path, category in rules]}
    answer = api.post(f"/v1/sources/{source}/categories", body, 200)
    assert answer["run"]["trigger"] == "category_rules" and answer["run"]["status"] == "queued"
    run = api.wait_for_end(answer["run"]["id"])
    assert run["status"] == "succeeded", run
    return answer | {"run": run}


def _get_categories(api: ApiClient) -> dict[str, str | None]:
    found = api.list_all("/v1/products")
    return {product["data"]["title"][-1]: product["data"].get("category") for product in found}


def _get_health(api: ApiClient, source: str) -> Any:
    found = api.get(f"/v1/sources/{source}")
    return found["status"], found["version"], found["freshness"]["catalogue"]["observed_at"]


def _count_matching_events(api: ApiClient, category: str) -> int:
    """Return the number of events for an endpoint that is restricted to the category."""
    types = ["product.created", "product.updated"]
    body = {"url": "https://receiver.example/", "event_types": types, "filters": {"categories": [category]}}
    answer = api.call("POST", "/v1/webhook-endpoints", body, Service_Dry_Run="explain")
    return int(answer.json()["forecast"]["events"])


def _build_file(*rows: tuple[str, str, str]) -> bytes:
    return build_csv(HEADERS, [(name, f"Oak seat {name}", "10.00", path, google) for name, path, google in rows])


@pytest.mark.parametrize("again", [False, True])
def test_rules_apply_to_stored_and_new_products(services: ServiceProcesses, again: bool) -> None:
    api = services.create_organisation().api
    source = api.create_source("file", config={"currency": "usd"})
    assert api.import_file(source, build_catalogue(4))["status"] == "succeeded"
    health = _get_health(api, source)
    assert _set_rules(api, source, (PATH, CHAIRS))["run"]["stats"] == {"products_changed": 4}
    assert set(_get_categories(api).values()) == {CHAIRS}
    assert {product["version"] for product in api.list_all("/v1/products")} == {2}
    assert len(api.list_all("/v1/products", category=SEATING)) == 4
    if again:
        assert _set_rules(api, source, (PATH, CHAIRS))["run"]["stats"] == {"products_changed": 0}
    assert _get_health(api, source) == health  # the source was not requested
    run = api.import_file(source, build_catalogue(6))
    assert run["stats"]["products_created"] == 2 and "products_changed" not in run["stats"]
    assert len(api.list_all("/v1/products", category=CHAIRS)) == 6
    _set_rules(api, source, (PATH, None))
    assert set(_get_categories(api).values()) == {None} and api.list_all("/v1/products", category=SEATING) == []


def test_the_longest_path_takes_precedence_over_the_source(services: ServiceProcesses) -> None:
    api = services.create_organisation().api
    source = api.create_source("file", config={"currency": "usd"})
    rows = (("a", "Home > Seats", "443"), ("b", "Home > Seats", ""), ("c", "Home > Other", ""), ("d", "", "460"))
    assert api.import_file(source, _build_file(*rows))["status"] == "succeeded"
    assert _get_categories(api) == {"a": CHAIRS, "b": None, "c": None, "d": SOFAS}
    answer = _set_rules(api, source, (["Home"], SEATING), (["Home", "Seats"], SOFAS))
    assert _get_categories(api) == {"a": SOFAS, "b": SOFAS, "c": SEATING, "d": SOFAS}
    category_by_path = {tuple(one["path"]): one for one in answer["categories"]}
    assert {path: one["products"] for path, one in category_by_path.items()} == {
        ("Home",): 3, ("Home", "Other"): 1, ("Home", "Seats"): 2
    }  # fmt: skip
    assert (
        category_by_path["Home", "Other"]["inherited"] == {"id": SEATING, "path": ["Seating"]}
        and "rule" not in category_by_path["Home", "Other"]
    )
    assert (
        category_by_path["Home", "Seats"]["rule"]["id"] == SOFAS
        and category_by_path["Home", "Seats"]["inherited"]["id"] == SEATING
    )
    # the source's value is known, although it changed while a rule hid it
    changed = (("a", "Home > Seats", "460"), ("b", "Home > Seats", "443"), rows[2], rows[3])
    assert api.import_file(source, _build_file(*changed))["status"] == "succeeded"
    assert _get_categories(api) == {"a": SOFAS, "b": SOFAS, "c": SEATING, "d": SOFAS}
    _set_rules(api, source, (["Home"], None), (["Home", "Seats"], None))
    assert _get_categories(api) == {"a": SOFAS, "b": CHAIRS, "c": None, "d": SOFAS}


def test_category_assignment_is_published_as_product_changes(services: ServiceProcesses) -> None:
    api = services.create_organisation().api
    source = api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(1))
    cursor = api.get("/v1/changes", cursor="now")["next_cursor"]
    run = _set_rules(api, source, (PATH, CHAIRS))["run"]
    [event] = api.get("/v1/changes", cursor=cursor)["data"]
    assert (event["type"], event["correlation_id"], event["data"]["version"]) == ("product.updated", run["id"], 2)
    [field] = event["data"]["fields"]
    assert (field["path"], field["old"], field["new"]) == ("data.category", None, CHAIRS)
    assert (_count_matching_events(api, SEATING), _count_matching_events(api, SOFAS)) == (
        2,
        0,
    )  # product.created, and now product.updated


def test_a_rule_of_another_source_is_suggested_first(services: ServiceProcesses) -> None:
    api = services.create_organisation().api
    first, second = (api.create_source("file", name=name, config={"currency": "usd"}) for name in ("One", "Two"))
    for source in (first, second):
        api.import_file(source, build_catalogue(1))
    [_, below] = api.get(f"/v1/sources/{second}/categories")["categories"]
    assert (below["path"], below["suggestion"]["id"]) == (PATH, CHAIRS)
    _set_rules(api, first, (PATH, SOFAS))
    answer = api.get(f"/v1/sources/{second}/categories")
    assert answer["categories"][1]["suggestion"]["id"] == SOFAS and "run" not in answer


def test_undo_restores_the_previous_rules(services: ServiceProcesses) -> None:
    api = services.create_organisation().api
    source = api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(2))
    _set_rules(api, source, (PATH, SOFAS))
    _set_rules(api, source, (PATH, CHAIRS))
    newest = api.get("/v1/audit-events", undoable="true", limit=1)["data"][0]
    api.post(f"/v1/audit-events/{newest['id']}/undo", expect=200)
    api.wait_for_end(api.get(f"/v1/sources/{source}/runs", limit=1)["data"][0]["id"])
    assert set(_get_categories(api).values()) == {SOFAS}
