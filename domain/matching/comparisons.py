"""Comparisons of two items: each compares one feature and returns one of its levels."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product
from math import fsum, log2
from typing import Final

from domain.matching.features import MatchFeatures
from domain.matching.measures import beyond, close, same_size
from domain.matching.words import COLOURS, alike, data

_LONG = 9
HUB = 3
"""Maximum number of items with a code; a more frequent code identifies a family, not an item."""
_ROUNDED = 1.02
_FIGURES = 12
"""Maximum number of digits of a number that is compared by value."""
_OTHERWISE = 48
"""Maximum number of words of each title that are compared for alternative spellings, which is quadratic."""


class Rarity:
    """Frequencies of codes and words among the items of both sides, cached.

    Attributes:
        codes: How many items bear a code.
        stems: How many items bear a code of that stem.
        information: The bits that sharing a word is worth, the log2 of how rare it is: 0 for a word of every item.
    """

    def __init__(
        self, items: int, bearers: Callable[[str], int], codes: Callable[[str], int], stems: Callable[[str], int]
    ) -> None:
        self.codes, self.stems = cache(codes), cache(stems)
        self.information = cache(lambda word: log2((items + 2) / (bearers(word) + 1)))


Level = Callable[[MatchFeatures, MatchFeatures, Rarity], int]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two items. `levels` run from not comparable (0, without weight) through the best to the worst."""

    name: str
    levels: tuple[str, ...]
    level: Level
    shown: Callable[[MatchFeatures], object]
    """The value of an item that evidence shows."""
    ordered: bool = True
    """Whether a better level can never weigh less than a worse one."""


class Different:
    """The level of a comparison from which on the features may be in conflict."""

    GTIN: Final = 2
    BRAND: Final = 3
    COLOUR: Final = 4
    DIMENSIONS: Final = 5
    SIZE: Final = 2
    PIECES: Final = 2


