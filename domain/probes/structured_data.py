"""Tolerant, bounded extraction of products from JSON-LD (schema.org)."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from domain.probes.facts import BlockFacts

LONGEST_BLOCK = 512 * 1024
"""Maximum characters of a block; a longer one counts as malformed."""
_NODES = 50_000
"""Maximum number of values of a page's blocks that are inspected."""
_PRODUCTS = 200
"""Maximum number of products of one page."""
_DEPTH = 40
_KINDS = frozenset({"product", "productgroup", "productmodel", "individualproduct", "someproducts"})
_ELSEWHERE = frozenset(
    {"itemListElement", "isRelatedTo", "isSimilarTo", "isAccessoryOrSparePartFor", "isConsumableFor", "isVariantOf"}
)
"""Properties whose products belong to other pages."""

COVERED: Final[Mapping[str, tuple[str, ...]]] = {
    "name": ("name",),
    "description": ("description",),
    "brand": ("brand", "manufacturer"),
    "image": ("image",),
    "sku": ("sku",),
    "mpn": ("mpn",),
    "gtin": ("gtin", "gtin8", "gtin12", "gtin13", "gtin14", "isbn"),
    "color": ("color",),
    "material": ("material",),
    "category": ("category",),
    "dimensions": ("width", "height", "depth", "size"),
    "weight": ("weight",),
}
"""The fields of the coverage, and the properties of a product or variant that state each."""
OFFERED: Final[Mapping[str, tuple[str, ...]]] = {
    "price": ("price", "lowPrice"),
    "currency": ("priceCurrency",),
    "availability": ("availability",),
}
"""Fields of a product's offers or their price specifications."""
FIELDS = (*COVERED, *OFFERED)


def read(blocks: Iterable[str]) -> BlockFacts:
    """Extract the products of a page's JSON-LD blocks; malformed blocks are counted and skipped."""
    malformed, values = 0, []
    for block in blocks:
        try:
            values.append(_decoded(block))
        except (ValueError, RecursionError):
            malformed += 1
    products = list(_products(values))
    stated = tuple(_stated(product) for product in products)
    return BlockFacts(stated, frozenset(one for product in products for one in _currencies(product)), malformed)


def coverage(products: Sequence[frozenset[str]], bare_pages: int) -> dict[str, float]:
    """Return the share of products that state each field; pages without data count as products without fields."""
    whole = len(products) + bare_pages
    if not whole:
        return {}
    return {name: round(sum(name in product for product in products) / whole, 2) for name in FIELDS}


def _decoded(block: str) -> Any:
    """Decode a block, tolerating surrounding comments and CDATA, a trailing semicolon and raw line breaks in texts."""
    if len(block) > LONGEST_BLOCK:
        raise ValueError
    text = block.strip().removeprefix("//").strip()
    for before, behind in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("/*<![CDATA[*/", "/*]]>*/")):
        text = text.removeprefix(before).removesuffix(behind).removesuffix("//").strip()
    return json.loads(text.removesuffix(";"), strict=False)


def _products(values: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the products that the page is about, or those of its lists if there are no others."""
    listed: list[Mapping[str, Any]] = []
    own = 0
    for node, elsewhere in _nodes(values):
        if not _is_product(node):
            continue
        if elsewhere:
            listed.append(node)
        elif own < _PRODUCTS:
            own += 1
            yield node
    if not own:
        yield from listed[:_PRODUCTS]


def _nodes(values: Sequence[Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield every object outside products, and whether it belongs to other pages' products."""
    waiting = [(value, 0, False) for value in reversed(values)]
    left = _NODES
    while waiting and left:
        value, depth, elsewhere = waiting.pop()
        left -= 1
        if depth > _DEPTH:
            continue
        if isinstance(value, list):
            waiting.extend((item, depth + 1, elsewhere) for item in reversed(value[:_NODES]))
        elif isinstance(value, dict):
            yield value, elsewhere
            if not _is_product(value):
                waiting.extend(
                    (part, depth + 1, elsewhere or name in _ELSEWHERE) for name, part in reversed(value.items())
                )


def _is_product(node: Mapping[str, Any]) -> bool:
    kinds = node.get("@type")
    return any(
        isinstance(kind, str) and kind.rpartition("/")[2].rpartition(":")[2].lower() in _KINDS for kind in _many(kinds)
    )


def _stated(product: Mapping[str, Any]) -> frozenset[str]:
    parts = [product, *_objects(product.get("hasVariant"))]
    found = {
        name for name, keys in COVERED.items() if any(_has_content(part.get(key)) for part in parts for key in keys)
    }
    offers = [offer for part in parts for offer in _offers(part)]
    found |= {
        name for name, keys in OFFERED.items() if any(_has_content(one.get(key)) for one in offers for key in keys)
    }
    return frozenset(found)


def _offers(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the offers of a product or variant, including those in an AggregateOffer, and their price specifications."""
    for offer in _objects(part.get("offers")):
        yield offer
        for inner in (*_objects(offer.get("offers")), offer):
            yield inner
            yield from _objects(inner.get("priceSpecification"))


def _currencies(product: Mapping[str, Any]) -> Iterator[str]:
    for part in (product, *_objects(product.get("hasVariant"))):
        for offer in _offers(part):
            stated = offer.get("priceCurrency")
            if isinstance(stated, str) and len(stated) == 3:
                yield stated.lower()


def _has_content(value: Any) -> bool:
    """Return whether the value has content; empty texts, lists and objects, and objects with a type only, have none."""
    if isinstance(value, str):
        return bool(value.strip())
    if isinstance(value, dict):
        return any(
            _has_content(part)
            for name, part in list(value.items())[:50]
            if not name.startswith("@") and name != "unitCode"
        )
    if isinstance(value, list):
        return any(_has_content(item) for item in value[:50] if not isinstance(item, list))
    return value is not None


def _objects(value: Any) -> Sequence[Mapping[str, Any]]:
    return [item for item in _many(value) if isinstance(item, dict)][:_PRODUCTS]


def _many(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else [value]
