"""Comparisons of two items.

Each comparison compares one feature and returns the number of a level, such as `same` or `different`.
"""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from math import fsum, log2
from typing import Final

from domain.matching.features import MatchFeatures
from domain.matching.measures import are_lengths_clearly_different, are_lengths_nearly_equal, have_same_size
from domain.matching.words import COLOURS, COMPONENT_UNITS, are_similar_words, load_table

_LONG_CODE_CHARS = 9
MAX_ITEMS_PER_CODE = 3
"""Number of items up to which a code identifies one item; a code of more items identifies several models."""
_ROUNDING_RATIO = 1.02
_MAX_DIGITS = 12
"""Maximum number of digits of a number that is compared by value."""
_MAX_SPELLING_WORDS = 48
"""Maximum number of words of each title whose spellings are compared, which takes quadratic time."""


class FeatureFrequencies:
    """Frequencies of codes and words among the items of two sources; results are cached.

    Args:
        item_count: The total number of items.
        count_word: Returns how many items have a word.
        count_code: Returns how many items have a code.
        count_stem: Returns how many items have a code with this stem.

    Attributes:
        count_code: Returns how many items have a code.
        count_stem: Returns how many items have a code with this stem.
        compute_information: Returns the information of a word in bits, which is higher the fewer items have the word.
    """

    def __init__(
        self,
        item_count: int,
        count_word: Callable[[str], int],
        count_code: Callable[[str], int],
        count_stem: Callable[[str], int],
    ) -> None:
        self.count_code, self.count_stem = cache(count_code), cache(count_stem)
        self.compute_information = cache(lambda word: log2((item_count + 2) / (count_word(word) + 1)))


LevelFunction = Callable[[MatchFeatures, MatchFeatures, FeatureFrequencies], int]
"""Function that returns the level of two items."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of one feature of two items.

    Attributes:
        name: The name of the feature.
        level_names: The names of the levels: `missing` (0, without weight), then from the best to the worst.
        find_level: Returns the level of two items.
        get_evidence_value: Returns the value of an item that the evidence contains.
        is_ordered: Whether a better level always weighs at least as much as a worse one.
    """

    name: str
    level_names: tuple[str, ...]
    find_level: LevelFunction
    get_evidence_value: Callable[[MatchFeatures], object]
    is_ordered: bool = True


class FirstConflictLevel:
    """Numbers of the first level that can mean a conflict, for each feature that can be in conflict."""

    GTIN: Final = 2
    BRAND: Final = 3
    COLOUR: Final = 4
    DIMENSIONS: Final = 5
    SIZE: Final = 2
    PIECES: Final = 2
    QUANTITIES: Final = 3


