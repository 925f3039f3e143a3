"""Product and offer lists filtered by IDs and article codes."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
import pytest_asyncio

from domain.catalogue.model import Offer, Product
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from ports.unit_of_work import UnitOfWork
from tests.http.client import Client
from tests.support import builders, catalogues
from tests.tenancy.application import ServedApplication, serve_application

pytestmark = pytest.mark.asyncio
SKUS = ("AB-1", "ab 1", "AB,1", "A\\B-1", "a&b=1/é", "a+1", "--")


@dataclass
class LookupHarness:
    """Catalogue with one product and offer per SKU, and a product with three variants of one SKU."""

    application: ServedApplication
    client: Client
    tenant: Tenant
    products: dict[str, Product]
    offers: dict[str, Offer]

    async def find_keys(self, path: str, **query: str) -> list[str]:
        """Return the external IDs of the found products, or of the offers' products, newest first."""
        response = await self.client.get(f"{path}?{urlencode({'limit': '100', **query})}")
        assert response.status == 200, response.body
        name = "external_id" if path == "/v1/products" else "product_external_id"
        return [one[name] for one in response.json()["data"]]


@pytest_asyncio.fixture
async def harness(tmp_path: Path) -> AsyncIterator[LookupHarness]:
    async with serve_application(tmp_path) as application:
        organisation = await application.create_organisation()
        tenant = Tenant(organisation.id, True)
        source = new_id("src")
        products, offers = {}, {}
        for number, sku in enumerate(SKUS):
            product = builders.product(source, organisation.get_catalogue_id(True), f"P{number}")
            data = {"sku": sku, "mpn": f"M{number % 2}", "gtin": "0012345678905" if number == 0 else "96385074"}
            offers[sku] = builders.offer(builders.variant(product, f"V{number}", data=data))
            products[sku] = product
        triple = builders.product(source, organisation.get_catalogue_id(True), "triple")
        for number in range(3):
            builders.offer(builders.variant(triple, f"triple/{number}", data={"sku": "alike"}))
        await catalogues.add_products(application.dependencies[UnitOfWork], tenant, *products.values(), triple)
        yield LookupHarness(application, await application.create_client(tenant), tenant, products, offers)


@pytest.mark.parametrize("path", ["/v1/products", "/v1/offers"])
async def test_lists_are_filtered_by_codes(harness: LookupHarness, path: str) -> None:
    queries = {
        ("sku", "AB-1"): ["P0"],
        ("sku", "ab-1"): [],
        ("sku", "AB-1,ab 1,none"): ["P1", "P0"],
        ("sku", " AB-1 , ab 1 "): ["P1", "P0"],
        ("sku", "AB\\,1"): ["P2"],
        ("sku", "A\\B-1"): ["P3"],
        ("sku", "A\\\\B-1,AB-1"): ["P3", "P0"],
        ("sku", "a&b=1/é"): ["P4"],
        ("sku", "a+1"): ["P5"],
        ("sku", "--"): [],
        ("sku", "alike"): ["triple"] * (1 if path == "/v1/products" else 3),
        ("mpn", "M1"): ["P5", "P3", "P1"],
        ("gtin", "12345678905"): ["P0"],
        ("gtin", "00012345678905,x"): ["P0"],
        ("gtin", "012345678905"): ["P0"],
        ("gtin", "96385075"): [],
        ("external_id", "P0,V1"): ["P1", "P0"],
        ("external_id", "p0"): [],
        ("external_id", "triple/2"): ["triple"],
        ("external_id", "triple"): ["triple"] * (1 if path == "/v1/products" else 3),
    }
    for (name, value), expected in queries.items():
        assert await harness.find_keys(path, **{name: value}) == expected, (name, value)


async def test_commas_have_the_same_meaning_in_all_encodings(harness: LookupHarness) -> None:
    for query in ("sku=AB-1,ab%201", "sku=AB-1%2Cab+1", f"sku={quote('AB-1,ab 1', safe='')}"):
        assert len((await harness.client.get(f"/v1/products?{query}")).json()["data"]) == 2


