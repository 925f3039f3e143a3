"""Presentation of products: prices, stock, pictures, and two items side by side."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from domain.catalogue.model import Availability
from entrypoints.console.rendering import described, label, money, words
from entrypoints.console.translation import gettext

Json = Mapping[str, Any]
Words = Sequence[tuple[str, bool]]
"""Pieces of a text; True marks a difference from the other side."""
PRICES = ("price", "msrp", "map", "cost")
"""Fields of an offer's price in order of preference, as in matching (`going_price` of `domain/matching/features.py`)."""
PICTURES = "/console/pictures/"
_RANK = {availability: rank for rank, availability in enumerate(Availability)}
_COMPARED = (
    "title", "brand", "collection", "sku", "mpn", "gtin", "price", "stock", "colour", "finish", "axes", "materials",
    "dimensions", "weight", "category_path", "features", "description",
)  # fmt: skip


class Picture(NamedTuple):
    """A picture with the addresses of its small and large version."""

    small: str
    large: str
    alt: str
    role: str


class Offered(NamedTuple):
    """Lowest and highest price of offers, with their availability and quantity."""

    price: tuple[Json, Json] | None
    availability: str | None
    quantity: int | None


def title_of(product: Json) -> str:
    """Return the title of a product, else its vendor ID or ID."""
    title: str = product["data"].get("title") or product.get("external_id") or product["id"]
    return title


def price_path(offer: Json) -> str | None:
    """Return the field that contains an offer's price."""
    for path in PRICES:
        if offer.get(path) is not None:
            return path
    return None


def amount_of(offer: Json) -> Json | None:
    """Return an offer's price as money of the API."""
    path, currency = price_path(offer), offer.get("currency")
    return {"amount": offer[path], "currency": currency} if path and currency else None


def price_of(offers: Iterable[Json]) -> tuple[Json, Json] | None:
    """Return the lowest and highest prices; of several currencies, those of the most frequent."""
    known = [amount for offer in offers if (amount := amount_of(offer)) is not None]
    if not known:
        return None
    [(code, _)] = Counter([amount["currency"] for amount in known]).most_common(1)
    same = sorted([amount for amount in known if amount["currency"] == code], key=lambda one: int(one["amount"]))
    return same[0], same[-1]


def quantity_of(offers: Sequence[Json]) -> int | None:
    """Return the total quantity of offers; None if an offer in stock has no quantity."""
    known = [offer["quantity"] for offer in offers if offer.get("quantity") is not None]
    at_hand = (Availability.IN_STOCK, Availability.LOW_STOCK)
    unknown = [one for one in offers if one.get("quantity") is None and one["availability"] in at_hand]
    return sum(known) if known and not unknown else None


def offered(offers: Sequence[Json]) -> Offered:
    """Summarise the offers that are not withdrawn."""
    stated = [offer for offer in offers if not offer.get("withdrawn_at")]
    best = max([offer["availability"] for offer in stated], key=lambda one: _RANK.get(one, 0), default=None)
    return Offered(price_of(stated), best, quantity_of(stated))


def pictures_of(*media: Json) -> list[Picture]:
    """Return the distinct pictures among media, heroes first; stored ones by our address, others by the vendor's."""
    found: dict[str, Picture] = {}
    for one in media:
        role, url = one.get("role") or "", one.get("url", "")
        if role in ("video", "document") or not (one.get("id") or _origin_of(url)):
            continue
        small, large = (f"{PICTURES}{one['id']}?w={width}" if one.get("id") else url for width in (320, 1600))
        found.setdefault(large, Picture(small, large, one.get("alt") or "", role))
    return sorted(found.values(), key=lambda picture: picture.role != "hero")


def origins_of(pictures: Iterable[Picture | None]) -> list[str]:
    """Return the external origins of pictures for a page's content security policy."""
    return sorted({origin for picture in pictures if picture is not None and (origin := _origin_of(picture.small))})


def _origin_of(url: str) -> str:
    """Return the origin of an https address; empty for any other address, which no page shows."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if parts.scheme != "https" or not re.fullmatch(r"[A-Za-z0-9.-]+", host):
        return ""
    return f"https://{host}" + (f":{port}" if port else "")


@dataclass(frozen=True, slots=True)
class Item:
    """One side of a match: product, titles, pictures and facts as texts.

    Attributes:
        pounds: The weight in hundredths of a pound.
        live: Whether the product still exists.

    """

    product: str
    title: str
    variant: str = ""
    pictures: Sequence[Picture] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    sources: Sequence[str] = ()
    pounds: int | None = None
    live: bool = True


class Compared(NamedTuple):
    """A fact of both items; `agrees` is None if only one item states it."""

    name: str
    left: Words
    right: Words
    agrees: bool | None


def item_of(side: Json, product: Json | None) -> Item:
    """Return a side of a match from the API's product, which is None if it was deleted."""
    if product is None:
        return Item(side["product"], gettext("Deleted item"), live=False)
    variants = product["variants"]
    variant = next((one for one in variants if one["id"] == side["id"]), variants[0] if len(variants) == 1 else {})
    whole, own, offers = product["data"], variant.get("data", {}), variant.get("offers", [])
    title = own.get("title") or ""
    facts = described(whole | own)
    facts["title"] = " · ".join(dict.fromkeys(text for text in (whole.get("title"), title) if text))
    facts["stock"] = ", ".join(dict.fromkeys(words(offer["availability"]) for offer in offers))
    if price := price_of(offers):
        name = next(name for name in PRICES if any(name in offer for offer in offers))
        facts["price"] = money(price[0]) + ("" if name == "price" else f" ({label(name, 'amounts')})")
    return Item(
        product["id"],
        whole.get("title") or title_of({**product, "data": own}),
        title if title != whole.get("title") else "",
        pictures_of(*own.get("media", ()), *whole.get("media", ()))[:4],
        facts,
        tuple(dict.fromkeys(offer["source"] for offer in offers if "source" in offer)),
        (own.get("weight") or {}).get("hundredths_lb"),
    )


def compared(left: Item, right: Item) -> list[Compared]:
    """Return the facts that either item states; weights that differ by at most 1% are the same."""
    weights = [side.pounds for side in (left, right) if side.pounds is not None]
    alike = len(weights) == 2 and (max(weights) - min(weights)) * 100 <= max(weights)
    found = []
    for name in _COMPARED:
        a, b = left.facts.get(name, ""), right.facts.get(name, "")
        same = a.casefold() == b.casefold() or (name == "weight" and alike)
        if a and b and not same:
            found.append(Compared(name, *marked(a, b), agrees=False))
        elif a or b:
            found.append(Compared(name, [(a, False)], [(b, False)], agrees=True if a and b else None))
    return found


def marked(left: str, right: str) -> tuple[Words, Words]:
    """Split both texts into pieces and mark the words that the other text lacks or contains less often."""
    a, b = left[:600].split(), right[:600].split()
    return list(_pieces(a, b)), list(_pieces(b, a))


def _pieces(text: Sequence[str], others: Sequence[str]) -> Iterator[tuple[str, bool]]:
    left = Counter(word.casefold() for word in others)

    def differs(word: str) -> bool:
        left[word.casefold()] -= 1
        return left[word.casefold()] < 0

    for apart, piece in groupby(text, differs):
        yield " ".join(piece), apart
