"""Two items side by side: each fact as people write it, with the words marked in which the two differ."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from entrypoints.console.formatting import money
from entrypoints.console.product_lines import ASKED, Picture, pictures_of

READ: Final = "products:read"
WRITE: Final = "products:write"
"""What looking at pairs needs, and what merging them does."""
_LONGEST: Final = 600
"""Characters of a fact that is compared word by word."""
_FACTS: Final = (
    ("title", "Title"),
    ("brand", "Brand"),
    ("collection", "Collection"),
    ("sku", "SKU"),
    ("mpn", "MPN"),
    ("gtin", "GTIN"),
    ("price", "Price"),
    ("stock", "Stock"),
    ("colour", "Colour"),
    ("finish", "Finish"),
    ("axes", "Options"),
    ("materials", "Materials"),
    ("size", "Size"),
    ("weight", "Weight"),
    ("category_path", "Category"),
    ("features", "Features"),
    ("description", "Description"),
)
_SIDES: Final = {"width": "W", "depth": "D", "height": "H", "length": "L", "diameter": "Ø"}
Words = Sequence[tuple[str, bool]]
"""Text in pieces, each with whether the other side has it differently."""


@dataclass(frozen=True, slots=True)
class Item:
    """One side: where it is read on, its title, its pictures, and its facts as texts."""

    id: str
    product: str
    title: str
    variant: str
    pictures: tuple[Picture, ...]
    facts: Mapping[str, str]
    sources: tuple[str, ...]
    live: bool = True
    pounds: int | None = None
    """The weight in hundredths, whatever the unit it was given in."""


@dataclass(frozen=True, slots=True)
class Row:
    """One fact of both; `agrees` is None where one side does not state it."""

    title: str
    left: Words
    right: Words
    agrees: bool | None


def item_of(side: Mapping[str, Any], product: Mapping[str, Any] | None) -> Item:
    """A side of a pair, out of the product as the API answers it; None for a product that is gone."""
    if product is None:
        return Item(side["id"], side["product"], "This item is gone", "", (), {}, (), live=False)
    variants = product["variants"]
    variant = next((one for one in variants if one["id"] == side["id"]), variants[0] if len(variants) == 1 else None)
    data, of = product["data"], variant["data"] if variant else {}
    offers = variant["offers"] if variant else []
    found = {picture.small: picture for picture in pictures_of([*of.get("media", ()), *data.get("media", ())])}
    return Item(
        side["id"],
        product["id"],
        data.get("title") or of.get("title") or product.get("external_id", product["id"]),
        of.get("title", "") if of.get("title") != data.get("title") else "",
        tuple(found.values())[:4],
        _facts(data, of, offers),
        tuple(dict.fromkeys(offer["source"] for offer in offers if "source" in offer)),
        pounds=(of.get("weight") or {}).get("hundredths_lb"),
    )


def _facts(data: Mapping[str, Any], of: Mapping[str, Any], offers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    found = {name: _text(of.get(name, data.get(name))) for name, _ in _FACTS}
    found["title"] = " · ".join(dict.fromkeys(text for text in (data.get("title"), of.get("title")) if text))
    found["axes"] = ", ".join(f"{name}: {value}" for name, value in of.get("axes", {}).items())
    found["size"] = _size(of.get("dimensions", {}))
    found["weight"] = measure(of.get("weight"))
    found["category_path"] = " › ".join(data.get("category_path", ()))
    found["price"] = _price(offers)
    found["stock"] = ", ".join(
        dict.fromkeys(offer["availability"].replace("_", " ") for offer in offers if "availability" in offer)
    )
    return {name: text for name, text in found.items() if text}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(one) for one in value)
    return "" if value is None else str(value)


def _price(offers: Sequence[Mapping[str, Any]]) -> str:
    """The lowest that is asked, as the matcher goes by it."""
    for name in ASKED:
        found = [(offer[name], offer["currency"]) for offer in offers if name in offer and "currency" in offer]
        if found:
            amount, currency = min(found)
            said = money({"amount": amount, "currency": currency})
            return said if name == "price" else f"{said} ({name})"
    return ""


def measure(value: Mapping[str, Any] | None) -> str:
    """A measure as it was given."""
    given = (value or {}).get("given")
    return f"{given['value']} {given['unit']}" if given else ""


def _size(sides: Mapping[str, Any]) -> str:
    return " × ".join(
        f"{_SIDES.get(name, name.replace('_', ' '))} {text}"
        for name, value in sides.items()
        if (text := measure(value))
    )


def rows_of(left: Item, right: Item) -> list[Row]:
    """The facts that at least one states."""
    found = []
    for name, title in _FACTS:
        a, b = left.facts.get(name, ""), right.facts.get(name, "")
        if not a and not b:
            continue
        if not a or not b:
            found.append(Row(title, [(a, False)], [(b, False)], None))
        elif a.casefold() == b.casefold() or (name == "weight" and _as_heavy(left, right)):
            found.append(Row(title, [(a, False)], [(b, False)], agrees=True))
        else:
            found.append(Row(title, *marked(a, b), agrees=False))
    return found


def _as_heavy(left: Item, right: Item) -> bool:
    """Whether both weigh the same but for a hundredth of it."""
    a, b = left.pounds, right.pounds
    return a is not None and b is not None and abs(a - b) * 100 <= max(a, b)


def marked(left: str, right: str) -> tuple[Words, Words]:
    """Split both texts into pieces, and mark the words that the other text has not, or has less often."""
    a, b = left[:_LONGEST].split(), right[:_LONGEST].split()
    return list(_pieces(a, b)), list(_pieces(b, a))


def _pieces(words: Sequence[str], others: Sequence[str]) -> Iterator[tuple[str, bool]]:
    left = Counter(word.casefold() for word in others)

    def differs(word: str) -> bool:
        left[word.casefold()] -= 1
        return left[word.casefold()] < 0

    for apart, piece in groupby(words, differs):
        yield " ".join(piece), apart
