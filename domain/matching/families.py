"""How much merges tie together: whatever is said of one product of a family is worked out for all of it anew, so families have bounds."""

from collections import Counter
from typing import Final, NamedTuple

from domain.catalogue.overlay import TiedProducts
from domain.kernel.bounds import VARIANTS
from domain.matching.model import DecidedBy

FAMILY: Final = "family"
"""The conflict of a pair that rules may not merge because too much would be tied together."""


class Extent(NamedTuple):
    """Products that merges tie together, and their variants, as their sources have them."""

    products: int
    variants: int

    def within(self, most: "Extent") -> bool:
        """Whether neither is more than it may be."""
        return self.products <= most.products and self.variants <= most.variants


BY_ITSELF: Final = Extent(64, 1_024)
"""The most that rules and the judge tie together."""
BY_HAND: Final = Extent(256, 4 * VARIANTS)
"""The most that anybody does: two of the largest products can be one."""


def most(by: DecidedBy) -> Extent:
    """What a family may come to by that one's word."""
    return BY_ITSELF if by in (DecidedBy.RULES, DecidedBy.JUDGE) else BY_HAND


class Families:
    """The families of tied products, which merges join one by one."""

    def __init__(self, tied: TiedProducts) -> None:
        named = tied.families()
        self._top = {id: named.get(id, id) for id in tied.products}
        self._products, self._variants = Counter(self._top.values()), Counter[str]()
        for id, product in tied.products.items():
            self._variants[self._top[id]] += len(product.variants)

    def together(self, one: str, other: str) -> Extent:
        """What the families of two products come to as one."""
        tops = {self._family(one), self._family(other)}
        return Extent(sum(self._products[id] for id in tops), sum(self._variants[id] for id in tops))

    def join(self, one: str, other: str) -> None:
        """Have the families of two products be one."""
        first, second = sorted((self._family(one), self._family(other)))
        if first != second:
            self._top[second] = first
            self._products[first] += self._products.pop(second)
            self._variants[first] += self._variants.pop(second)

    def _family(self, id: str) -> str:
        while (above := self._top[id]) != id:
            self._top[id] = self._top[above]
            id = above
        return id
