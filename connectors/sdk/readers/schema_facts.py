"""Cells of one schema.org product: codes, texts, measures with units, and an offer with a single price."""

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from ..tables import Cell
from .json_ld import Node, each, kinds, text_of

Tell = Callable[..., None]

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
_GTINS = ("gtin", "gtin14", "gtin13", "gtin12", "gtin8", "isbn")
_UNITS = {
    "lbr": "lb", "kgm": "kg", "grm": "g", "onz": "oz", "inh": "in", "fot": "ft", "cmt": "cm", "mmt": "mm", "mtr": "m",
}  # fmt: skip
"""Unit codes of UN/CEFACT Recommendation 20."""
_WRITTEN = frozenset(
    "lb lbs pound pounds kg g oz ounce ounces gram grams kilogram kilograms in inch inches ft feet cm mm m \" '".split()
)
_CAPACITY = re.compile(r"capacit|max(?:imum)?\b|limit|load|support|holds?\b|up to|rated", re.IGNORECASE)
_LISTS = frozenset({"listprice", "strikethroughprice", "msrp", "srp"})
_CAPACITY_NAMED = re.compile(r"capacit|supports? up to|holds? up to|load limit", re.IGNORECASE)
_FIGURE = re.compile(r"\d+(?:\.\d+)?")
_BESIDE = 40
_LONGEST_TEXT = 20_000
_LARGEST = 500


def facts(
    group: Node | None, node: Node, offer: Node | None, address: str | None, tell: Tell
) -> dict[str, Cell] | None:
    """Return the cells of a variant by column, with its group's values where it has none, or None without any key."""
    parent = group or {}
    cells: dict[str, Cell] = {name: text_of(node.get(name)) for name in ("sku", "mpn", "color", "size", "pattern")}
    cells["gtin"] = next((found for name in _GTINS if (found := text_of(node.get(name)))), None)
    cells["identifier"] = _own_key(node, address, alone=group is None)
    if not any(cells[name] for name in ("identifier", "sku", "gtin", "mpn")):
        tell("a product without sku, gtin, mpn, productID or address of its own is left out", "sku")
        return None
    if group is not None:
        # A group may be named by its address alone, or by no more than the page it stands on.
        cells["productGroupID"] = _key(group, "productGroupID", "productID", "sku", "@id", "url") or address
    cells["name"] = text_of(parent.get("name")) or text_of(node.get("name"))
    for name in ("brand", "description", "material", "countryOfOrigin"):
        cells[name] = text_of(node.get(name)) or text_of(parent.get(name))
    cells["material"] = "/".join(_texts(node.get("material") or parent.get("material"))) or None
    cells["category"] = text_of(node.get("category")) or text_of(parent.get("category"))
    cells["image"] = list(_images(parent.get("image") or node.get("image"))) or None
    cells["variant image"] = (list(_images(node.get("image"))) or None) if group is not None else None
    for name in ("weight", "width", "depth", "height"):
        cells[name] = _measure(name, node.get(name) or parent.get(name), tell)
    if _is_capacity(cells["weight"], cells["description"], node.get("additionalProperty")):
        cells["weight"] = None
        tell("the weight is named a capacity elsewhere on the page: it is not used", "weight")
    _add_offer(cells, offer, node.get("offers") or parent.get("offers"), tell)
    return cells


def _key(node: Node, *names: str) -> str | None:
    return next((found for name in names if (found := text_of(node.get(name)))), None)


def _own_key(node: Node, address: str | None, *, alone: bool) -> str | None:
    """Return the key of a product without a code: the shop's number, or its address."""
    return _key(node, "productID", "sku", "@id", "url") or (address if alone else None)


def _texts(value: Any) -> Iterator[str]:
    for element in each(value):
        if text := text_of(element):
            yield text


def _images(value: Any) -> Iterator[str]:
    for image in each(value):
        if isinstance(image, dict):
            image = image.get("contentUrl") or image.get("url")
        if isinstance(image, str) and image.strip():
            yield image.strip()


def _measure(name: str, value: Any, tell: Tell) -> str | None:
    """Return a weight or length with its unit as text; report a capacity or an unknown unit and return None."""
    for element in each(value):
        number, unit, about = _parts(element)
        if not number:
            continue
        if _CAPACITY.search(about[:_LARGEST]):
            tell(f"the {name} is what the product carries, not its own: it is not used", name)
        elif unit is None:
            tell(f"the {name} has no unit that is known: it is not used", name)
        else:
            return f"{number} {unit}".strip()
    return None


