"""IDs of licensed products in the operations of an organisation that only reads them."""

import json
from datetime import timedelta
from typing import Any

import pytest

from domain.catalogue.model import LicenceBasis, Visibility
from domain.catalogue.ports import CatalogueStore
from domain.catalogue.usecases.publication import change_visibility
from domain.events.ports import EventLog
from domain.orgs.ports import OrgStore
from domain.publishing.usecases.licences import LicenceService
from domain.sources.ports import SourceStore
from tests.http.application import OPERATOR
from tests.http.test_brand import Brands, brands  # noqa: F401  (fixture)
from tests.support import builders, catalogues

pytestmark = pytest.mark.asyncio


async def test_no_write_and_no_further_read_reaches_a_licensed_id(brands: Brands) -> None:
    tenant, uow = brands.get_tenant(), brands.application.uow
    async with uow.begin(tenant, OPERATOR) as tx:
        catalogue = (await tx[OrgStore].get_organisation()).get_catalogue_id(True)
        source = builders.source(catalogue=catalogue, licence_basis=LicenceBasis.OWN_DATA)
        await tx[SourceStore].add(source)
    product = builders.product(source.id, catalogue, "P1", data={"title": "Sofa", "brand": "Fjord"})
    variant = builders.variant(product, "V1", data={"sku": "SKU-1"})
    offer = builders.offer(
        variant,
        data={
            "availability": "in_stock",
            "currency": "usd",
            "cost": 123457,
            "quantity": 765431,
            "price": 9,
            "lead_time_days": 543217,
        },
    )
    await catalogues.add_products(uow, tenant, product)
    image = await catalogues.add_image(uow, tenant, product.id)
    async with uow.begin(tenant, OPERATOR) as tx:
        await LicenceService().grant_to_everyone(tx)
        await tx[CatalogueStore].lock_for_writing()
        outcome = await change_visibility(tx, [product.id], Visibility.LISTED)
        await tx[EventLog].append(outcome.events)
    ids = {"prod": product.id, "var": variant.id, "ofr": offer.id, "src": source.id, "img": image.id, "cat": catalogue}
    document = (await brands.rival.get("/openapi.json")).json()
    answers: list[Any] = []
    for path, operations in document["paths"].items():
        if (
            "{" not in path or path == "/v1/media/{id}" or "/things/" in path
        ):  # images need an object store; things are an example
            continue
        for method in operations:
            for id in ids.values():
                actual = path
                while "{" in actual:
                    actual = actual[: actual.index("{")] + id + actual[actual.index("}") + 1 :]
                brands.keys += 1
                brands.application.clock.advance(timedelta(seconds=1))
                if method == "get":
                    answer = await brands.rival.get(actual)
                else:
                    answer = await brands.rival.send_json(
                        method.upper(), actual, {}, idempotency_key=f"i {brands.keys}", if_match='"1"'
                    )
                if answer.status < 400:
                    answers.append((method, path, answer.status))
                assert answer.status != 429
                assert not any(secret in answer.body.decode() for secret in ("123457", "765431", "543217")), (
                    path,
                    answer.body,
                )
    for path in (
        "/v1/products",
        "/v1/products?q=sofa",
        "/v1/offers",
        f"/v1/offers?variant={variant.id}",
        f"/v1/offers?source={source.id}",
        "/v1/changes",
        "/v1/categories",
        f"/v1/categories?source={source.id}",
        f"/v1/products?catalogue={catalogue}",
        f"/v1/products?source={source.id}",
        "/v1/match-pairs",
        "/v1/audit-events",
        "/v1/usage",
    ):
        answer = await brands.rival.get(path)
        print(path, answer.status, len(answer.body))
        assert not any(secret in answer.body.decode() for secret in ("123457", "765431", "543217")), (path, answer.body)
        if tenant.org in answer.body.decode():
            print("names the vendor's organisation:", path)
    print(answers)
    assert {(method, path) for method, path, _ in answers} == {("get", "/v1/products/{id}")}
    print(json.dumps((await brands.rival.get(f"/v1/products/{product.id}")).json())[:1500])
    body = {"products": [product.id], "visibility": "hidden"}
    brands.application.clock.advance(timedelta(seconds=9))
    answer = await brands.rival.send_json("POST", "/v1/catalogue/visibility", body, idempotency_key="hide")
    assert answer.json() == {"object": "visibility_change", "changed": 0, "unchanged": 0, "not_found": [product.id]}