async def test_code_filters_combine_with_other_filters(harness: LookupHarness) -> None:
    every = ",".join(sku.replace("\\", "\\\\").replace(",", "\\,") for sku in SKUS)
    for path in ("/v1/products", "/v1/offers"):
        assert await harness.find_keys(path, sku=every, mpn="M0") == ["P4", "P2", "P0"]
        assert await harness.find_keys(path, sku=every, mpn="M0", gtin="12345678905") == ["P0"]
        assert await harness.find_keys(path, sku=every, availability="preorder") == []
        assert await harness.find_keys(path, mpn="M0,M1", external_id="V3", source=harness.offers["AB-1"].source) == [
            "P3"
        ]
    assert await harness.find_keys("/v1/products", q="ab1", sku="AB-1") == ["P0"]
    assert await harness.find_keys("/v1/products", q="oak", sku="AB-1,ab 1", brand="lindgren") == ["P1", "P0"]


async def test_filtered_lists_are_paged(harness: LookupHarness) -> None:
    query = {"mpn": "M0,M1", "limit": "2"}
    found: list[str] = []
    while True:
        page = (await harness.client.get(f"/v1/products?{urlencode(query)}")).json()
        found += [one["external_id"] for one in page["data"]]
        if not page["has_more"]:
            break
        query["starting_after"] = page["next_cursor"]
    assert found == ["P6", "P5", "P4", "P3", "P2", "P1", "P0"]
    other = {**query, "mpn": "M0"}
    refused = await harness.client.get(f"/v1/products?{urlencode(other)}")
    assert refused.faults == {("query.starting_after", "invalid_cursor")}


async def test_ids_of_events_find_product_and_offer(harness: LookupHarness) -> None:
    offer, product = harness.offers["ab 1"], harness.products["ab 1"]
    for query in ({"offer": offer.id}, {"variant": offer.variant}, {"id": product.id}):
        assert await harness.find_keys("/v1/products", **query) == ["P1"]
    [line] = (await harness.client.get(f"/v1/offers?id={offer.id}")).json()["data"]
    assert (line["id"], line["variant"], line["product"]) == (offer.id, offer.variant, product.id)
    assert (line["product_external_id"], line["variant_external_id"]) == ("P1", "V1")
    whole = (await harness.client.get(f"/v1/products/{product.id}")).json()
    assert (whole["external_id"], whole["variants"][0]["external_id"]) == ("P1", "V1")
    several = ",".join([offer.id, harness.offers["AB-1"].id, "ofr_" + "0" * 22])
    assert await harness.find_keys("/v1/offers", id=several) == ["P1", "P0"]
    repeated = await harness.client.get("/v1/offers?id=" + several.replace(",", "&id="))
    assert len(repeated.json()["data"]) == 2


async def test_invalid_lists_of_values_are_refused(harness: LookupHarness) -> None:
    hundred = ",".join(f"S{number}" for number in range(100))
    assert await harness.find_keys("/v1/products", sku=hundred) == []
    for query, code in {
        f"sku={hundred},one-more": ("query.sku", "too_many"),
        "gtin=": ("query.gtin", "too_few"),
        "sku=a,,b": ("query.sku.1", "too_short"),
        f"sku={hundred}&sku=one-more": ("query.sku", "too_many"),
        "offer=ofr_1": ("query.offer.0", "invalid_format"),
        "variant=prod_0000000000000000000000": ("query.variant.0", "invalid_format"),
    }.items():
        response = await harness.client.get(f"/v1/products?{query}")
        assert (response.status, response.faults) == (400, {code}), query


async def test_another_tenant_finds_nothing(harness: LookupHarness) -> None:
    offer = harness.offers["AB-1"]
    others = (
        await harness.application.create_client(replace(harness.tenant, livemode=False)),
        await harness.application.create_client(Tenant((await harness.application.create_organisation()).id, True)),
    )
    queries = ("sku=AB-1", "mpn=M0", "gtin=12345678905", "external_id=P0,V0")
    ids = (f"id={offer.product}", f"variant={offer.variant}", f"offer={offer.id}")
    for client in others:
        for path in (
            *(f"/v1/products?{query}" for query in (*queries, *ids)),
            *(f"/v1/offers?{query}" for query in queries),
        ):
            assert (await client.get(path)).json()["data"] == [], path
        assert (await client.get(f"/v1/offers?id={offer.id}")).json()["data"] == []
