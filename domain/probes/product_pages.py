"""Detection of product page URLs, and selection of a sample."""

import re
from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")
_STEPS = frozenset({"product", "products", "produkt", "produkte", "produkter", "produit", "produits", "producto",
                           "productos", "prodotto", "prodotti", "p", "dp", "item", "items", "sku", "pd"})  # fmt: skip
_TAILS = (re.compile(r"[-_/.]p-?\d{3,20}$"), re.compile(r"-\d{4,20}(\.html?)?$"))
"""Ends of paths of at most 40 characters, which are all that is inspected."""
_NAMED = ("product", "produkt", "produit", "prodotto", "item")
_NO_PRODUCTS = ("category", "categories", "_cat", "collection", "post", "page", "blog", "image", "tag", "brand")


def is_product_page(url: str) -> bool:
    """Return whether the URL looks like that of one product: `/products/oak-chair`, `/p/123`, `/oak-chair-12345.html`."""
    path = urlsplit(url).path.lower().rstrip("/")
    steps = [step for step in path.split("/") if step]
    if any(step in _STEPS for step in steps[:-1]):
        return steps[-1] not in _STEPS and "." not in steps[-1].removesuffix(".html").removesuffix(".htm")
    return any(tail.search(path[-40:]) for tail in _TAILS)


def lists_products(sitemap: str) -> bool:
    """Return whether a sitemap's name says that it lists products only."""
    parts = urlsplit(sitemap.lower())
    name = f"{parts.path.rpartition('/')[2]}?{parts.query}".replace("sitemap", "")
    return any(word in name for word in _NAMED) and not any(word in name for word in _NO_PRODUCTS)


def in_order(sitemaps: Sequence[str]) -> list[str]:
    """Sort the sitemaps of an index: product sitemaps first, sitemaps that name other content last."""

    def rank(sitemap: str) -> int:
        name = urlsplit(sitemap).path.lower()
        return 0 if lists_products(sitemap) else 2 if any(word in name for word in _NO_PRODUCTS) else 1

    return sorted(sitemaps, key=rank)


def spread(found: Sequence[T], most: int) -> list[T]:
    """Return at most `most` items, evenly distributed."""
    if len(found) <= most:
        return list(found)
    return [found[place * (len(found) - 1) // max(1, most - 1)] for place in range(most)]