def _gtin(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    if not a.gtin or not b.gtin:
        return 0
    return 1 if a.gtin == b.gtin else 2


def _code(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    if shared := a.codes & b.codes:
        return 1 if min(rarity.codes(c) for c in shared) <= HUB else 3
    if shared := a.stems & b.stems:
        return 2 if min(rarity.stems(c) for c in shared) <= 2 * HUB else 3
    if a.stems & b.joined or a.joined & b.stems or a.codes & b.joined or a.joined & b.codes or _contained(a, b):
        return 4
    if a.codes & b.mentioned or a.mentioned & b.codes:
        return 5
    if a.part and b.part:
        return 7
    return 6 if a.codes and b.codes else 0


def _contained(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether one item's code contains a code of the other: at least five characters with three digits, or a long one."""
    for one, other in product(a.codes, b.codes):
        short, long = (one, other) if len(one) < len(other) else (other, one)
        if len(short) >= 5 and short in long:
            digits = sum(map(str.isdigit, short))
            if digits >= 3 or (digits and len(short) >= _LONG):
                return True
    return False


def _alike(left: frozenset[str], right: frozenset[str], rarity: Rarity) -> float:
    """Return the information of words that are probably the same in other spellings; each counts once."""
    ones, free = sorted((sorted(left)[:_OTHERWISE], sorted(right)[:_OTHERWISE]))
    gained = 0.0
    for one in ones:
        for other in free:
            if alike(one, other):
                gained += 0.8 * min(rarity.information(one), rarity.information(other))
                free.remove(other)
                break
    return gained


_TITLE = (0.92, 0.8, 0.66, 0.52, 0.38, 0.22)


def _title(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    """Compare the shared information of two titles with that of each; brand and colours are separate comparisons."""
    aside = a.brand | b.brand | a.colours | b.colours
    left, right = a.words - aside, b.words - aside
    parts = left & right, left - right, right - left
    shared, of_left, of_right = [fsum(map(rarity.information, part)) for part in parts]
    whole: float = (shared + of_left) * (shared + of_right)
    if not whole:
        return 0
    if of_left and of_right:
        shared += _alike(*parts[1:], rarity)
    likeness: float = shared / whole**0.5
    return 1 + sum(likeness < least for least in _TITLE)


def _quantities(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    left, right = a.quantities, b.quantities
    if not left or not right:
        return 0
    if left == right:
        return 1
    agreeing, contradict = _compared(left - right, right - left)
    agreeing += len(left & right)
    if agreeing >= min(len(left), len(right)):
        return 1 if len(left) == len(right) else 2
    return 5 if contradict else 3 if agreeing else 4


def _compared(left: frozenset[str], right: frozenset[str]) -> tuple[int, bool]:
    """Return how many numbers of one are told by the other in another way, and whether both state a unit in numbers that differ.

    `4 Schubladen`, whose unit nobody knows, and `4drawer` are one; `32gb` and `64gb` contradict.
    """
    ones, others = _by_unit(left), _by_unit(right)
    agreeing, contradict = 0, False
    for unit, numbers in ones.items():
        for name, found in others.items():
            if name == unit != "":
                same = sum(any(max(x, y) <= _ROUNDED * min(x, y) for y in found) for x in numbers)
                agreeing += same
                contradict = contradict or not same
            elif not name or not unit:
                agreeing += len(set(numbers) & set(found))
    return agreeing, contradict


@lru_cache(maxsize=1 << 16)
def _by_unit(quantities: frozenset[str]) -> dict[str, list[float]]:
    """Return the numbers of quantities by their units; the unit of a bare number is blank."""
    found: dict[str, list[float]] = {}
    for quantity in quantities:
        unit = quantity.lstrip("0123456789.")
        number = quantity[: len(quantity) - len(unit)]
        if len(number) <= _FIGURES:
            found.setdefault(unit, []).append(float(number))
    return found


def _brand(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    if not a.brand or not b.brand:
        return 0 if a.brand == b.brand else 2 if a.brand <= b.words and b.brand <= a.words else 4
    if a.brand == b.brand:
        return 1
    return 2 if a.brand & b.brand or a.brand <= b.words or b.brand <= a.words else 3


def shades_apart(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether each of two items has a known colour or finish that the other has not."""
    return bool(a.shades - b.colours - b.words) and bool(b.shades - a.colours - a.words)


def _colour(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    left, right = a.colours, b.colours
    if not left or not right:
        return 0
    if left == right:
        return 1
    only_left, only_right = left - right - b.words, right - left - a.words
    if shades_apart(a, b):
        return 6
    if only_left and only_right:
        if all(any(alike(w, o) for o in only_left) for w in only_right):
            return 3
        return 5 if left & right or not a.colour_stated or not b.colour_stated else 6
    if (only_left | only_right) & COLOURS:
        return 4
    return 3 if only_left or only_right else 2


def colours_differ(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether two stated colours partly agree, but one has an additional shade or each has a word that the other lacks.

    Examples: `grey lund` and `grey moss`, `white` and `white oak`. Colours without a shared word may be in two languages.
    """
    if not (a.colour_stated and b.colour_stated and a.colours & b.colours):
        return False
    one, other = a.colours - b.colours - b.words, b.colours - a.colours - a.words
    if (one | other) & COLOURS:
        return True
    return bool(one and other) and not any(alike(w, o) for w in one for o in other)


def sides_pairs(a: MatchFeatures, b: MatchFeatures) -> list[tuple[float, float]]:
    """Return the pairs of lengths that both items state, with width and depth in the order that fits best."""
    (aw, ad, ah), (bw, bd, bh) = a.sides, b.sides
    upright = [(ah, bh)] if ah and bh else []
    straight = [(x, y) for x, y in ((aw, bw), (ad, bd)) if x and y]
    if off := _off(straight):
        crossed = [(x, y) for x, y in ((aw, bd), (ad, bw)) if x and y]
        if len(crossed) >= len(straight) and _off(crossed) < off:
            return crossed + upright
    return straight + upright


def _off(pairs: list[tuple[float, float]]) -> int:
    return sum(2 if beyond(x, y) else not close(x, y) for x, y in pairs)


def same_figures(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether two items state at least two lengths with equal figures, so that one item's unit is wrong."""
    stated = [x == y for x, y in zip(a.figures, b.figures, strict=True) if x and y]
    return len(stated) >= 2 and all(stated)


def _dimensions(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    pairs = sides_pairs(a, b)
    if not pairs:
        return 0
    if any(beyond(x, y) for x, y in pairs):
        return 3 if same_figures(a, b) else 5
    agreeing = sum(close(x, y) for x, y in pairs)
    return 4 if agreeing < len(pairs) else 4 - min(agreeing, 3)


def _size(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    if not a.sizes or not b.sizes:
        return 0
    same = same_size(a.sizes, b.sizes)
    return 0 if same is None else 1 if same else 2


def _ratio(one: float, other: float) -> float:
    return max(one, other) / min(one, other)


def _weight(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    if not a.weight or not b.weight:
        return 0
    ratio = _ratio(a.weight, b.weight)
    return 1 if ratio <= 1.02 else 2 if ratio <= 1.1 else 3


_PACK = 1.45
"""Minimum price ratio of a pack to a single piece."""
_PRICE = (1.03, 1.15, 1.4, 2.0)


def _in_one_currency(a: MatchFeatures, b: MatchFeatures) -> bool:
    return a.currency == b.currency or not a.currency or not b.currency


def _price(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    if not (a.price and b.price and _in_one_currency(a, b)):
        return 0
    return 1 + bisect_left(_PRICE, _ratio(a.price, b.price))


def _pieces(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    if a.packs is None and b.packs is None and (a.pieces is None or b.pieces is None):
        return 0
    if (a.packs or 1) != (b.packs or 1):
        return 3 if (a.packs and b.packs) or _costs_more(a, b) else 2
    return 3 if a.pieces and b.pieces and a.pieces != b.pieces else 1


def _costs_more(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether the one of two items that tells how many are sold together is by so much dearer that it is a pack of the other."""
    if not (a.price and b.price and _in_one_currency(a, b)):
        return False
    return a.price >= _PACK * b.price if a.packs else b.price >= _PACK * a.price


def _described(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> int:
    """Return how much of the words in only one title occurs in the other item's description."""
    left, right = a.words - b.words - b.brand, b.words - a.words - a.brand
    whole = fsum(map(rarity.information, left | right))
    if not whole or not (a.described or b.described):
        return 0
    told = (left & b.described) | (right & a.described)
    part = fsum(map(rarity.information, told)) / whole
    return 1 if part >= 0.5 else 2 if part >= 0.2 else 3


_COMPARED: Final[Mapping[str, tuple[Level, Callable[[MatchFeatures], object]]]] = {
    "gtin": (_gtin, lambda f: f.gtin),
    "code": (_code, lambda f: sorted(f.codes)),
    "title": (_title, lambda f: f.title),
    "quantities": (_quantities, lambda f: sorted(f.quantities)),
    "brand": (_brand, lambda f: sorted(f.brand)),
    "colour": (_colour, lambda f: sorted(f.colours)),
    "dimensions": (_dimensions, lambda f: f.sides),
    "size": (_size, lambda f: f.sizes),
    "weight": (_weight, lambda f: f.weight),
    "price": (_price, lambda f: f.price),
    "pieces": (_pieces, lambda f: (f.packs, f.pieces)),
    "description": (_described, lambda f: sorted(f.described)),
}
COMPARISONS = tuple(
    Comparison(name, ("missing", *stated["levels"]), *_COMPARED[name], stated.get("ordered", True))
    for name, stated in data("weights").items()
)
"""All comparisons, in the order of a pair's levels."""
Levels = tuple[int, ...]
_LEVEL_OF = tuple(comparison.level for comparison in COMPARISONS)


def compare(a: MatchFeatures, b: MatchFeatures, rarity: Rarity) -> Levels:
    """Return the level of every comparison; the order of the items does not matter."""
    return tuple([level(a, b, rarity) for level in _LEVEL_OF])
