"""Extraction of products from JSON-LD (schema.org), with tolerance for errors and limits on the work."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from domain.probes.facts import JsonLdFacts

MAX_BLOCK_CHARS = 512 * 1024
"""Maximum number of characters of a JSON-LD block; a longer block counts as malformed."""
_MAX_VALUES = 50_000
"""Maximum number of JSON values of a page that are examined; further values are ignored."""
_MAX_PRODUCTS = 200
"""Maximum number of products of a page, and of objects in a list; further ones are ignored."""
_MAX_DEPTH = 40
_PRODUCT_TYPES = frozenset({"product", "productgroup", "productmodel", "individualproduct", "someproducts"})
_OTHER_PAGE_PROPERTIES = frozenset(
    {"itemListElement", "isRelatedTo", "isSimilarTo", "isAccessoryOrSparePartFor", "isConsumableFor", "isVariantOf"}
)
"""Properties whose values are products of other pages."""

PRODUCT_PROPERTIES: Final[Mapping[str, tuple[str, ...]]] = {
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
"""For each field, the schema.org properties of a product or variant that state the field."""
OFFER_PROPERTIES: Final[Mapping[str, tuple[str, ...]]] = {
    "price": ("price", "lowPrice"),
    "currency": ("priceCurrency",),
    "availability": ("availability",),
}
"""For each field, the schema.org properties of an offer or its price specification that state the field."""
STATED_FIELDS = (*PRODUCT_PROPERTIES, *OFFER_PROPERTIES)
"""All fields that structured data can state."""


def extract_products(json_ld_blocks: Iterable[str]) -> JsonLdFacts:
    """Return the fields and currencies of the products in the JSON-LD blocks of a page.

    Malformed blocks are counted and skipped.
    """
    malformed, values = 0, []
    for block in json_ld_blocks:
        try:
            values.append(_parse_block(block))
        except (ValueError, RecursionError):
            malformed += 1
    products = list(_find_products(values))
    stated = tuple(_find_stated_fields(product) for product in products)
    return JsonLdFacts(
        stated, frozenset(one for product in products for one in _iterate_currencies(product)), malformed
    )


def compute_coverage(stated_fields: Sequence[frozenset[str]], pages_without_data: int) -> dict[str, float]:
    """Return the share of products that state each field, by field.

    Args:
        stated_fields: The stated fields of each product.
        pages_without_data: The number of pages without structured data; each counts as a product without fields.
    """
    total = len(stated_fields) + pages_without_data
    if not total:
        return {}
    return {name: round(sum(name in product for product in stated_fields) / total, 2) for name in STATED_FIELDS}


def _parse_block(block: str) -> Any:
    """Return the JSON value of a JSON-LD block. Raises ValueError or RecursionError.

    Surrounding comments and CDATA, a trailing semicolon, and raw line breaks in strings are tolerated.
    """
    if len(block) > MAX_BLOCK_CHARS:
        raise ValueError
    text = block.strip().removeprefix("//").strip()
    for before, behind in (("<!--", "-->"), ("<![CDATA[", "]]>"), ("/*<![CDATA[*/", "/*]]>*/")):
        text = text.removeprefix(before).removesuffix(behind).removesuffix("//").strip()
    return json.loads(text.removesuffix(";"), strict=False)


def _find_products(values: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the products of the page itself; if there are none, the products that belong to other pages."""
    listed: list[Mapping[str, Any]] = []
    yielded = 0
    for node, is_of_other_page in _walk_objects(values):
        if not _is_product(node):
            continue
        if is_of_other_page:
            listed.append(node)
        elif yielded < _MAX_PRODUCTS:
            yielded += 1
            yield node
    if not yielded:
        yield from listed[:_MAX_PRODUCTS]


def _walk_objects(values: Sequence[Any]) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """Yield every object that is not inside a product, and whether the object belongs to another page.

    Objects belong to another page if they are below one of _OTHER_PAGE_PROPERTIES.
    """
    pending = [(value, 0, False) for value in reversed(values)]
    remaining = _MAX_VALUES
    while pending and remaining:
        value, depth, is_of_other_page = pending.pop()
        remaining -= 1
        if depth > _MAX_DEPTH:
            continue
        if isinstance(value, list):
            pending.extend((item, depth + 1, is_of_other_page) for item in reversed(value[:_MAX_VALUES]))
        elif isinstance(value, dict):
            yield value, is_of_other_page
            if not _is_product(value):
                pending.extend(
                    (part, depth + 1, is_of_other_page or name in _OTHER_PAGE_PROPERTIES)
                    for name, part in reversed(value.items())
                )


def _is_product(node: Mapping[str, Any]) -> bool:
    """Return whether the type of a JSON-LD object is a product type."""
    kinds = node.get("@type")
    return any(
        isinstance(kind, str) and kind.rpartition("/")[2].rpartition(":")[2].lower() in _PRODUCT_TYPES
        for kind in _as_list(kinds)
    )


def _find_stated_fields(product: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the fields that a product, its variants or their offers state."""
    products = [product, *_list_objects(product.get("hasVariant"))]
    found = {
        name
        for name, keys in PRODUCT_PROPERTIES.items()
        if any(_has_content(item.get(key)) for item in products for key in keys)
    }
    offers = [offer for item in products for offer in _iterate_offers(item)]
    found |= {
        name
        for name, keys in OFFER_PROPERTIES.items()
        if any(_has_content(one.get(key)) for one in offers for key in keys)
    }
    return frozenset(found)


def _iterate_offers(product: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the offers of a product or variant, the offers in an AggregateOffer, and their price specifications."""
    for offer in _list_objects(product.get("offers")):
        yield offer
        for inner in (*_list_objects(offer.get("offers")), offer):
            yield inner
            yield from _list_objects(inner.get("priceSpecification"))


def _iterate_currencies(product: Mapping[str, Any]) -> Iterator[str]:
    """Yield the currencies of the offers of a product and its variants, in lower case."""
    for part in (product, *_list_objects(product.get("hasVariant"))):
        for offer in _iterate_offers(part):
            stated = offer.get("priceCurrency")
            if isinstance(stated, str) and len(stated) == 3:
                yield stated.lower()


def _has_content(value: Any) -> bool:
    """Return whether a JSON value has content.

    Empty strings, lists and objects have no content, and neither have objects that state only their type or unit.
    """
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


def _list_objects(value: Any) -> Sequence[Mapping[str, Any]]:
    """Return the objects in a JSON list, or a single object as a list."""
    return [item for item in _as_list(value) if isinstance(item, dict)][:_MAX_PRODUCTS]


def _as_list(value: Any) -> Sequence[Any]:
    """Return a list unchanged, and any other value as a list with one entry."""
    return value if isinstance(value, list) else [value]
