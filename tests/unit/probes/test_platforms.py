"""Signals of platforms: each counts by its weight, and contradicting signals reduce the confidence."""

import pytest

from domain.probes.facts import PageFacts, ProbeResponse
from domain.probes.model import Platform
from domain.probes.platforms import SIGNALS, compute_probability, detect_platform

URL = "https://vendor.example/"
RESPONSES = {
    "shopify": ProbeResponse(URL, 200, {"x-shopid": "1", "powered-by": "Shopify"}),
    "woocommerce": ProbeResponse(URL, 200, cookies=("wp_woocommerce_session_1",)),
    "bigcommerce": ProbeResponse(URL, 200, cookies=("SHOP_SESSION_TOKEN", "fornax_anonymousId")),
    "magento": ProbeResponse(URL, 200, {"x-magento-tags": "a"}),
    "squarespace": ProbeResponse(URL, 200, {"server": "Squarespace"}),
}


@pytest.mark.parametrize("platform", RESPONSES)
def test_each_platform_is_detected_by_its_response(platform: str) -> None:
    found = detect_platform([(RESPONSES[platform], PageFacts())])
    assert found.platform == platform and 0.5 <= found.confidence <= 1
    assert {sign.platform for sign in found.evidence} == {platform}


def test_each_platform_is_detected_by_its_pages() -> None:
    stencil = PageFacts(
        meta_values={"platform": "bigcommerce.stencil"}, assets=("https://cdn11.bigcommerce.com/s-1/a.js",)
    )
    assert detect_platform([(ProbeResponse(URL, 200), stencil)]).platform == "bigcommerce"
    square = PageFacts(
        assets=("https://static1.squarespace.com/static/a.js", "https://images.squarespace-cdn.com/content/1.jpg")
    )
    assert detect_platform([(ProbeResponse(URL, 200), square)]).platform == "squarespace"


def test_a_site_without_signals_is_custom() -> None:
    found = detect_platform([(ProbeResponse(URL, 200, {"server": "nginx"}), PageFacts())])
    assert (found.platform, found.confidence, found.evidence) == ("custom", 1.0, ())
    assert all(found.should_query(platform) for platform in Platform)


def test_a_blog_is_not_a_shop() -> None:
    blog = PageFacts(meta_values={"generator": "WordPress 6.6"}, assets=("/wp-content/themes/a.css",))
    found = detect_platform([(ProbeResponse(URL, 200), blog)])
    assert found.platform == "custom" and found.confidence < 0.9 and found.should_query(Platform.WOOCOMMERCE)


def test_contradicting_signals_reduce_the_confidence() -> None:
    alone = detect_platform([(ProbeResponse(URL, 200), PageFacts(assets=("//cdn.shopify.com/a.js",)))])
    both = detect_platform(
        [(ProbeResponse(URL, 200, {"server": "Squarespace"}), PageFacts(assets=("//cdn.shopify.com/a.js",)))]
    )
    assert (
        alone.platform == "shopify"
        and both.confidence < 0.9
        and {one.platform for one in both.evidence} == {"shopify", "squarespace"}
    )


def test_signals_add_up_and_endpoints_are_signals() -> None:
    found = detect_platform([], ["/products.json"])
    assert (found.platform, found.confidence) == ("shopify", 0.95)
    more = detect_platform([(ProbeResponse(URL, 200, cookies=("_shopify_s",)), PageFacts())], ["/products.json"])
    assert found.confidence < more.confidence == round(compute_probability(more.evidence, Platform.SHOPIFY), 2)
    assert detect_platform([(RESPONSES["magento"], PageFacts())]).should_query(Platform.SHOPIFY) is False


def test_weights_are_fractions_and_every_platform_has_signals() -> None:
    assert all(0 < signal.weight < 1 for signal in SIGNALS)
    assert {signal.platform for signal in SIGNALS} == set(Platform) - {Platform.CUSTOM}
    places = {"header", "cookie", "asset", "meta", "generator", "class", "script", "endpoint"}
    assert {signal.text_kind for signal in SIGNALS} == places
