"""Reads of an imported feed with every filter and page by page."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import ServiceProcesses, Tenancy

PRODUCTS = 130


@pytest.fixture(scope="module")
def shop(services: ServiceProcesses) -> Iterator[tuple[Tenancy, str]]:
    """Create an organisation with one source of 130 products."""
    tenancy = services.create_organisation()
    source = tenancy.api.create_source("file", config={"currency": "usd"})
    assert tenancy.api.import_file(source, build_catalogue(PRODUCTS))["status"] == "succeeded"
    yield tenancy, source


@pytest.mark.parametrize("limit", [1, 7, 100])
def test_every_product_is_listed_once_for_any_page_size(shop: tuple[Tenancy, str], limit: int) -> None:
    products = shop[0].api.list_all("/v1/products", limit=limit)
    ids = [product["id"] for product in products]
    assert len(ids) == len(set(ids)) == PRODUCTS
    assert ids == sorted(ids, reverse=True)


@pytest.mark.parametrize("limit", [3, 100])
def test_every_offer_is_listed_once_for_any_page_size(shop: tuple[Tenancy, str], limit: int) -> None:
    api, source = shop[0].api, shop[1]
    ids = [offer["id"] for offer in api.list_all("/v1/offers", limit=limit)]
    assert len(ids) == len(set(ids)) == PRODUCTS * 2
    assert {offer["source"] for offer in api.list_all("/v1/offers")} == {source}


def test_a_product_created_during_paging_repeats_no_item(services: ServiceProcesses) -> None:
    tenancy = services.create_organisation()
    api, source = tenancy.api, tenancy.api.create_source("push", config={"currency": "usd"})
    record = {"product": {"external_id": "", "title": "Lamp"}}

    def push(*names: str) -> None:
        records = [{"product": record["product"] | {"external_id": name}} for name in names]
        api.wait_for_end(api.push(source, records)["id"])

    push(*(f"P{number}" for number in range(10)))
    expected = {product["id"] for product in api.list_all("/v1/products")}
    seen: list[str] = []
    query: dict[str, str] = {}
    for number in range(100):
        page = api.get("/v1/products", limit=3, **query)
        seen += [product["id"] for product in page["data"]]
        if not page["has_more"]:
            break
        query = {"starting_after": page["next_cursor"]}
        push(f"N{number}")
    assert len(seen) == len(set(seen)) and expected <= set(seen)


def test_filters(shop: tuple[Tenancy, str]) -> None:
    api, source = shop[0].api, shop[1]

    def count(**query: Any) -> int:
        return len(api.list_all("/v1/products", **query))

    assert count(brand="lindgren") == count(brand=" LIND GREN ") == 44
    assert count(brand="west elm") == 43 and count(brand="nobody") == 0
    assert count(source=source) == count(status="active") == count(availability="in_stock") == PRODUCTS
    assert count(status="discontinued") == count(availability="out_of_stock") == 0
    assert count(q="oak") == 33 and count(q="CHAIR oak") == 33 and count(q="oak sofa") == 0
    assert count(q="SKU-0007-1") == count(q="sku00071") == 1
    assert count(q="oak", brand="Lindgren") == len([n for n in range(PRODUCTS) if n % 4 == 0 and n % 3 == 0])
    assert count(catalogue="cat_" + "0" * 22) == 0
    assert count(catalogue=shop[0].organisation.get_catalogue_id(True)) == PRODUCTS
    assert count(updated_since="2026-01-01T00:00:00Z") == PRODUCTS and count(updated_since="2126-01-01T00:00:00Z") == 0


def test_filters_of_offers(shop: tuple[Tenancy, str]) -> None:
    api = shop[0].api
    product = api.get("/v1/products", limit=1)["data"][0]
    variant = product["variants"][0]
    assert {offer["variant"] for offer in api.list_all("/v1/offers", product=product["id"])} == {
        each["id"] for each in product["variants"]
    }
    (offer,) = api.list_all("/v1/offers", variant=variant["id"])
    assert offer["product"] == product["id"] and offer["product_title"] == product["data"]["title"]
    assert offer["variant_sku"] == variant["data"]["sku"] and offer["catalogue"] == product["catalogue"]
    assert api.list_all("/v1/offers", availability="backorder") == []


@pytest.mark.parametrize("path", ["/v1/products?limit=5", "/v1/offers?limit=5", "/v1/products/{id}", "/v1/categories"])
def test_unchanged_responses_have_no_body(shop: tuple[Tenancy, str], path: str) -> None:
    api = shop[0].api
    path = path.replace("{id}", api.get("/v1/products", limit=1)["data"][0]["id"])
    first = api.call("GET", path)
    tag = first.headers["etag"]
    again = api.call("GET", path, If_None_Match=tag)
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag)
    assert "vary" in again.headers and "cache-control" in again.headers
    other = api.call("GET", path, If_None_Match='"other"')
    assert (other.status, other.body) == (200, first.body)
    head = api.call("HEAD", path)
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", tag)


def test_the_etag_changes_with_the_product(services: ServiceProcesses) -> None:
    api = services.create_organisation().api
    source = api.create_source("file", config={"currency": "usd"})
    api.import_file(source, build_catalogue(2))
    path = f"/v1/products/{api.get('/v1/products', limit=1)['data'][0]['id']}"
    tags = {api.call("GET", path).headers["etag"] for _ in range(2)}
    api.import_file(source, build_catalogue(2, price=200))
    tags.add(api.call("GET", path).headers["etag"])
    assert len(tags) == 2
