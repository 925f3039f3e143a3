"""Estimates: what is sure to work comes first, and each says why."""

from typing import Any

import pytest

from domain.probes.estimate import Findings, agreed, for_feed, judged
from domain.probes.model import PlatformFeed, Robots, RobotsState, Sample, SampledPage, Sitemap, Wall

PARSED = Robots(RobotsState.PARSED)
PAGES = (SampledPage("https://vendor.example/products/a", 200, 1),)
WELL = Sample(PAGES, 0, {"name": 1.0, "price": 0.9})
MAP = Sitemap(("https://vendor.example/sitemap.xml",), 400)


def feed(products: int | None = 25, total: int | None = 400, status: int = 200) -> PlatformFeed:
    """A shop's list."""
    return PlatformFeed("shopify", "https://vendor.example/products.json", status, products, total)


@pytest.mark.parametrize(
    ("effort", "way", "found"),
    [
        ("low", "platform_feed", {"feed": feed()}),
        ("medium", "platform_feed", {"feed": feed(0)}),
        ("medium", "platform_feed", {"feed": feed(total=30_000)}),
        ("medium", "platform_feed", {"feed": feed(), "readable": False}),
        ("low", "platform_feed", {"feed": feed(), "wall": Wall("login", "It asks.")}),
        ("low", "file", {"feed": feed(), "file": True}),
        ("medium", "file", {"feed": feed(), "file": True, "remedy": "It is packed."}),
        ("infeasible", "none", {"robots": Robots(RobotsState.DISALLOW_ALL)}),
        ("infeasible", "none", {"robots": Robots(RobotsState.UNREACHABLE)}),
        ("infeasible", "none", {"wall": Wall("bot_challenge", "It asks.")}),
        ("high", "pages", {"wall": Wall("rate_limit", "It asks.")}),
        ("infeasible", "none", {"landing": 404}),
        ("infeasible", "none", {"landing": None}),
        ("high", "pages", {}),
        ("medium", "structured_data", {"sample": WELL, "sitemap": MAP}),
        ("medium", "structured_data", {"sample": WELL, "sitemap": MAP, "feed": feed(None, None, 403)}),
        ("high", "structured_data", {"sample": WELL}),
        ("high", "structured_data", {"sample": Sample(PAGES, 0, {"name": 1.0, "price": 0.5}), "sitemap": MAP}),
        ("high", "pages", {"sample": Sample(PAGES, 0, {"name": 0.0, "price": 0.0}), "sitemap": MAP}),
        ("high", "structured_data", {"sample": WELL, "sitemap": MAP, "robots": Robots(RobotsState.PARSED, 300.0)}),
        ("medium", "structured_data", {"sample": WELL, "sitemap": MAP, "landing": 404}),
    ],
)
def test_estimates(effort: str, way: str, found: dict[str, Any]) -> None:
    estimate = judged(Findings(**{"robots": PARSED, "landing": 200} | found))
    assert (estimate.effort, estimate.kind) == (effort, way)
    assert estimate.reasons and all(reason.strip() for reason in estimate.reasons)


def test_a_currency_is_proposed_where_all_agree() -> None:
    assert agreed({"usd"}) == "usd"
    assert [agreed(seen) for seen in ((), {"usd", "eur"}, {"usd", "xyz"}, {"xyz"})] == [None] * 4
    assert "currency" not in for_feed(feed(), None)["config"]