def _is_capacity(weight: Cell, description: Cell, properties: Any) -> bool:
    """Return whether the product's own texts name the weight's number as a capacity."""
    number = _FIGURE.match(str(weight or ""))
    if number is None:
        return False
    figure = re.compile(rf"(?<![\d.]){re.escape(number[0])}(?![\d.])")
    texts = [str(description or "")[:_LONGEST_TEXT]]
    for one in each(properties)[:_LARGEST]:
        if isinstance(one, dict):
            texts.append(f"{one.get('name')} {text_of(one.get('value'))}"[:_LARGEST])
    return any(
        figure.search(text[max(0, found.start() - _BESIDE) : found.end() + _BESIDE])
        for text in texts
        for found in _CAPACITY_NAMED.finditer(text)
    )


def _parts(value: Any) -> tuple[str, str | None, str]:
    """Return number, unit (None if unknown, '' if part of the text) and all words of a QuantitativeValue or text."""
    if isinstance(value, dict):
        number = text_of(value.get("value")) or text_of(value.get("minValue")) or ""
        about = " ".join(str(value.get(name) or "") for name in ("name", "description", "unitText", "value"))
        code = (text_of(value.get("unitCode")) or "").lower()
        written = (text_of(value.get("unitText")) or code).lower().rstrip(".")
        unit = _UNITS.get(code) or (written if written in _WRITTEN else None)
        return number, unit if unit or number.replace(".", "", 1).isdigit() else "", about
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return str(value), None, ""
    text = value.strip() if isinstance(value, str) else ""
    return text, None if text.replace(".", "", 1).replace(",", "", 1).isdigit() else "", text


def _add_offer(cells: dict[str, Cell], own: Node | None, offers: Any, tell: Tell) -> None:
    """Set price and availability from the variant's own offer, or from offers that agree."""
    given = [own] if own is not None else [offer for offer in each(offers) if isinstance(offer, dict)]
    details = [_offer(offer, tell) for offer in given[:_LARGEST]]
    details = [offer for offer in details if offer]
    for name in ("price", "priceCurrency", "list price", "availability", "inventoryLevel", "availabilityStarts"):
        values = {offer[name] for offer in details if offer.get(name)}
        if len(values) == 1:
            cells[name] = values.pop()
        elif values:
            tell(f"the offers of one product differ in {name}: none of them is used", name)
    if not cells.get("price"):
        cells.pop("priceCurrency", None)


def _offer(offer: Node, tell: Tell) -> dict[str, str | None]:
    aggregate = "aggregateoffer" in kinds(offer) or ("lowPrice" in offer and "price" not in offer)
    found = {name: text_of(offer.get(name)) for name in ("price", "priceCurrency", "availability")}
    found["availabilityStarts"] = text_of(offer.get("availabilityStarts"))
    found["inventoryLevel"] = text_of(offer.get("inventoryLevel"))
    if aggregate and not found["price"]:
        found["price"] = _only_price(offer, tell)
    for specification in each(offer.get("priceSpecification")):
        if isinstance(specification, dict):
            _specify(found, specification)
    return found


def _only_price(offer: Node, tell: Tell) -> str | None:
    """Return the price of an aggregate offer whose lowest and highest prices agree, else None."""
    low, high = text_of(offer.get("lowPrice")), text_of(offer.get("highPrice"))
    if low and (high == low or (high is None and text_of(offer.get("offerCount")) == "1")):
        return low
    if low or high:
        tell("the offer names a span of prices, of which none is the product's: it is not used", "price")
    return None


def _specify(found: dict[str, str | None], specification: Mapping[str, Any]) -> None:
    """Set the price or the list price from a price specification; other kinds are ignored."""
    kind = (text_of(specification.get("priceType")) or "").rsplit("/", 1)[-1].lower()
    price = text_of(specification.get("price"))
    if kind in _LISTS:
        found["list price"] = found.get("list price") or price
    elif not kind and "referenceQuantity" not in specification and "eligibleQuantity" not in specification:
        found["price"] = found.get("price") or price
    found["priceCurrency"] = found.get("priceCurrency") or text_of(specification.get("priceCurrency"))
