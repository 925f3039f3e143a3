"""Estimates: certain ways come first, and each has its reasons."""

from typing import Any

import pytest

from domain.probes.estimate import ProbeFindings, estimate_effort, find_common_currency, propose_feed_source
from domain.probes.files import FeedFile
from domain.probes.model import AccessBlock, PlatformFeed, Robots, RobotsState, SampledPage

PARSED = Robots(RobotsState.PARSED)
PAGES = (SampledPage("https://vendor.example/products/a", 200, 1),)
SITEMAP = {"sitemaps_read": ["https://vendor.example/sitemap.xml"], "product_page_count": 400}
SLOW = Robots(RobotsState.PARSED, 300.0)


def build_findings(name: float, price: float) -> dict[str, Any]:
    """Return ten products, of which the given shares state a name and a price."""
    stated_fields = [
        {one for one, share in (("name", name), ("price", price)) if place < share * 10} for place in range(10)
    ]
    return {"sampled_pages": list(PAGES), "sampled_products": [frozenset(one) for one in stated_fields]}


COMPLETE = build_findings(1.0, 0.9)


def build_feed(products: int | None = 25, total: int | None = 400, status: int = 200) -> PlatformFeed:
    """Return a shop's product list."""
    return PlatformFeed("shopify", "https://vendor.example/products.json", status, products, total)


@pytest.mark.parametrize(
    ("effort", "way", "found"),
    [
        ("low", "platform_feed", {"feed": build_feed()}),
        ("medium", "platform_feed", {"feed": build_feed(0)}),
        ("medium", "platform_feed", {"feed": build_feed(total=30_000)}),
        ("medium", "platform_feed", {"feed": build_feed(), "readable": False}),
        ("low", "platform_feed", {"feed": build_feed(), "access_block": AccessBlock("login", "It asks.")}),
        ("low", "file", {"feed": build_feed(), "file": FeedFile("csv")}),
        ("medium", "file", {"feed": build_feed(), "file": FeedFile(None, remedy="It is packed.")}),
        ("infeasible", "none", {"robots": Robots(RobotsState.DISALLOW_ALL)}),
        ("infeasible", "none", {"robots": Robots(RobotsState.UNREACHABLE)}),
        ("infeasible", "none", {"access_block": AccessBlock("bot_challenge", "It asks.")}),
        ("high", "pages", {"access_block": AccessBlock("rate_limit", "It asks.")}),
        ("infeasible", "none", {"landing_status": 404}),
        ("infeasible", "none", {"landing_status": None}),
        ("high", "pages", {}),
        ("medium", "structured_data", COMPLETE | SITEMAP),
        ("medium", "structured_data", COMPLETE | SITEMAP | {"feed": build_feed(None, None, 403)}),
        ("high", "structured_data", COMPLETE),
        ("high", "structured_data", build_findings(1.0, 0.5) | SITEMAP),
        ("high", "pages", build_findings(0.0, 0.0) | SITEMAP),
        ("high", "structured_data", COMPLETE | SITEMAP | {"robots": SLOW}),
        ("medium", "structured_data", COMPLETE | SITEMAP | {"landing_status": 404}),
    ],
)
def test_findings_have_estimates(effort: str, way: str, found: dict[str, Any]) -> None:
    given = {"url": "https://vendor.example/", "robots": PARSED, "landing_status": 200} | found
    readable = given.pop("readable", True)
    estimate = estimate_effort(ProbeFindings(**given), is_readable=readable)
    assert (estimate.effort, estimate.kind) == (effort, way)
    assert estimate.reasons and all(reason.strip() for reason in estimate.reasons)


def test_a_currency_is_proposed_if_all_products_agree() -> None:
    assert find_common_currency({"usd"}) == "usd"
    assert [find_common_currency(seen) for seen in ((), {"usd", "eur"}, {"usd", "xyz"}, {"xyz"})] == [None] * 4
    assert "currency" not in propose_feed_source(build_feed(), None)["config"]
