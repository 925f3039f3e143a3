"""Boxes listed in one cell, and pieces counted by the box."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Carton, Length
from domain.ingestion.values.lengths import parse_length
from domain.ingestion.values.parsed import NOTHING, Fault, Parsed, overlong, unreadable
from domain.ingestion.values.sides import side_of
from domain.ingestion.values.text import clean, stated
from domain.ingestion.values.weights import parse_weight

_LONGEST: Final = 20000
_ARTICLE: Final = re.compile(r"Article (?:no|number)\.?:?\s*(?P<sku>\d[\d.]{2,20})", re.I)
_COUNT: Final = re.compile(r"Package\(s\):\s*(?P<count>\d{1,4})", re.I)
_FACT: Final = re.compile(r"([^\W\d_]{1,60})\s*+:\s*+([\d.,]++\s*+[a-z]+)", re.I)
_PIECES: Final = re.compile(r"\((\d{1,4})\s*+(?:pcs?\.?\s*+)?/\s*+(?:ctn|carton|box)\)|(?<![\w])-?(\d{1,3})PK\b", re.I)
_SIDES: Final = {"width": "width", "height": "height", "length": "depth", "depth": "depth"}


@dataclass(frozen=True, slots=True)
class Package:
    """One kind of box of an item: what is in it, its article number, and the box."""

    name: str
    sku: str
    carton: Carton


def pieces_per_carton(text: str) -> int | None:
    """How many pieces a title or size says a box holds (`(2PC/CTN)`, `(6/CTN)`), or None."""
    match = _PIECES.search(text)
    return int(match[1] or match[2]) if match else None


def _facts(text: str) -> tuple[Carton, list[Fault]]:
    carton: Carton = {}
    faults: list[Fault] = []
    diameter: Length | None = None
    for label, value in _FACT.findall(text):
        if label.lower() in ("weight", "gewicht", "peso"):
            weighed = parse_weight(value)
            faults.extend(weighed.faults)
            if weighed.value:
                carton["weight"] = weighed.value
            continue
        side, parsed = side_of(label), parse_length(value)
        faults.extend(parsed.faults)
        if side == "diameter":
            diameter = parsed.value
        elif side in _SIDES and parsed.value:
            carton[_SIDES[side]] = parsed.value  # type: ignore[literal-required]
    if diameter is not None:
        # A rolled good: its box is as wide and as high as the roll.
        carton.setdefault("width", diameter)
        carton.setdefault("height", diameter)
    return carton, faults


@lru_cache(maxsize=8192)
def parse_packages(text: str) -> Parsed[tuple[Package, ...]]:
    """The boxes of a cell that lists name, article number, sides, weight and count of each (IKEA's form).

    Problems: unreadable, and those of the measures inside.
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    given = stated(text)
    if given is None:
        return NOTHING
    flat = clean(text)
    found = list(_ARTICLE.finditer(flat))
    if not found:
        return unreadable(text, "lists no boxes")
    packages: list[Package] = []
    faults: list[Fault] = []
    name_from = 0
    for article, following in zip(found, [*found[1:], None], strict=True):
        count = _COUNT.search(flat, article.end(), following.start() if following else len(flat))
        carton, wrong = _facts(flat[article.end() : count.start()]) if count else ({}, [])
        faults.extend(wrong)
        if count and int(count["count"]):
            carton["count"] = int(count["count"])
        packages.append(Package(flat[name_from : article.start()].strip(" ,;|"), article["sku"], carton))
        name_from = count.end() if count else article.end()
    return Parsed(tuple(packages), tuple(faults))
