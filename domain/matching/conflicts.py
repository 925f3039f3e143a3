"""What forbids that two items become one, however alike they are otherwise."""

from collections.abc import Callable, Collection
from typing import Final

from domain.matching.calibration import CERTAIN, DOUBTED, FORBIDDEN
from domain.matching.comparisons import COMPARISONS, Different, Levels, colours_differ, shades_apart
from domain.matching.facts import Facts
from domain.matching.lexicon import ACCESSORIES, FINISHES
from domain.matching.weights import Weights
from domain.matching.words import alike

CONFLICTS: Final = ("gtin", "dimensions", "colour", "finish", "size", "pieces", "brand", "accessory")
"""Every name that `conflicts` gives."""
_AT: Final = {comparison.name: at for at, comparison in enumerate(COMPARISONS)}
_GTIN, _BRAND, _COLOUR, _DIMENSIONS, _SIZE, _PIECES, _PRICE, _CODE = (
    _AT[name] for name in ("gtin", "brand", "colour", "dimensions", "size", "pieces", "price", "code")
)
_ALIKE: Final = range(1, 4)
"""Levels of prices within 40% of each other."""
_OWN: Final = (1, 2)
"""Levels of a shared code that few others bear."""
_SAME: Final = 1
_TELLING: Final = -2.0
"""A level that weighs more than this is common among matches too."""
_FOR: Final = "for"
OFTEN: Final = 3
"""A brand that a side gives to so many items is one that it knows."""

Known = Callable[[Facts], bool]
"""Whether an item's brand is one that both sides know."""


def _unknown(item: Facts) -> bool:
    return False


def conflicts(a: Facts, b: Facts, levels: Levels, known: Known = _unknown) -> tuple[str, ...]:
    """The names of the facts that contradict each other: gtin, brand, dimensions, size, colour, finish, pieces, accessory.

    Brands contradict only where both are `known`: a retailer that writes its own name knows no others' brands, and of an alias
    one side knows nothing.
    """
    found: list[str] = []
    if levels[_GTIN] == Different.GTIN:
        found.append("gtin")
    if levels[_BRAND] == Different.BRAND and known(a) and known(b):
        found.append("brand")
    if levels[_DIMENSIONS] == Different.DIMENSIONS:
        found.append("dimensions")
    if levels[_SIZE] == Different.SIZE:
        found.append("size")
    if levels[_COLOUR] >= Different.COLOUR:
        if shades_apart(a, b):
            apart = (a.shades ^ b.shades) - a.words - b.words
            found.append("finish" if apart <= FINISHES else "colour")
        elif colours_differ(a, b):
            found.append("colour")
    if levels[_PIECES] >= Different.PIECES:
        found.append("pieces")
    if (a.accessory and _foreign(a, b)) or (b.accessory and _foreign(b, a)):
        found.append("accessory")
    return tuple(found)


def most(found: Collection[str], levels: Levels, weights: Weights) -> float | None:
    """The log2 odds that conflicts leave a pair at most; None without any.

    GTINs and brands are often wrong. So is that only one side says how many are sold together, where that is learnt to be left out at
    will, and a price like that of one piece or a code of the item itself is there to say so.
    """
    if not found:
        return None
    doubts = {"gtin", "brand"}
    backed = levels[_PRICE] in _ALIKE or levels[_CODE] in _OWN or levels[_GTIN] == _SAME
    if backed and levels[_PIECES] == Different.PIECES and weights.bits[_PIECES][Different.PIECES] > _TELLING:
        doubts.add("pieces")
    return DOUBTED if doubts.issuperset(found) else FORBIDDEN


def contested(found: Collection[str], levels: Levels, free: float) -> bool:
    """Whether a pair is one for people: rules would merge it but for one fact, which is as often a slip as a difference.

    `free` are its log2 odds without the conflict, rivals counted. A code of the item itself has to be behind it: one GTIN is
    often given to all colours. Packs are never meant.
    """
    return free >= CERTAIN and len(found) == 1 and "pieces" not in found and levels[_CODE] in _OWN


def _foreign(a: Facts, b: Facts) -> bool:
    """Whether the accessory `a` is called what `b` is not; whatever is `for` something is no main thing."""
    return (
        bool(a.accessory)
        and _FOR not in b.words
        and b.words.isdisjoint(ACCESSORIES)
        and not any(alike(k, w) for k in a.accessory for w in b.words)
    )
