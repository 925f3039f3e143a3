"""Filters with several values, orders, totals and search of GET /v1/products."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import pytest_asyncio

from adapters.api_json.cursors import CursorSigner, build_cursor_context
from domain.catalogue.model import ProductFilter
from domain.kernel.errors import InvalidRequest
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.secrets.keys import ActiveKeys
from entrypoints.areas.catalogue import parse_product_filter
from ports.unit_of_work import UnitOfWork
from tests.http.client import Client
from tests.support import builders, catalogues
from tests.tenancy.application import ServedApplication, serve_application

pytestmark = pytest.mark.asyncio
TITLES = ("Walnut bed", "Oak bed", "Beds of pine", "Chair")
BRANDS = ("Ferm Living", "Lindgren, Falk", "Ferm Living", None)
COLOURS = ("Nussbaum", "natural oak", "dark grey", "Sunset")
PRICES = ((300, "eur"), (100, "eur"), (200, "usd"), None)


@dataclass
class ListHarness:
    """Four products with different brands, colours and prices; the second one has only a recommended price below the others."""

    application: ServedApplication
    client: Client
    tenant: Tenant
    source: str

    async def read(self, query: str = "", **parameters: str) -> dict[str, Any]:
        """Return the response of the list."""
        text = "&".join(part for part in (query, urlencode(parameters)) if part)
        response = await self.client.get(f"/v1/products?{text}")
        assert response.status == 200, response.body
        found: dict[str, Any] = response.json()
        return found

    async def find_titles(self, limit: int = 2, **parameters: str) -> list[str]:
        """Return the titles of all pages."""
        found, cursor = list[str](), None
        while True:
            page = await self.read(limit=str(limit), **parameters, **({"starting_after": cursor} if cursor else {}))
            found += [product["data"]["title"] for product in page["data"]]
            cursor = page["next_cursor"]
            if cursor is None:
                return found


@pytest_asyncio.fixture
async def harness(tmp_path: Path) -> AsyncIterator[ListHarness]:
    async with serve_application(tmp_path) as application:
        organisation = await application.create_organisation()
        tenant, source = Tenant(organisation.id, True), new_id("src")
        products = []
        for number, (title, brand, colour, price) in enumerate(zip(TITLES, BRANDS, COLOURS, PRICES, strict=True)):
            data = {"title": title} | ({"brand": brand} if brand else {})
            product = builders.product(source, organisation.get_catalogue_id(True), f"P{number}", data=data)
            variant = builders.variant(product, f"V{number}", data={"sku": f"S-{number}", "colour": colour})
            offer: dict[str, Any] = {
                "availability": ("in_stock", "low_stock")[number % 2],
                "msrp": 1,
                "currency": "eur",
            }
            builders.offer(variant, data=offer | ({"price": price[0], "currency": price[1]} if price else {}))
            products.append(product)
        await catalogues.add_products(application.dependencies[UnitOfWork], tenant, *products)
        yield ListHarness(application, await application.create_client(tenant), tenant, source)


async def test_a_filter_accepts_several_values(harness: ListHarness) -> None:
    bed, oak, pine, chair = TITLES
    for parameters, expected in (
        ({"availability": "in_stock,low_stock"}, [chair, pine, oak, bed]),
        ({"availability": "in_stock", "status": "active,discontinued"}, [pine, bed]),
        ({"source": f"{harness.source},{new_id('src')}"}, [chair, pine, oak, bed]),
        ({"brands": "ferm living"}, [pine, bed]),
        ({"brands": "Lindgren\\, Falk,none"}, [oak]),
        ({"brands": "Lindgren, Falk"}, []),
        ({"brand": "Ferm Living", "brands": "Ferm Living,Lindgren\\, Falk"}, [pine, bed]),
        ({"brand": "Lindgren, Falk", "brands": "Ferm Living"}, []),
        ({"colour": "grey,brown"}, [pine]),
        ({"finish": "walnut,oak"}, [oak, bed]),
        ({"finish": "walnut", "colour": "grey"}, []),
        ({"completeness": "complete"}, []),
        ({"completeness": "low,medium,high,complete"}, [chair, pine, oak, bed]),
    ):
        assert await harness.find_titles(**parameters) == expected, parameters
        page = await harness.read(**parameters, include="total_count", limit="1")
        assert page["total_count"] == {"count": len(expected), "is_exact": True}, parameters
    repeated = await harness.read("availability=in_stock&availability=low_stock")
    assert len(repeated["data"]) == 4 and "total_count" not in repeated


async def test_prices_are_selling_prices_of_one_currency(harness: ListHarness) -> None:
    bed, oak, pine, chair = TITLES
    assert await harness.find_titles(currency="eur") == [oak, bed]
    assert await harness.find_titles(currency="eur", min_price="100", max_price="299") == [oak]
    assert await harness.find_titles(currency="eur", max_price="99") == []  # recommended prices are not selling prices
    assert await harness.find_titles(currency="usd", min_price="200") == [pine]
    assert await harness.find_titles(sort="price_low", limit=1) == [oak, bed, pine, chair]
    assert await harness.find_titles(sort="price_high", limit=1) == [pine, bed, oak, chair]
    response = await harness.client.get("/v1/products?min_price=1")
    assert response.status == 400
    assert response.json()["errors"][0]["field"] == "query.currency"


async def test_products_are_sorted(harness: ListHarness) -> None:
    bed, oak, pine, chair = TITLES
    assert await harness.find_titles(sort="newest") == await harness.find_titles() == [chair, pine, oak, bed]
    for limit in (1, 2, 3, 4):
        assert await harness.find_titles(limit, sort="title") == [pine, chair, oak, bed]
        assert await harness.find_titles(limit, sort="updated") == [chair, pine, oak, bed]
        assert await harness.find_titles(limit, sort="title", q="beds") == [pine, oak, bed]
    page = await harness.read(limit="1", sort="title")
    other = await harness.client.get(f"/v1/products?sort=updated&limit=1&starting_after={page['next_cursor']}")
    assert other.status == 400 and "invalid_cursor" in other.body.decode()


async def test_exact_matches_precede_other_forms(harness: ListHarness) -> None:
    bed, oak, pine, _ = TITLES
    for limit in (1, 2, 3, 100):
        assert await harness.find_titles(limit, q="bed") == [oak, bed, pine]
        assert await harness.find_titles(limit, q="beds") == [pine, oak, bed]
    assert await harness.find_titles(q="walnutt bed") == await harness.find_titles(q="nussbaum") == [bed]
    page = await harness.read(q="bed", include="total_count", limit="1")
    assert page["total_count"] == {"count": 3, "is_exact": True}


async def test_cursors_of_single_values_and_without_totals_remain_valid(harness: ListHarness) -> None:
    newest = (await harness.read(limit="1"))["data"][0]["id"]
    signer = CursorSigner(harness.application.dependencies[ActiveKeys].cursor_keys)
    filters = {"status": "active", "availability": "low_stock"}
    context = build_cursor_context("catalogue.list_products", harness.tenant, {}, filters)
    found = await harness.read(starting_after=str(signer.sign(context, newest)), **filters)
    assert [product["data"]["title"] for product in found["data"]] == [TITLES[1]]
    page = await harness.read(limit="1", include="total_count", colour="grey,black")
    assert page["next_cursor"] is None
    page = await harness.read(limit="1", include="total_count")
    assert len((await harness.read(starting_after=page["next_cursor"]))["data"]) == 3


async def test_the_etag_depends_on_the_total(harness: ListHarness) -> None:
    plain = await harness.client.get("/v1/products?limit=1")
    counted = await harness.client.get("/v1/products?limit=1&include=total_count")
    assert plain.headers["etag"] != counted.headers["etag"]


async def test_filters_are_parsed_from_a_query_string() -> None:
    parsed = parse_product_filter("brands=A%5C%2C+B,C&status=active&sort=title&limit=3&include=total_count&q=oak")
    assert parsed == ProductFilter(brands=["A, B", "C"], status=["active"], q="oak")
    with pytest.raises(InvalidRequest):
        parse_product_filter("colour=unknown")
