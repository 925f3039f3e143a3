"""Boxes listed in one cell in IKEA's form or any other (`boxes`), and pieces counted by the box."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.catalogue.data import Carton
from domain.ingestion.values.boxes import BOX_WORDS, listed, rolled
from domain.ingestion.values.labels import name_role
from domain.ingestion.values.lengths import parse_length
from domain.ingestion.values.parsed import NOTHING, Fault, Parsed, overlong, unreadable
from domain.ingestion.values.sides import side_of
from domain.ingestion.values.text import clean, plain, stated
from domain.ingestion.values.weights import parse_weight

_LONGEST: Final = 20000
_ARTICLE: Final = re.compile(r"Article (?:no|number)\.?:?\s*(?P<sku>\d[\d.]{2,20})", re.I)
_COUNT: Final = re.compile(r"Package\(s\):\s*(?P<count>\d{1,4})", re.I)
_FACT: Final = re.compile(r"([^\W\d_]{1,60})\s*+:\s*+([\d.,]++\s*+[^\W\d_]+)", re.I)
_PIECES: Final = re.compile(
    r"\((\d{1,4})\s*+(?:pcs?\.?\s*+)?/\s*+(?:ctn|carton|box)\)|(?<![\w])-?(\d{1,3})PK\b"
    r"|(?<![\w.,])(\d{1,4})\s?(?:pcs?|pieces?|st(?:k|ück)|pi[eè]ces?|stuks?|piezas?|pz|pezzi)\.?\s?(?:/|per|pro|par|por|je)\s?"
    rf"(?:{BOX_WORDS})(?![^\W\d_])",
    re.I,
)
_DIGIT: Final = re.compile(r"\d")
_SIDES: Final = {"width": "width", "height": "height", "length": "depth", "depth": "depth"}


@dataclass(frozen=True, slots=True)
class Package:
    """One kind of box of an item: what is in it, its article number, and the box."""

    name: str
    sku: str
    carton: Carton


def pieces_per_carton(text: str) -> int | None:
    """How many pieces a title or size says a box holds (`(2PC/CTN)`, `(6/CTN)`, `4 Stück je Karton`), or None."""
    match = _PIECES.search(text)
    return int(match[1] or match[2] or match[3]) if match else None


def _facts(text: str) -> tuple[Carton, list[Fault], int]:
    """The facts of one box, what was wrong with them, and where the last of them ends."""
    carton: Carton = {}
    faults: list[Fault] = []
    sides: dict[str, object] = {}
    end = 0
    for match in _FACT.finditer(text):
        label, value, end = match[1], match[2], match.end()
        if label.lower() in ("weight", "gewicht", "peso", "poids", "vikt"):
            weighed = parse_weight(value)
            faults.extend(weighed.faults)
            if weighed.value:
                carton["weight"] = weighed.value
            continue
        side = side_of(label)
        if side != "diameter" and side not in _SIDES:
            faults.extend(unreadable(match[0], "is no fact of a box that is known").faults)
            continue
        parsed = parse_length(value)
        faults.extend(parsed.faults)
        if parsed.value:
            sides[_SIDES.get(side, side)] = parsed.value
    rolled(sides)
    carton.update(sides)  # type: ignore[typeddict-item]
    return carton, faults, end


def _articles(text: str) -> Parsed[tuple[Package, ...]]:
    """The boxes of a cell in IKEA's form: name, article number, facts with their labels, count."""
    flat = clean(text)
    found = list(_ARTICLE.finditer(flat))
    packages: list[Package] = []
    faults: list[Fault] = []
    name_from = 0
    for article, following in zip(found, [*found[1:], None], strict=True):
        until = following.start() if following else len(flat)
        count = _COUNT.search(flat, article.end(), until)
        carton, wrong, last = _facts(flat[article.end() : count.start() if count else until])
        faults.extend(wrong)
        if count and int(count["count"]):
            carton["count"] = int(count["count"])
        packages.append(Package(flat[name_from : article.start()].strip(" ,;|"), article["sku"], carton))
        name_from = count.end() if count else article.end() + last
    rest = flat[name_from:].strip(" ,;|")
    if rest:
        faults.extend(unreadable(rest, "stands behind the last box").faults)
    return Parsed(tuple(packages), tuple(faults))


def _named(name: str) -> str:
    """The name of what is in a box; words for the box or for the order are none."""
    return "" if name_role(name) == "inner" or name.strip().upper() in ("MOQ", "FOB") else name


@lru_cache(maxsize=8192)
def parse_packages(
    text: str, unit: str | None = None, weight_unit: str | None = None, decimal: str = "auto"
) -> Parsed[tuple[Package, ...]]:
    """The boxes that a cell lists, in IKEA's form (name, article number, facts, count) or as `boxes` reads them.

    `unit` and `weight_unit` are the column's, of figures without one; `decimal` is the source's mark. Problems: unreadable
    (also for facts that a box has no place for), conflict, and those of the measures inside.
    """
    if too_long := overlong(text, _LONGEST):
        return too_long
    if stated(text) is None:
        return NOTHING
    if _ARTICLE.search(text):
        return _articles(text)
    if not _DIGIT.search(text):
        return unreadable(text, "lists no boxes")
    boxes, faults = listed(plain(text), unit, weight_unit, decimal)
    faults = [*(fault for box in boxes for fault in box.faults), *faults]
    packages = tuple(Package(_named(box.name), "", box.carton) for box in boxes if box.carton)
    if not packages and not faults:
        return unreadable(text, "lists no boxes")
    return Parsed(packages or None, tuple(dict.fromkeys(faults)))
