"""URLs of products, of sitemaps that list them, and the distribution of a sample."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.probes.product_pages import is_product_page_url, is_product_sitemap_url, sample_evenly, sort_sitemaps

SITE = "https://vendor.example"


@pytest.mark.parametrize(
    "path",
    ["/products/oak-chair", "/product/oak-chair/", "/en/produkt/eiche", "/p/12345", "/dp/B0001", "/collections/sofas/products/oak", "/oak-chair-12345.html",
     "/oak-chair-12345", "/item/oak.html", "/furniture/oak-p-987", "/shop/oak_p987"],
)  # fmt: skip
def test_urls_of_products_are_recognised(path: str) -> None:
    assert is_product_page_url(SITE + path)


@pytest.mark.parametrize(
    "path",
    ["", "/", "/products", "/products/", "/product-category/chairs", "/about-us", "/blog/our-products", "/collections/all", "/oak-chair-12.html", "/cdn/products/oak.jpg",
     "/en/products/product", "/search?q=/products/x"],
)  # fmt: skip
def test_other_urls_are_not_products(path: str) -> None:
    assert not is_product_page_url(SITE + path)


def test_sitemaps_of_products_are_recognised() -> None:
    named = [
        "sitemap_products_1.xml?from=1&to=9",
        "product-sitemap.xml",
        "sitemap.xml?type=products",
        "sitemap-produkte.xml",
    ]
    others = [
        "sitemap.xml",
        "sitemap_pages_1.xml",
        "product_cat-sitemap.xml",
        "product-category-sitemap.xml",
        "post-sitemap.xml",
        "sitemap_collections_1.xml",
    ]
    assert [is_product_sitemap_url(f"{SITE}/{name}") for name in named] == [True] * 4
    assert [is_product_sitemap_url(f"{SITE}/{name}") for name in others] == [False] * 6
    assert sort_sitemaps([f"{SITE}/{name}" for name in ("sitemap_pages_1.xml", "a.xml", "product-sitemap.xml")]) == [
        f"{SITE}/product-sitemap.xml", f"{SITE}/a.xml", f"{SITE}/sitemap_pages_1.xml",
    ]  # fmt: skip


@settings(derandomize=True, deadline=None)
@given(st.integers(0, 300), st.integers(1, 20))
def test_a_sample_is_spread_from_the_first_to_the_last(count: int, most: int) -> None:
    chosen = sample_evenly(list(range(count)), most)
    assert len(chosen) == len(set(chosen)) == min(count, most) and chosen == sorted(chosen)
    if count and most > 1:
        assert (chosen[0], chosen[-1]) == (0, count - 1)
