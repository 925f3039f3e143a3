"""Stock checks of one variant with an API, a worker, and shops that respond, refuse or are slow."""

import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.flows.feeds import FeedRequest, FeedServer, Reply, serve_feeds
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until


@pytest.fixture
def shop_server() -> Iterator[FeedServer]:
    """Run a separate feed server for the shops."""
    with serve_feeds() as served:
        yield served


class ShopServer:
    """Public Shopify shop with one sofa in two sizes; `available` is the stated availability of each."""

    def __init__(self, feeds: FeedServer, tenancy: Tenancy, name: str) -> None:
        self.feeds, self.api, self.name = feeds, tenancy.api, name
        self.base = len(feeds.pages) * 1000 + 10
        self.available = {self.base + size: True for size in range(2)}
        feeds.pages["/products.json"] = self._products
        for variant in self.available:
            feeds.pages[f"/variants/{variant}.js"] = self._variant
        self.source = self.api.create_source(
            "url", config={"url": feeds.url("/"), "platform": "shopify", "currency": "usd"}
        )
        run = self.api.pull(self.source)
        assert run["status"] == "succeeded", run

    def _listed(self) -> dict[str, Any]:
        variants = [
            {"id": id, "title": f"Size {id}", "option1": f"Size {id}", "sku": f"{self.name}-{id}", "price": "249.00",
             "available": available, "grams": 12000}
            for id, available in self.available.items()
        ]  # fmt: skip
        return {
            "id": self.base,
            "title": "Sofa",
            "handle": "sofa",
            "vendor": "Quillmere",
            "options": [{"name": "Size"}],
            "variants": variants,
        }

    def _products(self, request: FeedRequest) -> Reply:
        found = [self._listed()] if request.query["page"] == ["1"] else []
        return 200, {"Content-Type": "application/json"}, json.dumps({"products": found}).encode()

    def _variant(self, request: FeedRequest) -> Reply:
        id = int(request.path.rsplit("/", 1)[-1].removesuffix(".js"))
        body = {"id": id, "sku": f"{self.name}-{id}", "price": 24900, "available": self.available[id]}
        return 200, {"Content-Type": "application/javascript"}, json.dumps(body).encode()

    def variant(self) -> str:
        """Return the ID of the first variant."""
        [product] = self.api.list_all("/v1/products", source=self.source)
        found = {one["data"]["sku"]: str(one["id"]) for one in product["variants"]}
        return found[f"{self.name}-{self.base}"]

    def offer(self, variant: str) -> Any:
        """Return the only offer of the variant."""
        [offer] = self.api.get("/v1/offers", variant=variant)["data"]
        return offer


def test_one_variant_is_checked(services: ServiceProcesses, fjord: Tenancy, shop_server: FeedServer) -> None:
    shop = ShopServer(shop_server, fjord, "one")
    variant, api = shop.variant(), fjord.api
    before = shop.offer(variant)
    listed, shop.available[shop.base] = shop_server.count("/products.json"), False
    check = api.post(f"/v1/variants/{variant}/checks", expect=200)
    assert (check["object"], check["status"], check["id"][:4]) == ("stock_check", "succeeded", "chk_")
    [result] = check["results"]
    assert (result["offer"], result["availability"], result.get("failure")) == (before["id"], "out_of_stock", None)
    after = shop.offer(variant)
    assert (after["availability"], after["price"], after["version"]) == ("out_of_stock", 24900, before["version"] + 1)
    assert shop_server.count("/products.json") == listed and shop_server.count(f"/variants/{shop.base}.js") == 1
    changed = services.fetch_rows(
        "SELECT convert_from(body, 'UTF8') FROM events WHERE subject = %(id)s AND type = 'offer.changed'",
        id=after["id"],
    )
    [event] = [json.loads(body) for (body,) in changed]
    assert event["data"]["facets"] == ["stock", "availability"]
    run = api.get(f"/v1/runs/{event['correlation_id']}")
    assert (run["trigger"], run["stream"], run["served_by"]) == ("stock_check", "stock", "variants.js")
    assert services.fetch_value("SELECT stated FROM offers WHERE id = %(id)s", id=after["id"]) == 1, (
        "no stream but the catalogue"
    )
    shop.available[shop.base] = True
    again = api.pull(shop.source)
    assert "unchanged_feed" not in again["stats"] and again["stats"]["offers_changed"] == 1
    assert shop.offer(variant)["availability"] == "in_stock", "the next import restores the values of the feed"
    assert api.pull(shop.source)["stats"]["unchanged_feed"] == 1


def test_a_slow_shop(fjord: Tenancy, shop_server: FeedServer) -> None:
    shop = ShopServer(shop_server, fjord, "slow")
    variant, gate = shop.variant(), threading.Event()
    path = f"/variants/{shop.base}.js"
    answer = shop_server.pages[path]

    def slow(request: FeedRequest) -> Reply:
        gate.wait(20)
        return answer(request)

    shop_server.pages[path] = slow
    shop.available[shop.base] = False
    check = fjord.api.post(f"/v1/variants/{variant}/checks", expect=200)
    assert (check["status"], check["results"][0]["availability"]) == ("queued", "in_stock")
    assert "checked_at" not in check["results"][0]
    gate.set()
    wait_until(lambda: shop.offer(variant)["availability"] == "out_of_stock", "the answer is taken")


def test_a_shop_that_refuses_requests(fjord: Tenancy, shop_server: FeedServer) -> None:
    shop = ShopServer(shop_server, fjord, "refusing")
    variant = shop.variant()
    for status, code in ((404, "fetch_failed"), (429, "fetch_failed"), (403, "fetch_refused")):
        shop_server.fail(f"/variants/{shop.base}.js", status)
        check = fjord.api.post(f"/v1/variants/{variant}/checks", expect=200)
        assert (check["status"], check["results"][0]["failure"]["code"]) == ("failed", code)
        assert str(status) in check["results"][0]["failure"]["message"]
    assert fjord.api.get(f"/v1/sources/{shop.source}")["status"] == "active", "one item says nothing of its source"
    assert shop.offer(variant)["availability"] == "in_stock"
