"""Numbers of products by the values of each filter of a product list."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

LOOKED = 1_000
"""Maximum number of products that are counted, the newest first."""
MOST = 30
"""Maximum number of values listed for one filter: those with the most products."""


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """Numbers of products with each value among the newest `looked` products, the most frequent value first.

    `whole` is true if there are no older products. A product counts for each of its sources and availabilities, and for
    its category with all ancestors.
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
    """Return the most frequent values with their counts, from the terms that `term` creates; other terms are ignored."""
    start = term("")
    return most({found.removeprefix(start): count for found, count in counted if found.startswith(start)})
