"""Attacks on vendor profiles, claims and what follows from their approval."""

from typing import Any

import pytest

from domain.agreements.ports import AgreementRegistry, AgreementStore
from domain.catalogue.model import LicenceBasis
from domain.orgs.ports import OrgStore
from domain.publishing.usecases.licences import LicenceService
from domain.sources.ports import SourceStore
from tests.http.application import OPERATOR
from tests.http.test_brand import Brands, brands  # noqa: F401  (fixture)
from tests.support import builders, catalogues

pytestmark = pytest.mark.asyncio


async def test_a_revoked_profile_is_not_verified_again_for_other_brands(brands: Brands) -> None:
    profile = await brands.create_profile()
    claim = await brands.claim(profile, "dns_txt")
    brands.publish_record(claim)
    await brands.check(claim)
    await brands.decide("revoke", claim["id"])
    changes = {"name": "Ikea", "brands": ["Ikea", "Vitra"], "website_domain": "attacker.example"}
    assert (await brands.client.send_json("PATCH", "/v1/brand", changes)).status == 200
    again = await brands.claim(profile, "dns_txt")
    brands.publish_record(again)
    checked = await brands.check(again)
    # a domain proves only its own name
    assert (checked["status"], (await brands.read_profile(profile))["verified"]) == ("pending", False)


async def _create_products(brands: Brands, count: int = 2) -> list[str]:
    tenant, uow = brands.get_tenant(), brands.application.uow
    async with uow.begin(tenant, OPERATOR) as tx:
        catalogue = (await tx[OrgStore].get_organisation()).get_catalogue_id(True)
        source = builders.source(catalogue=catalogue, licence_basis=LicenceBasis.OWN_DATA)
        await tx[SourceStore].add(source)
    products = [builders.product(source.id, catalogue, f"P{n}", data={"title": f"P{n}"}) for n in range(count)]
    await catalogues.add_products(uow, tenant, *products)
    return [product.id for product in products]


async def _publish_catalogue(brands: Brands) -> None:
    agreement = builders.agreement()
    await brands.application.dependencies[AgreementRegistry].publish(agreement)
    async with brands.application.uow.begin(brands.get_tenant(), OPERATOR) as tx:
        await tx[AgreementStore].add(builders.acceptance(agreement))
        await LicenceService().grant_to_everyone(tx)


async def _set_visibility(brands: Brands, products: list[str], visibility: str) -> Any:
    brands.keys += 1
    body = {"products": products, "visibility": visibility}
    return await brands.client.send_json("POST", "/v1/catalogue/visibility", body, idempotency_key=f"v {brands.keys}")


async def test_products_are_not_listed_after_the_brand_was_revoked(brands: Brands) -> None:
    products = await _create_products(brands)
    profile = await brands.create_profile()
    claim = await brands.claim(profile, "dns_txt")
    brands.publish_record(claim)
    await brands.check(claim)
    await _publish_catalogue(brands)
    await brands.decide("revoke", claim["id"])
    answer = await _set_visibility(brands, products, "listed")
    seen = (await brands.rival.get(f"/v1/products/{products[0]}")).status
    assert (answer.status, answer.json().get("code"), seen) == (409, "brand_unverified", 404)


async def test_undo_lists_no_product_of_a_withdrawn_catalogue(brands: Brands) -> None:
    products = await _create_products(brands)
    claim = await brands.claim(await brands.create_profile(), "dns_txt")
    brands.publish_record(claim)
    await brands.check(claim)
    await _publish_catalogue(brands)
    assert (await _set_visibility(brands, products, "listed")).status == 200
    async with brands.application.uow.begin(brands.get_tenant(), OPERATOR) as tx:
        await LicenceService().grant(tx, brands.application.orgs["Rival"].id, ["trade"])
    hidden = await _set_visibility(brands, products[:1], "hidden")
    assert hidden.status == 200, hidden.body
    # a run withdraws all listed products and the licence of every organisation; hidden products stay hidden
    async with brands.application.uow.begin(brands.get_tenant(), OPERATOR) as tx:
        await LicenceService().mark_withdrawn(tx)
    assert (await _set_visibility(brands, products[:1], "listed")).status == 409
    entries = (await brands.client.get("/v1/audit-events")).json()["data"]
    [entry] = [one for one in entries if one.get("request") == hidden.headers["request-id"]] or [
        next(one for one in entries if "hidden" in str(one))
    ]
    undone = await brands.client.send_json("POST", f"/v1/audit-events/{entry['id']}/undo", {}, idempotency_key="undo")
    seen = (await brands.rival.get(f"/v1/products/{products[0]}")).status
    assert seen == 404, undone.body


async def test_a_homograph_of_latin_letters_is_reviewed(brands: Brands) -> None:
    changes = {"name": "Vitrɑ", "website_domain": "vitrɑ.example", "brands": ["Vitrɑ"]}
    own = (await brands.client.send_json("PATCH", "/v1/brand", changes)).json()
    claim = await brands.claim(own["id"], "dns_txt")
    brands.publish_record(claim)
    assert (await brands.check(claim))["status"] == "pending"


async def test_a_second_vendor_is_not_verified_under_the_name_of_a_verified_brand(brands: Brands) -> None:
    profile = await brands.create_profile()
    claim = await brands.claim(profile, "dns_txt")
    brands.publish_record(claim)
    assert (await brands.check(claim))["status"] == "approved"
    changes = {"name": "Fjord", "website_domain": "fjord.shop"}  # anyone can register it
    answer = await brands.rival.send_json("PATCH", "/v1/brand", changes)
    if answer.status == 200:
        theirs = await brands.claim(answer.json()["id"], "dns_txt", client=brands.rival)
        brands.publish_record(theirs)
        assert (await brands.check(theirs, brands.rival))["status"] == "pending"


async def test_an_unproven_profile_reserves_no_brands(brands: Brands) -> None:
    squatted = await brands.rival.send_json("PATCH", "/v1/brand", {"brands": ["Fjord", "Vitra", "Ikea"]})
    assert squatted.status in (200, 409)
    own = await brands.client.send_json(
        "PATCH", "/v1/brand", {"name": "Fjord", "website_domain": "fjord.example", "brands": ["Fjord"]}
    )
    assert own.status == 200, own.body
    claim = await brands.claim(own.json()["id"], "dns_txt")
    brands.publish_record(claim)
    assert (await brands.check(claim))["status"] == "approved"


async def test_a_rival_without_evidence_does_not_prevent_an_approval(brands: Brands) -> None:
    own = (
        await brands.client.send_json("PATCH", "/v1/brand", {"name": "Fjord", "website_domain": "fjord.example"})
    ).json()
    await brands.claim(own["id"], "document", client=brands.rival, document="none")
    claim = await brands.claim(own["id"], "dns_txt")
    brands.publish_record(claim)
    assert (await brands.check(claim))["status"] == "approved"
