"""How many of the products that are found have each value that the list could be narrowed to."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

LOOKED = 1_000
"""Products that are counted at most: the newest found."""
MOST = 30
"""Values of one filter that are told at most: those of most products."""


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """Of the newest `looked` products found, how many have each value, the most frequent first. `whole`: there are no others.

    A product with several sources or availabilities counts for each, and for its category and all above.
    """

    looked: int
    whole: bool
    brands: Sequence[tuple[str, int]] = ()
    statuses: Sequence[tuple[str, int]] = ()
    availabilities: Sequence[tuple[str, int]] = ()
    categories: Sequence[tuple[str, int]] = ()
    sources: Sequence[tuple[str, int]] = ()


def most(counted: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return the MOST most frequent values with their counts, in an order that all stores share."""
    return tuple(sorted(counted.items(), key=lambda entry: (-entry[1], entry[0]))[:MOST])


def by_term(counted: Iterable[tuple[str, int]], term: Callable[[str], str]) -> tuple[tuple[str, int], ...]:
    """Those of the terms that `term` makes, as the values that it makes them of."""
    start = term("")
    return most({found.removeprefix(start): count for found, count in counted if found.startswith(start)})
