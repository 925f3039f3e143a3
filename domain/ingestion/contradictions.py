"""Checks of the finished statement of an item for values that contradict each other.

A contradiction is reported and changes no value. docs/ingestion.md lists the rules; each is one function in `_CHECKS`.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise
from math import prod
from typing import Any, Literal, NamedTuple

from domain.catalogue.data import Carton, VariantData
from domain.catalogue.statements import OfferStatement, ProductStatement, VariantStatement
from domain.ingestion.data import load_patterns, load_word_set
from domain.ingestion.pieces import names_several_pieces, parse_piece_count
from domain.ingestion.values.cartons import parse_pieces_per_carton
from domain.ingestion.values.labels import BED, PILLOW, RUG, determine_size_kind
from domain.ingestion.values.quantities import normalise_typography, parse_length
from domain.ingestion.values.rugs import is_same_rug, parse_rug_size
from domain.ingestion.values.text import quote_text
from domain.ingestion.vocabulary.kinds import FurnitureKind, find_kind_in_path, find_kind_in_title
from domain.kernel.money import EXPONENTS
from domain.kernel.problems import ProblemKind

_MAX_TITLE_CHARS = 500
_MAX_CODE_CHARS = 100
_OTHER_THINGS = load_patterns("pieces")["other_things"]
(_OTHER_FIGURES, _HORIZONTAL, _UPRIGHT, _NOT_ONE_PIECE, _PART, _COMPACT) = (
    load_patterns("contradictions")[name]
    for name in "other_figures horizontal upright not_one_piece part compact".split()
)
_NUMBERED_MATERIALS = load_word_set("contradictions", "numbered_materials")
_MAIN_DIMENSIONS = ("width", "depth", "height", "diameter")


class Contradiction(NamedTuple):
    """Value that contradicts another value of the same item.

    Attributes:
        field: The path of the field with the value, such as `dimensions.width`.
        detail: The sentence for people.
        location: The location of the offer with the value, or None for a value of the variant.
    """

    field: str
    detail: str
    problem: ProblemKind = ProblemKind.CONFLICT
    location: str | None = None


@dataclass(slots=True)
class _Item:
    """Variant with the context in which its values are checked. Kinds are determined only when they are needed.

    Attributes:
        title: The title of the variant, or that of the product if it has no other variant.
        product_title: The title of the product.
        path: The category path.
        path_kind: The kind of furniture that the category path names, or None.
        lengths: The main dimensions in hundredths of an inch.
    """

    title: str
    product_title: str
    path: tuple[str, ...]
    path_kind: FurnitureKind | None
    data: VariantData
    lengths: dict[str, int]

    @property
    def size_kind(self) -> str:
        """The kind that determines how sizes are read."""
        return determine_size_kind(" > ".join(self.path), self.title or self.product_title)

    def find_kind(self) -> tuple[FurnitureKind | None, bool]:
        """Return the kind of furniture and whether the title names it; otherwise the category path does. Several pieces have no kind."""
        title = self.product_title
        if _NOT_ONE_PIECE.search(title):
            return None, False
        named = find_kind_in_title(title)
        return named or (None if _PART.search(title) else self.path_kind), named is not None


# Sizes.

_LENGTH = re.compile(
    r"(?i)(?<![\w.,/'-])(?<!of )(?<!\d )(\d{1,4}(?:\.\d{1,2})?(?:[ -]\d{1,2}/\d{1,2})?)[ -]?"
    r"(\"|in\b\.?(?![ -]?\d)|inch(?:es)?\b|cm\b|mm\b|ft\b\.?|feet\b|foot\b|'(?![\w\"]))"
)
_BETWEEN_LENGTHS = re.compile(r"(?i)\s?[wdhl]?\s?[x×]\s?")
_DIGIT = re.compile(r"\d")
_UNITLESS_SIZE = re.compile(r"(?i)\d\s?[x×]\s?\d")
"""Pattern of a size with one unit at its end (`90x50x50 cm`), which `pieces.merge_title_size` compares."""
_STATED_UNIT = re.compile(r"(?i)\d\s?(?:['\"]|(?:ft|feet|in|inch|inches|cm|mm|m)\b)")
_FEET = re.compile(r"(?<![\w.])(?:\d|1[0-5])(?:\.\d{1,2})?\s?[x×]\s?(?:\d|1[0-5])(?:\.\d{1,2})?(?![\w.])", re.I)
_MIN_TOLERANCE = 150
"""Difference up to which a length in a title and a dimension are equal, in hundredths of an inch; or 1/8 of the greater one."""


def _get_hundredths(length: Any) -> int:
    hundredths: int = length["hundredths_in"]
    return hundredths


def _format_measure(measure: Any) -> str:
    return f"{measure['given']['value']} {measure['given']['unit']}"


def _format_size(dimensions: Mapping[str, Any]) -> str:
    """Return the main dimensions in the vendor's units: `width 48 in, height 30 in`."""
    return ", ".join(f"{name} {_format_measure(dimensions[name])}" for name in _MAIN_DIMENSIONS if name in dimensions)