def _compare_gtins(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of two GTINs."""
    if not a.gtin or not b.gtin:
        return 0
    return 1 if a.gtin == b.gtin else 2


def _compare_codes(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of the codes of two items."""
    if shared := a.codes & b.codes:
        return 1 if min(frequencies.count_code(c) for c in shared) <= MAX_ITEMS_PER_CODE else 3
    if shared := a.stems & b.stems:
        return 2 if min(frequencies.count_stem(c) for c in shared) <= 2 * MAX_ITEMS_PER_CODE else 3
    if a.stems & b.joined or a.joined & b.stems or a.codes & b.joined or a.joined & b.codes or _is_code_contained(a, b):
        return 4
    if a.codes & b.mentioned or a.mentioned & b.codes:
        return 5
    if a.part and b.part:
        return 7
    return 6 if a.codes and b.codes else 0


def _is_code_contained(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether a code of one item contains a code of the other item.

    The shorter code must have at least five characters with three digits, or nine characters with one digit.
    """
    for one, other in product(a.codes, b.codes):
        short, long = (one, other) if len(one) < len(other) else (other, one)
        if len(short) >= 5 and short in long:
            digits = sum(map(str.isdigit, short))
            if digits >= 3 or (digits and len(short) >= _LONG_CODE_CHARS):
                return True
    return False


def _sum_spelling_information(left: frozenset[str], right: frozenset[str], frequencies: FeatureFrequencies) -> float:
    """Return the information in bits that two titles share in pairs of words that probably differ only in spelling.

    Each word is in one pair at most. A pair counts 80% of the information of the more frequent word.
    """
    left_words, right_words = sorted((sorted(left)[:_MAX_SPELLING_WORDS], sorted(right)[:_MAX_SPELLING_WORDS]))
    information = 0.0
    for one in left_words:
        for other in right_words:
            if are_similar_words(one, other):
                information += 0.8 * min(frequencies.compute_information(one), frequencies.compute_information(other))
                right_words.remove(other)
                break
    return information


_TITLE_LIMITS = (0.92, 0.8, 0.66, 0.52, 0.38, 0.22)


def _compare_titles(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of two titles by the share of information that they have in common.

    Brand and colours are ignored, because other comparisons compare them.
    """
    ignored = a.brand | b.brand | a.colours | b.colours
    left, right = a.words - ignored, b.words - ignored
    parts = left & right, left - right, right - left
    shared, of_left, of_right = [fsum(map(frequencies.compute_information, part)) for part in parts]
    product_of_totals: float = (shared + of_left) * (shared + of_right)
    if not product_of_totals:
        return 0
    if of_left and of_right:
        shared += _sum_spelling_information(*parts[1:], frequencies)
    similarity: float = shared / product_of_totals**0.5
    return 1 + sum(similarity < limit for limit in _TITLE_LIMITS)


def _compare_quantities(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of the quantities in two titles."""
    left, right = a.quantities, b.quantities
    if not left or not right:
        return 0
    if left == right:
        return 1
    agreeing, contradict = _match_quantities(left - right, right - left)
    agreeing += len(left & right)
    if agreeing >= min(len(left), len(right)):
        return 1 if len(left) == len(right) else 2
    return 5 if contradict else 3 if agreeing else 4


def _match_quantities(left: frozenset[str], right: frozenset[str]) -> tuple[int, bool]:
    """Return the number of quantities that agree, and whether any two quantities contradict each other.

    Quantities contradict each other if both items use a unit, but no number with this unit agrees.
    `4 Schubladen` (unknown unit) and `4drawer` agree; `32gb` and `64gb` contradict each other.
    """
    left_numbers, right_numbers = _group_numbers_by_unit(left), _group_numbers_by_unit(right)
    agreeing, contradict = 0, False
    for unit, numbers in left_numbers.items():
        for name, found in right_numbers.items():
            if name == unit != "":
                same = sum(any(max(x, y) <= _ROUNDING_RATIO * min(x, y) for y in found) for x in numbers)
                agreeing += same
                contradict = contradict or not same
            elif not name or not unit:
                agreeing += len(set(numbers) & set(found))
    return agreeing, contradict


def have_different_component_counts(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether two titles state different numbers of a component, such as 4 and 6 drawers."""
    left_numbers, right_numbers = _group_numbers_by_unit(a.quantities), _group_numbers_by_unit(b.quantities)
    units = COMPONENT_UNITS & left_numbers.keys() & right_numbers.keys()
    return any(set(left_numbers[unit]).isdisjoint(right_numbers[unit]) for unit in units)


@lru_cache(maxsize=1 << 16)
def _group_numbers_by_unit(quantities: frozenset[str]) -> dict[str, list[float]]:
    """Return the numbers of quantities by unit, which is an empty string for numbers without a unit."""
    found: dict[str, list[float]] = {}
    for quantity in quantities:
        unit = quantity.lstrip("0123456789.")
        number = quantity[: len(quantity) - len(unit)]
        if len(number) <= _MAX_DIGITS:
            found.setdefault(unit, []).append(float(number))
    return found


def _compare_brands(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of two brands."""
    if not a.brand or not b.brand:
        return 0 if a.brand == b.brand else 2 if a.brand <= b.words and b.brand <= a.words else 4
    if a.brand == b.brand:
        return 1
    return 2 if a.brand & b.brand or a.brand <= b.words or b.brand <= a.words else 3


def have_different_known_colours(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether each of two items has a known colour or finish that the other item lacks."""
    return bool(a.shades - b.colours - b.words) and bool(b.shades - a.colours - a.words)


def _compare_colours(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of two colours."""
    left, right = a.colours, b.colours
    if not left or not right:
        return 0
    if left == right:
        return 1
    only_left, only_right = left - right - b.words, right - left - a.words
    if have_different_known_colours(a, b):
        return 6
    if only_left and only_right:
        if all(any(are_similar_words(w, o) for o in only_left) for w in only_right):
            return 3
        return 5 if left & right or not a.colour_stated or not b.colour_stated else 6
    if (only_left | only_right) & COLOURS:
        return 4
    return 3 if only_left or only_right else 2


def have_different_colours(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether two stated colours share a word but differ in another, such as `grey lund` and `grey moss`.

    They differ if one has an additional known colour, or if each has a word that the other lacks. Colours without a
    shared word may be in two languages, so they do not count as different.
    """
    if not (a.colour_stated and b.colour_stated and a.colours & b.colours):
        return False
    one, other = a.colours - b.colours - b.words, b.colours - a.colours - a.words
    if (one | other) & COLOURS:
        return True
    return bool(one and other) and not any(are_similar_words(w, o) for w in one for o in other)


def pair_lengths(a: MatchFeatures, b: MatchFeatures) -> list[tuple[float, float]]:
    """Return pairs of corresponding lengths that both items state.

    Width and depth of one item are exchanged if the lengths then agree better.
    """
    (aw, ad, ah), (bw, bd, bh) = a.sides, b.sides
    upright = [(ah, bh)] if ah and bh else []
    straight = [(x, y) for x, y in ((aw, bw), (ad, bd)) if x and y]
    if off := _compute_mismatch(straight):
        crossed = [(x, y) for x, y in ((aw, bd), (ad, bw)) if x and y]
        if len(crossed) >= len(straight) and _compute_mismatch(crossed) < off:
            return crossed + upright
    return straight + upright


def _compute_mismatch(pairs: list[tuple[float, float]]) -> int:
    """Return a penalty for pairs of lengths: 1 for each pair that does not agree, 2 for each that clearly differs."""
    return sum(2 if are_lengths_clearly_different(x, y) else not are_lengths_nearly_equal(x, y) for x, y in pairs)


def have_equal_stated_dimensions(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether the dimensions that both items state, at least two, are equal numbers regardless of units.

    If these dimensions differ in centimetres, one of the items probably has a wrong unit.
    """
    stated = [x == y for x, y in zip(a.figures, b.figures, strict=True) if x and y]
    return len(stated) >= 2 and all(stated)


def _compare_dimensions(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of width, depth and height of two items."""
    pairs = pair_lengths(a, b)
    if not pairs:
        return 0
    if any(are_lengths_clearly_different(x, y) for x, y in pairs):
        return 3 if have_equal_stated_dimensions(a, b) else 5
    agreeing = sum(are_lengths_nearly_equal(x, y) for x, y in pairs)
    return 4 if agreeing < len(pairs) else 4 - min(agreeing, 3)


def _compare_sizes(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of the sizes in two titles."""
    if not a.sizes or not b.sizes:
        return 0
    same = have_same_size(a.sizes, b.sizes)
    return 0 if same is None else 1 if same else 2


def _compute_ratio(first: float, second: float) -> float:
    """Return the ratio of the greater number to the smaller one."""
    return max(first, second) / min(first, second)


def _compare_weights(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of two weights by their ratio."""
    if not a.weight or not b.weight:
        return 0
    ratio = _compute_ratio(a.weight, b.weight)
    return 1 if ratio <= 1.02 else 2 if ratio <= 1.1 else 3


_MIN_PACK_RATIO = 1.45
"""Minimum price ratio of a pack to a single piece."""
_PRICE_LIMITS = (1.03, 1.15, 1.4, 2.0)


def _have_same_currency(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether the currencies of two prices are equal, or one of them is unknown."""
    return a.currency == b.currency or not a.currency or not b.currency


def _compare_prices(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of two prices by their ratio."""
    if not (a.price and b.price and _have_same_currency(a, b)):
        return 0
    return 1 + bisect_left(_PRICE_LIMITS, _compute_ratio(a.price, b.price))


def _compare_counts(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of pack sizes and numbers of pieces."""
    if a.packs is None and b.packs is None and (a.pieces is None or b.pieces is None):
        return 0
    if (a.packs or 1) != (b.packs or 1):
        return 3 if (a.packs and b.packs) or _costs_as_pack(a, b) else 2
    return 3 if a.pieces and b.pieces and a.pieces != b.pieces else 1


def _costs_as_pack(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether the item with a pack size costs at least 1.45 times as much as the other item."""
    if not (a.price and b.price and _have_same_currency(a, b)):
        return False
    return a.price >= _MIN_PACK_RATIO * b.price if a.packs else b.price >= _MIN_PACK_RATIO * a.price


def _compare_descriptions(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> int:
    """Return the comparison level of words that occur in one title only.

    The level depends on the share of these words in the description of the other item. Rare words count more than
    frequent ones.
    """
    left, right = a.words - b.words - b.brand, b.words - a.words - a.brand
    whole = fsum(map(frequencies.compute_information, left | right))
    if not whole or not (a.described or b.described):
        return 0
    described = (left & b.described) | (right & a.described)
    part = fsum(map(frequencies.compute_information, described)) / whole
    return 1 if part >= 0.5 else 2 if part >= 0.2 else 3


_FUNCTIONS: Final[Mapping[str, tuple[LevelFunction, Callable[[MatchFeatures], object]]]] = {
    "gtin": (_compare_gtins, lambda f: f.gtin),
    "code": (_compare_codes, lambda f: sorted(f.codes)),
    "title": (_compare_titles, lambda f: f.title),
    "quantities": (_compare_quantities, lambda f: sorted(f.quantities)),
    "brand": (_compare_brands, lambda f: sorted(f.brand)),
    "colour": (_compare_colours, lambda f: sorted(f.colours)),
    "dimensions": (_compare_dimensions, lambda f: f.sides),
    "size": (_compare_sizes, lambda f: f.sizes),
    "weight": (_compare_weights, lambda f: f.weight),
    "price": (_compare_prices, lambda f: f.price),
    "pieces": (_compare_counts, lambda f: (f.packs, f.pieces)),
    "description": (_compare_descriptions, lambda f: sorted(f.described)),
}
COMPARISONS = tuple(
    Comparison(name, ("missing", *stated["levels"]), *_FUNCTIONS[name], stated.get("ordered", True))
    for name, stated in load_table("weights").items()
)
"""All comparisons, in the order of the levels of a pair."""
Levels = tuple[int, ...]
"""The levels of a pair: one for each comparison, in the order of COMPARISONS."""
_LEVEL_FUNCTIONS = tuple(comparison.find_level for comparison in COMPARISONS)


def compare_items(a: MatchFeatures, b: MatchFeatures, frequencies: FeatureFrequencies) -> Levels:
    """Return the comparison level of every comparison of two items; exchanging the items does not change the levels."""
    return tuple([level(a, b, frequencies) for level in _LEVEL_FUNCTIONS])
