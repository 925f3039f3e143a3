"""A product's JSON as lists and pages show it: one line of a list, its prices and stock, its pictures."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from domain.catalogue.model import Availability

Json = Mapping[str, Any]
PICTURES: Final = "/console/pictures/"
_NO_PICTURES: Final = frozenset({"video", "document"})
_RANK: Final = {availability: rank for rank, availability in enumerate(Availability)}
_AT_HAND: Final = frozenset({Availability.IN_STOCK, Availability.LOW_STOCK})
ASKED: Final = ("price", "msrp", "map", "cost")
"""What stands for an offer's price, the first that it has: as matching goes by it (`domain/matching/features.py`)."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: where a small and a large one are shown from."""

    small: str
    large: str
    alt: str
    role: str


@dataclass(frozen=True, slots=True)
class Span:
    """The lowest and the highest of some amounts in one currency, as the API's money."""

    low: Json
    high: Json


@dataclass(frozen=True, slots=True)
class Row:
    """A product in a list."""

    id: str
    title: str
    brand: str
    status: str
    picture: Picture | None
    variants: int
    sources: int
    price: Span | None
    availability: str | None
    quantity: int | None
    merged: bool
    updated_at: str


def title_of(product: Json) -> str:
    """What to call a product: its title, else the id its source knows it by."""
    title: str = product["data"].get("title") or product.get("external_id") or product["id"]
    return title


def offers_of(product: Json) -> list[Json]:
    """Every offer that its source states now."""
    return [offer for variant in product["variants"] for offer in variant["offers"] if not offer.get("withdrawn_at")]


def asked_of(offer: Json) -> Json | None:
    """What an offer asks, as the API's money."""
    amount = next((offer[name] for name in ASKED if offer.get(name) is not None), None)
    return {"amount": amount, "currency": offer["currency"]} if amount is not None and offer.get("currency") else None


def span_of(amounts: Iterable[Json | None]) -> Span | None:
    """From the lowest to the highest; of several currencies, those of the most frequent."""
    known = [amount for amount in amounts if amount is not None]
    if not known:
        return None
    codes = [amount["currency"] for amount in known]
    code = max(dict.fromkeys(codes), key=codes.count)
    same = sorted((amount for amount in known if amount["currency"] == code), key=lambda amount: int(amount["amount"]))
    return Span(same[0], same[-1])


def best_availability(offers: Sequence[Json]) -> str | None:
    """The best that any of the offers has."""
    return max((offer["availability"] for offer in offers), key=lambda one: _RANK.get(one, 0), default=None)


def quantity_of(offers: Sequence[Json]) -> int | None:
    """The pieces of all offers; None where one that can be had does not tell how many there are: a sum of the others says nothing."""
    known = [offer["quantity"] for offer in offers if offer.get("quantity") is not None]
    untold = any(offer.get("quantity") is None and offer["availability"] in _AT_HAND for offer in offers)
    return sum(known) if known and not untold else None


def row_of(product: Json) -> Row:
    """The product as a line of a list."""
    offers = offers_of(product)
    return Row(
        id=product["id"],
        title=title_of(product),
        brand=product["data"].get("brand") or "",
        status=product["status"],
        picture=next(iter(pictures_of(product["data"].get("media", ()))), None),
        variants=len(product["variants"]),
        sources=len({offer["source"] for offer in offers}),
        price=span_of(map(asked_of, offers)),
        availability=best_availability(offers),
        quantity=quantity_of(offers),
        merged=bool(product.get("merged_from")),
        updated_at=product["updated_at"],
    )


def pictures_of(media: Iterable[Json]) -> list[Picture]:
    """The pictures among media, those stored here by our own address, others by their vendor's; heroes first."""
    found = []
    for one in media:
        if one.get("role") in _NO_PICTURES:
            continue
        if one.get("id"):
            small, large = f"{PICTURES}{one['id']}?w=320", f"{PICTURES}{one['id']}?w=1600"
        elif _origin_of(one.get("url", "")):
            small = large = one["url"]
        else:
            continue
        found.append(Picture(small, large, one.get("alt") or "", one.get("role") or ""))
    return sorted(found, key=lambda picture: picture.role != "hero")


def origins_of(pictures: Iterable[Picture | None]) -> list[str]:
    """The foreign servers that pictures are shown from, for a page's policy."""
    return sorted({origin for picture in pictures if picture is not None and (origin := _origin_of(picture.small))})


def _origin_of(url: str) -> str:
    """`https://host` of a plain address; empty for any other, which no page shows."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    if (
        parts.scheme != "https"
        or not host
        or not all(char.isascii() and (char.isalnum() or char in "-.") for char in host)
    ):
        return ""
    return f"https://{host}" + (f":{port}" if port else "")
