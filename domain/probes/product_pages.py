"""Detection of product pages and product sitemaps by their URLs, and selection of a sample."""

import re
from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")
_PRODUCT_SEGMENTS = frozenset({"product", "products", "produkt", "produkte", "produkter", "produit", "produits", "producto",
                           "productos", "prodotto", "prodotti", "p", "dp", "item", "items", "sku", "pd"})  # fmt: skip
"""Segments of paths that precede the name of a product."""
_PRODUCT_PATH_PATTERNS = (re.compile(r"[-_/.]p-?\d{3,20}$"), re.compile(r"-\d{4,20}(\.html?)?$"))
"""Patterns for the end of a product page's path; only the last 40 characters of a path are searched."""
_PRODUCT_WORDS = ("product", "produkt", "produit", "prodotto", "item")
_OTHER_CONTENT_WORDS = ("category", "categories", "_cat", "collection", "post", "page", "blog", "image", "tag", "brand")


def is_product_page_url(url: str) -> bool:
    """Return whether a URL probably leads to the page of one product.

    Examples are `/products/oak-chair`, `/p/123` and `/oak-chair-12345.html`.
    """
    path = urlsplit(url).path.lower().rstrip("/")
    segments = [segment for segment in path.split("/") if segment]
    if any(segment in _PRODUCT_SEGMENTS for segment in segments[:-1]):
        return segments[-1] not in _PRODUCT_SEGMENTS and "." not in segments[-1].removesuffix(".html").removesuffix(
            ".htm"
        )
    return any(pattern.search(path[-40:]) for pattern in _PRODUCT_PATH_PATTERNS)


def is_product_sitemap_url(url: str) -> bool:
    """Return whether the URL of a sitemap indicates that the sitemap lists only products."""
    parts = urlsplit(url.lower())
    name = f"{parts.path.rpartition('/')[2]}?{parts.query}".replace("sitemap", "")
    return any(word in name for word in _PRODUCT_WORDS) and not any(word in name for word in _OTHER_CONTENT_WORDS)


def sort_sitemaps(sitemaps: Sequence[str]) -> list[str]:
    """Return the URLs of sitemaps with product sitemaps first, and sitemaps of other content last."""

    def rank(sitemap: str) -> int:
        name = urlsplit(sitemap).path.lower()
        return 0 if is_product_sitemap_url(sitemap) else 2 if any(word in name for word in _OTHER_CONTENT_WORDS) else 1

    return sorted(sitemaps, key=rank)


def sample_evenly(items: Sequence[T], max_items: int) -> list[T]:
    """Return at most `max_items` of the items, evenly distributed over the sequence."""
    if len(items) <= max_items:
        return list(items)
    return [items[index * (len(items) - 1) // max(1, max_items - 1)] for index in range(max_items)]