def _is_near(first: int, second: int) -> bool:
    return abs(first - second) <= max(_MIN_TOLERANCE, max(first, second) // 8)


def _check_title_size(item: _Item) -> Iterator[Contradiction]:
    """Compare the only size in a title (`63" Console`, `24" x 36" Mirror`) with the dimensions."""
    if not _DIGIT.search(item.title):
        return
    dimensions: Mapping[str, Any] = dict(item.data["dimensions"])
    title, size_kind = normalise_typography(item.title), item.size_kind
    if size_kind == RUG or names_several_pieces(title) or _OTHER_THINGS.search(title):
        return
    found = list(_LENGTH.finditer(title))
    joined = all(_BETWEEN_LENGTHS.fullmatch(title[one.end() : two.start()]) for one, two in pairwise(found))
    if not found or not joined or _OTHER_FIGURES.search(title) or _UNITLESS_SIZE.search(title):
        return
    if found[1:] and size_kind == BED:
        return  # the title states the size of the mattress
    is_complete = {"width", "depth", "height"} <= dimensions.keys() or {"diameter", "height"} <= dimensions.keys()
    is_complete = is_complete or (size_kind == PILLOW and len(dimensions) == len(found) == 2)
    has_length = {"width", "depth"} <= dimensions.keys() or dimensions.keys() == {"width"}
    is_length = has_length and _HORIZONTAL.search(title) and not _UPRIGHT.search(title)
    if not is_complete and not is_length:
        return
    lengths = [_get_hundredths(length) for length in dimensions.values()]
    for length in found:
        parsed = parse_length(f"{length[1]} {length[2]}").value
        if parsed and not any(_is_near(parsed["hundredths_in"], side) for side in lengths):
            text = title[found[0].start() : found[-1].end()]
            yield Contradiction(
                "dimensions",
                f"The title states {quote_text(text)}, but the size is {_format_size(dimensions)}. Correct the title or the size.",
            )
            return


def _check_rug_size(item: _Item) -> Iterator[Contradiction]:
    """Compare the size in the title, the text of the size and the nominal size of a rug with its dimensions."""
    dimensions, rug = item.data["dimensions"], item.data.get("rug", {})
    if not (rug or _DIGIT.search(item.title)) or item.size_kind != RUG:
        return
    texts = {"title": item.title, "size": rug.get("size_text", ""), "nominal size": rug.get("nominal", "")}
    for noun, text in texts.items():
        if _STATED_UNIT.search(text) or _FEET.search(text):
            size = parse_rug_size(text)
            if size.value and not size.faults and not is_same_rug(dict(size.value.dimensions), dict(dimensions)):
                detail = (
                    f"The {noun} of the rug states {quote_text(text)}, but the size is {_format_size(dict(dimensions))}. "
                    "Correct one of them."
                )
                yield Contradiction("dimensions", detail)
                return


def _check_plausible_size(item: _Item) -> Iterator[Contradiction]:
    """Compare the longest side with the plausible range of the kind of furniture."""
    lengths = item.lengths
    if "width" in lengths and "depth" in lengths:
        longest = max(lengths.values())
        if (kind := _find_contradicted_kind(item, longest, "side")) is not None:
            name = next(name for name, length in lengths.items() if length == longest)
            measure = dict[str, Any](item.data["dimensions"])[name]
            yield _build_implausible(f"dimensions.{name}", measure, kind, kind.side, "in")


def _check_plausible_weight(item: _Item) -> Iterator[Contradiction]:
    """Compare the weight with the plausible range of the kind of furniture."""
    weight = item.data["weight"]
    if (kind := _find_contradicted_kind(item, weight["hundredths_lb"], "weight")) is not None:
        yield _build_implausible("weight", weight, kind, kind.weight, "lb")


def _find_contradicted_kind(item: _Item, hundredths: int, name: Literal["side", "weight"]) -> FurnitureKind | None:
    """Return the kind of an item if its longest side or weight is implausible for this kind and for that of its category.

    A category can also contain small parts and accessories, so that a small measure contradicts only a kind that the title names.

    Args:
        item: The item.
        hundredths: The longest side in hundredths of an inch, or the weight in hundredths of a pound.
        name: The attribute of the kind with the plausible range.
    """
    if item.path_kind is not None and hundredths in getattr(item.path_kind, name):
        return None
    kind, is_in_title = item.find_kind()
    if kind is None or hundredths in getattr(kind, name):
        return None
    return kind if is_in_title or hundredths >= getattr(kind, name).stop else None


def _build_implausible(field: str, measure: Any, kind: FurnitureKind, plausible: range, unit: str) -> Contradiction:
    least, most = (Decimal(bound).scaleb(-2).normalize() for bound in (plausible.start, plausible.stop - 1))
    detail = (
        f"The {field.rpartition('.')[2]} ({_format_measure(measure)}) is implausible for {kind.slug.replace('-', ' ')} "
        f"({least:f} to {most:f} {unit}). Check the unit and the decimal mark."
    )
    return Contradiction(field, detail, ProblemKind.OUT_OF_RANGE)


# Cartons.

_ASSEMBLED_PROPORTION = 90
"""Minimum length of the only carton of an assembled item, in percent of the item's longest side."""
_RIGID_PROPORTION = 50
"""The same for other items of a rigid kind, of which legs, arms or a top can be removed."""
_MIN_VOLUME_PROPORTION = 50
"""Minimum volume of the only carton of an assembled item, in percent of the volume of the item."""


def _check_cartons(item: _Item) -> Iterator[Contradiction]:
    """Compare the weight of the cartons with that of the item, and the only carton with the size of the item."""
    data, cartons = item.data, item.data["cartons"]
    if "weight" in data and all("weight" in carton and "count" in carton for carton in cartons):
        gross = sum(carton["weight"]["hundredths_lb"] * carton["count"] for carton in cartons)
        net = data["weight"]["hundredths_lb"]
        if gross * 100 < net * 98:
            detail = (
                f"The cartons weigh {Decimal(gross) / 100:,} lb in total, less than the item ({Decimal(net) / 100:,} lb). "
                "Correct one of the weights."
            )
            yield Contradiction("cartons", detail)
    if len(cartons) == 1 and cartons[0].get("count", 1) == 1:
        yield from _check_only_carton(item, cartons[0])


def _check_only_carton(item: _Item, carton: Carton) -> Iterator[Contradiction]:
    lengths = item.lengths.values()
    if len(lengths) < 3 or not ("width" in carton and "depth" in carton and "height" in carton):
        return
    sides = [_get_hundredths(side) for side in (carton["width"], carton["depth"], carton["height"])]
    is_assembled = item.data.get("assembly_required") is False
    is_short = max(sides) * 100 < max(lengths) * (_ASSEMBLED_PROPORTION if is_assembled else _RIGID_PROPORTION)
    is_small = is_assembled and len(lengths) == 3 and prod(sides) * 100 < prod(lengths) * _MIN_VOLUME_PROPORTION
    if (is_short or is_small) and _is_rigid(item, is_assembled=is_assembled):
        detail = (
            f"The only carton ({_format_size(dict(carton))}) is too small for the item "
            f"({_format_size(dict(item.data['dimensions']))}). Correct one of the sizes, or state all cartons."
        )
        yield Contradiction("cartons", detail)


def _is_rigid(item: _Item, *, is_assembled: bool) -> bool:
    """Return whether an item is one piece of a kind that is not folded or rolled for shipping."""
    kind, _ = item.find_kind()
    if kind is None or not (kind.is_rigid_assembled if is_assembled else kind.is_rigid) or item.size_kind:
        return False
    return not (_COMPACT.search(item.title) or names_several_pieces(item.title))


# Pieces, colours and materials.

_PIECES_IN_CODE = re.compile(r"(?i)(?<=[-_ ])(\d{1,2})(?:PCS?|PK)(?![^\W_])")
_SET_SIZE = re.compile(r"(?i)\b(?:set|pack) of (\d{1,2})\b(?!\s?x)|(?<![\w.])(\d{1,2})[ -]pack\b")
_FIRST_CHARACTERS = frozenset("0123456789$€£")
_MEASURE = re.compile(
    r"(?i)[$€£]\s?\d[\d.,]*|\d{1,3}|\d{12,14}|\d+[.,]\d+|\d[\d.,]*(?:\s\d{1,2}/\d{1,2})?\s?(?:[\"']|inch(?:es)?|in|cm|mm|ft|lbs?|kgs?|oz|usd|eur)\.?"
    r"|\d[\d.,]*\s?[\"']?\s?[x×]\s?\d[\d.,x×\s\"']*(?:in|cm|mm|ft)?"
)


def _check_piece_count(item: _Item) -> Iterator[Contradiction]:
    """Compare the number of pieces in the title (`7 Pc. Dining Set`) with that in the code (`AB-100-5PC`)."""
    found = _PIECES_IN_CODE.findall(item.data["sku"][:_MAX_CODE_CHARS])
    if not found:
        return
    in_code = {int(number) for number in found}
    in_title = {int(one or two) for one, two in _SET_SIZE.findall(item.title)}
    in_title.update(number for parse in (parse_piece_count, parse_pieces_per_carton) if (number := parse(item.title)))
    if in_title and in_title.isdisjoint(in_code):
        detail = (
            f"{quote_text(item.title)} states {max(in_title)} pieces, but the code {quote_text(item.data['sku'])} states {max(in_code)}. "
            "Correct one of them."
        )
        yield Contradiction("sku", detail)


def _check_text(item: _Item, field: str) -> Iterator[Contradiction]:
    """Report a number or a measure in a field of words, such as a value of the next column."""
    value: Any = item.data[field]  # type: ignore[literal-required]
    for text in value if isinstance(value, list) else (value,):
        is_short_number = text[:1] in _FIRST_CHARACTERS and len(text) <= _MAX_CODE_CHARS
        if is_short_number and text.lower() not in _NUMBERED_MATERIALS and _MEASURE.fullmatch(text):
            noun = {"materials": "a material"}.get(field, f"a {field}")
            detail = f"{quote_text(text)} is a number or a measure, not {noun}. Check whether values are in the wrong column."
            yield Contradiction(field, detail)
            return


_CHECKS: tuple[tuple[str, Callable[[_Item], Iterator[Contradiction]]], ...] = (
    ("dimensions", _check_title_size),
    ("dimensions", _check_rug_size),
    ("dimensions", _check_plausible_size),
    ("weight", _check_plausible_weight),
    ("cartons", _check_cartons),
    ("sku", _check_piece_count),
    ("colour", lambda item: _check_text(item, "colour")),
    ("finish", lambda item: _check_text(item, "finish")),
    ("materials", lambda item: _check_text(item, "materials")),
)
"""The field without which a check has nothing to compare, and the check."""


# Prices.

_PRICE_LIMITS = {"cost": ("price", "map", "msrp"), "map": ("msrp",), "price": ("msrp",)}
"""Prices that are not above any of the others."""
_PRICE_NAMES = {
    "cost": "cost",
    "price": "price",
    "sale_price": "sale price",
    "map": "minimum advertised price (MAP)",
    "msrp": "list price (MSRP)",
}


def _check_prices(offer: OfferStatement) -> Iterator[Contradiction]:
    """Compare the prices of an offer, which have one currency."""
    prices: Mapping[str, Any] = offer.data
    for lower, uppers in _PRICE_LIMITS.items():
        if (price := prices.get(lower)) is not None:
            upper = next((name for name in uppers if name in prices and price > prices[name]), None)
            if upper is not None:
                detail = f"{describe_price_order(prices, lower, upper)} Correct them, or the mapping of their columns."
                yield Contradiction(lower, detail, location=offer.location)


def describe_price_order(prices: Mapping[str, Any], lower: str, upper: str) -> str:
    """Return the sentence that a price, such as the cost, is above another one, such as the price."""
    digits = EXPONENTS[prices["currency"]]
    first, second = (f"{_PRICE_NAMES[name]} ({Decimal(prices[name]).scaleb(-digits):f})" for name in (lower, upper))
    return f"The {first} is above the {second}."


def find_contradictions(statement: ProductStatement) -> Iterator[tuple[VariantStatement, Contradiction]]:
    """Yield the contradictions between the values of each variant of a statement, which is not changed."""
    product, variants = statement.data, statement.variants
    path = tuple(product.get("category_path") or ())
    product_title, path_kind = (product.get("title") or "")[:_MAX_TITLE_CHARS], find_kind_in_path(path)
    for variant in variants:
        title = variant.data.get("title", "")[:_MAX_TITLE_CHARS] or (product_title if len(variants) == 1 else "")
        dimensions: Any = variant.data.get("dimensions", {})
        lengths = {name: dimensions[name]["hundredths_in"] for name in _MAIN_DIMENSIONS if name in dimensions}
        item = _Item(title, product_title, path, path_kind, variant.data, lengths)
        for field, check in _CHECKS:
            if variant.data.get(field):
                for contradiction in check(item):
                    yield variant, contradiction
        for offer in variant.offers:
            for contradiction in _check_prices(offer):
                yield variant, contradiction
