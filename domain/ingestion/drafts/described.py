"""Facts that vendors write into texts under a label of their own (`Materials: Oak, Steel`), where no column states them."""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from domain.catalogue.data import VariantData
from domain.ingestion.drafts.draft import ProductDraft
from domain.ingestion.drafts.pieces import counted, lone_piece, named_piece, of_several, sized_as_bed, with_subtitle
from domain.ingestion.values.dimensions import Spread, parse_dimensions
from domain.ingestion.values.parsed import Parsed
from domain.ingestion.values.quantities import parse_length, parse_weight
from domain.ingestion.values.rugs import parse_construction
from domain.ingestion.values.sides import BED, RUG, TRADE, kind_of
from domain.ingestion.values.text import line_of_text
from domain.ingestion.values.words import parse_materials

_FIELDS: Final = {
    **dict.fromkeys(
        "product dimensions|product dimension|overall dimensions|overall dimension|item dimensions|assembled dimensions"
        "|dimensions".split("|"),
        "dimensions",
    ),
    **dict.fromkeys(("materials", "material"), "materials"),
    **dict.fromkeys(("color", "colour"), "colour"),
    **dict.fromkeys(("weight", "item weight", "product weight", "net weight"), "weight"),
    **dict.fromkeys(("construction", "weave", "weave type", "technique"), "construction"),
    **dict.fromkeys(("pile height", "pile"), "pile_height"),
}
_LINE: Final = re.compile(
    rf"^[-•* ]{{0,3}}({'|'.join(sorted(_FIELDS, key=len, reverse=True))})[ ]{{0,2}}:(.{{1,400}})$", re.I | re.M
)
_MOST: Final = 65_536
_HIGHEST_PILE: Final = 400
"""Hundredths of an inch; a pile that is said to be higher was given in another unit than it is written in."""
_VAGUE: Final = re.compile(r"\b(?:var(?:y|ies|ious)|see|multiple|assorted|any|custom|choose|select|as shown)\b", re.I)
_RULE: Final = re.compile(
    r"\b(?:CFR|ASTM|TSCA|BIFMA|UFAC|CPSC|CPSIA)\b|\bCARB\b|\bTB ?-?117|\bprop(?:osition)?\.? ?65\b|\bFMVSS\b|\bCGSB\b|^(?-i:(?:[A-Z]{2,5} )+)[\d.-]+$",
    re.I,
)
"""Rules that an item meets, which vendors list among its materials; they are kept as features."""
_LONGEST_RULE: Final = 400
_WORDS: Final = 5
"""A selling point of so many words may be how a rug is made (`100% Hand Tufted`); longer ones tell stories."""
_OF_ALL: Final = ("materials",)
"""What holds for each variant of a product; other facts are taken only where there is one."""


def describe(product: ProductDraft) -> None:
    """Fill in what variants do not state and the product's texts do, in place. A fact that stands there twice is none."""
    found = _labelled((product.data.get("description", ""), *product.features))
    if not found and not product.features:
        return
    variants = list(product.variants.values())
    rug = kind_of(" > ".join(product.category_path()), product.data.get("title", "")) == RUG
    if rug:
        for variant in variants:
            _weave(variant.data, found, product.features)
    lone = len(variants) == 1
    for variant in variants:
        for name, text in found.items():
            if lone or name in _OF_ALL:
                _take(variant.data, name, text, product, is_rug=rug)


def _labelled(texts: Iterable[str]) -> dict[str, str]:
    given: dict[str, set[str]] = {}
    for text in texts:
        if ":" in text:
            for label, value in _LINE.findall(text[:_MOST]):
                given.setdefault(_FIELDS[label.lower()], set()).add(value.strip(" ."))
    return {name: values.pop() for name, values in given.items() if len(values) == 1}


def is_rule(text: str) -> bool:
    """Whether what stands among materials is a rule that the item meets."""
    return _is_rule(text[:_LONGEST_RULE])


@lru_cache(maxsize=4096)
def _is_rule(text: str) -> bool:
    return _RULE.search(text) is not None


def _sound(parsed: Parsed[Any]) -> Any:
    return None if parsed.faults else parsed.value


def _take(data: VariantData, name: str, text: str, product: ProductDraft, *, is_rug: bool) -> None:
    if name in data or _VAGUE.search(text):
        return
    if name == "materials" and (materials := _sound(parse_materials(text))):
        kept = [material for material in materials if not is_rule(material)]
        if kept:
            data["materials"] = kept
    elif name == "colour" and (colour := _sound(line_of_text(text))):
        data["colour"] = colour
    elif name == "weight" and (weight := _sound(parse_weight(text))):
        data["weight"] = weight
    elif name == "dimensions" and not is_rug:
        _take_size(data, text, product)


def _take_size(data: VariantData, text: str, product: ProductDraft) -> None:
    title = with_subtitle(data.get("title") or product.data.get("title"), product.data.get("description"))
    several = of_several(title)
    piece = lone_piece(text) if several else None
    kind = kind_of("", piece) if piece else kind_of(" > ".join(product.category_path()), title)
    spread: Spread | None = _sound(
        parse_dimensions(text, None, BED if several and sized_as_bed(title) else kind, TRADE)
    )
    if spread is None or any("dimensions" in part for part in data.get("components", ())):
        return
    if several and piece is None and (spread.dimensions or not _all_named(spread)):
        return  # a size of several pieces, and nothing that says whose
    if piece is not None and spread.dimensions:
        spread = named_piece(spread, piece)
    if spread.dimensions:
        data["dimensions"] = spread.dimensions
    pieces, told = counted(spread.components, title)
    if pieces and told is None and several and "components" not in data:
        data["components"] = pieces


def _all_named(spread: Spread) -> bool:
    """Whether pieces have names, and not scraps of the text before them."""
    return bool(spread.components) and all(piece["name"][:1].isalpha() for piece in spread.components)


def _weave(data: VariantData, found: dict[str, str], features: Iterable[str]) -> None:
    """How a rug is made and how high its pile is, from labels or from short selling points that all say the same."""
    rug: dict[str, Any] = dict(data.get("rug", {}))
    if (
        "pile_height" in found
        and (height := _sound(parse_length(found["pile_height"])))
        and height["hundredths_in"] <= _HIGHEST_PILE
    ):
        rug.setdefault("pile_height", height)
    short = [found["construction"]] if "construction" in found else [f for f in features if len(f.split()) <= _WORDS]
    made = {value for text in short if (value := _sound(parse_construction(text)))}
    if len(made) == 1:
        rug.setdefault("construction", made.pop())
    if rug:
        data["rug"] = rug  # type: ignore[typeddict-item]
