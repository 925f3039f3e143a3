"""Extraction of a row's cells from one schema.org product: codes, texts, measures, price and availability."""

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from ..tables import Cell
from .json_ld import Node, find_first_text, find_node_types, to_list

ReportFunction = Callable[..., None]
"""Function that reports data that could not be used; the arguments are `detail` and `column` of Report."""

COLUMNS: tuple[tuple[str, str | None], ...] = (
    ("productGroupID", "product_key"),
    ("identifier", "variant_key"),
    ("sku", "sku"),
    ("gtin", "gtin"),
    ("mpn", "mpn"),
    ("name", "title"),
    ("brand", "brand"),
    ("description", "description"),
    ("category", "category_path"),
    ("image", "media"),
    ("variant image", "variant_media"),
    ("color", "colour"),
    ("material", "materials"),
    ("size", "axes.Size"),
    ("pattern", "axes.Pattern"),
    ("weight", "weight"),
    ("width", "dimensions.width"),
    ("depth", "dimensions.depth"),
    ("height", "dimensions.height"),
    ("priceCurrency", "currency"),
    ("price", "price"),
    ("list price", "compare_at"),
    ("availability", "availability"),
    ("inventoryLevel", "quantity"),
    ("availabilityStarts", "incoming.0.eta"),
    ("countryOfOrigin", "compliance.country_of_origin"),
)
_GTIN_PROPERTIES = ("gtin", "gtin14", "gtin13", "gtin12", "gtin8", "isbn")
_UNIT_CODES = {
    "lbr": "lb", "kgm": "kg", "grm": "g", "onz": "oz", "inh": "in", "fot": "ft", "cmt": "cm", "mmt": "mm", "mtr": "m",
}  # fmt: skip
"""Unit codes of UN/CEFACT Recommendation 20."""
_UNIT_WORDS = frozenset(
    "lb lbs pound pounds kg g oz ounce ounces gram grams kilogram kilograms in inch inches ft feet cm mm m \" '".split()
)
_CAPACITY_WORDS = re.compile(r"capacit|max(?:imum)?\b|limit|load|support|holds?\b|up to|rated", re.IGNORECASE)
_LIST_PRICE_TYPES = frozenset({"listprice", "strikethroughprice", "msrp", "srp"})
_EXPLICIT_CAPACITY = re.compile(r"capacit|supports? up to|holds? up to|load limit", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_NEARBY_CHARS = 40
_MAX_TEXT_CHARS = 20_000
_MAX_ITEMS = 500


def extract_cells(
    group: Node | None, node: Node, offer: Node | None, page_url: str | None, report: ReportFunction
) -> dict[str, Cell] | None:
    """Return the cells of a variant by column; None if the variant has no key.

    Args:
        group: Product group of the variant, whose values are used where the variant has none; None without a group.
        node: The variant.
        offer: Offer of this variant only, or None.
        page_url: URL of the page if the page contains no other product; else None.
        report: Function that reports values that are not used, by detail and column.
    """
    parent = group or {}
    cells: dict[str, Cell] = {
        name: find_first_text(node.get(name)) for name in ("sku", "mpn", "color", "size", "pattern")
    }
    cells["gtin"] = next((found for name in _GTIN_PROPERTIES if (found := find_first_text(node.get(name)))), None)
    cells["identifier"] = _find_shop_key(node, page_url, is_only_product=group is None)
    if not any(cells[name] for name in ("identifier", "sku", "gtin", "mpn")):
        report("a product without sku, gtin, mpn, productID or its own URL is ignored", "sku")
        return None
    if group is not None:
        # A group may be identified by its URL only, or by its page only.
        cells["productGroupID"] = _find_text_of(group, "productGroupID", "productID", "sku", "@id", "url") or page_url
    cells["name"] = find_first_text(parent.get("name")) or find_first_text(node.get("name"))
    for name in ("brand", "description", "material", "countryOfOrigin"):
        cells[name] = find_first_text(node.get(name)) or find_first_text(parent.get(name))
    cells["material"] = "/".join(_iterate_texts(node.get("material") or parent.get("material"))) or None
    cells["category"] = find_first_text(node.get("category")) or find_first_text(parent.get("category"))
    cells["image"] = list(_iterate_images(parent.get("image") or node.get("image"))) or None
    cells["variant image"] = (list(_iterate_images(node.get("image"))) or None) if group is not None else None
    for name in ("weight", "width", "depth", "height"):
        cells[name] = _convert_measure(name, node.get(name) or parent.get(name), report)
    if _is_capacity(cells["weight"], cells["description"], node.get("additionalProperty")):
        cells["weight"] = None
        report("according to the page, this weight is a load capacity; it is not used", "weight")
    _add_offer(cells, offer, node.get("offers") or parent.get("offers"), report)
    return cells


def _find_text_of(node: Node, *names: str) -> str | None:
    return next((found for name in names if (found := find_first_text(node.get(name)))), None)


def _find_shop_key(node: Node, page_url: str | None, *, is_only_product: bool) -> str | None:
    """Return the shop's key of a product: product ID, SKU, node ID or URL; else the URL of its page, or None.

    The URL of the page is a key only if the page contains no other product.
    """
    return _find_text_of(node, "productID", "sku", "@id", "url") or (page_url if is_only_product else None)


def _iterate_texts(value: Any) -> Iterator[str]:
    for element in to_list(value):
        if text := find_first_text(element):
            yield text


def _iterate_images(value: Any) -> Iterator[str]:
    for image in to_list(value):
        if isinstance(image, dict):
            image = image.get("contentUrl") or image.get("url")
        if isinstance(image, str) and image.strip():
            yield image.strip()


def _convert_measure(name: str, value: Any, report: ReportFunction) -> str | None:
    """Return a weight or length with its unit as text; report a load capacity or an unknown unit and return None."""
    for element in to_list(value):
        number, unit, description = _split_measure(element)
        if not number:
            continue
        if _CAPACITY_WORDS.search(description[:_MAX_ITEMS]):
            report(f"the {name} is a load capacity; it is not used", name)
        elif unit is None:
            report(f"the unit of the {name} is unknown; the value is not used", name)
        else:
            return f"{number} {unit}".strip()
    return None


def _is_capacity(weight: Cell, description: Cell, properties: Any) -> bool:
    """Return whether the description or the properties state the number of `weight` as a load capacity."""
    number = _NUMBER.match(str(weight or ""))
    if number is None:
        return False
    figure = re.compile(rf"(?<![\d.]){re.escape(number[0])}(?![\d.])")
    texts = [str(description or "")[:_MAX_TEXT_CHARS]]
    for one in to_list(properties)[:_MAX_ITEMS]:
        if isinstance(one, dict):
            texts.append(f"{one.get('name')} {find_first_text(one.get('value'))}"[:_MAX_ITEMS])
    return any(
        figure.search(text[max(0, found.start() - _NEARBY_CHARS) : found.end() + _NEARBY_CHARS])
        for text in texts
        for found in _EXPLICIT_CAPACITY.finditer(text)
    )


def _split_measure(value: Any) -> tuple[str, str | None, str]:
    """Split a measure, which is a schema.org QuantitativeValue or a text, into number, unit and description.

    Returns:
        Number, unit and description. The number is a text, which may include the unit; in this case, the unit is
        empty. An unknown unit is None. The description contains all texts of the measure, so that the caller can
        search for words such as `capacity`.
    """
    if isinstance(value, dict):
        number = find_first_text(value.get("value")) or find_first_text(value.get("minValue")) or ""
        description = " ".join(str(value.get(name) or "") for name in ("name", "description", "unitText", "value"))
        code = (find_first_text(value.get("unitCode")) or "").lower()
        unit_text = (find_first_text(value.get("unitText")) or code).lower().rstrip(".")
        unit = _UNIT_CODES.get(code) or (unit_text if unit_text in _UNIT_WORDS else None)
        return number, unit if unit or number.replace(".", "", 1).isdigit() else "", description
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return str(value), None, ""
    text = value.strip() if isinstance(value, str) else ""
    return text, None if text.replace(".", "", 1).replace(",", "", 1).isdigit() else "", text


def _add_offer(cells: dict[str, Cell], variant_offer: Node | None, offers: Any, report: ReportFunction) -> None:
    """Set the cells of price and availability from `variant_offer`; without it, from values equal in all `offers`."""
    used = [variant_offer] if variant_offer is not None else [it for it in to_list(offers) if isinstance(it, dict)]
    details = [_extract_offer_cells(offer, report) for offer in used[:_MAX_ITEMS]]
    details = [offer for offer in details if offer]
    for name in ("price", "priceCurrency", "list price", "availability", "inventoryLevel", "availabilityStarts"):
        values = {offer[name] for offer in details if offer.get(name)}
        if len(values) == 1:
            cells[name] = values.pop()
        elif values:
            report(f"the offers of one product differ in {name}; none is used", name)
    if not cells.get("price"):
        cells.pop("priceCurrency", None)


def _extract_offer_cells(offer: Node, report: ReportFunction) -> dict[str, str | None]:
    aggregate = "aggregateoffer" in find_node_types(offer) or ("lowPrice" in offer and "price" not in offer)
    found = {name: find_first_text(offer.get(name)) for name in ("price", "priceCurrency", "availability")}
    found["availabilityStarts"] = find_first_text(offer.get("availabilityStarts"))
    found["inventoryLevel"] = find_first_text(offer.get("inventoryLevel"))
    if aggregate and not found["price"]:
        found["price"] = _find_only_price(offer, report)
    for specification in to_list(offer.get("priceSpecification")):
        if isinstance(specification, dict):
            _add_price_specification(found, specification)
    return found


def _find_only_price(offer: Node, report: ReportFunction) -> str | None:
    """Return the price of an aggregate offer if the lowest and highest price are equal; else report a price range."""
    low, high = find_first_text(offer.get("lowPrice")), find_first_text(offer.get("highPrice"))
    if low and (high == low or (high is None and find_first_text(offer.get("offerCount")) == "1")):
        return low
    if low or high:
        report("the offer has a price range instead of a price; the range is ignored", "price")
    return None


def _add_price_specification(prices: dict[str, str | None], specification: Mapping[str, Any]) -> None:
    """Set the price or the list price from a schema.org PriceSpecification, and the currency if it is not set yet."""
    kind = (find_first_text(specification.get("priceType")) or "").rsplit("/", 1)[-1].lower()
    price = find_first_text(specification.get("price"))
    if kind in _LIST_PRICE_TYPES:
        prices["list price"] = prices.get("list price") or price
    elif not kind and "referenceQuantity" not in specification and "eligibleQuantity" not in specification:
        prices["price"] = prices.get("price") or price
    prices["priceCurrency"] = prices.get("priceCurrency") or find_first_text(specification.get("priceCurrency"))
