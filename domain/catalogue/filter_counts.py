"""Numbers of products for each value by which a list of products can be filtered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MAX_COUNTED_PRODUCTS = 10_000
"""Maximum number of products that are counted, the newest first."""
MAX_FILTER_VALUES = 30
"""Maximum number of values listed for one filter: those with the most products."""


@dataclass(frozen=True, slots=True)
class TotalCount:
    """Number of products that match a filter; a lower bound unless `is_exact`."""

    count: int = 0
    is_exact: bool = True


NO_PRODUCTS = TotalCount()


@dataclass(frozen=True, slots=True)
class PriceCount:
    """Number of products with a selling price in a currency, and their lowest and highest price in its minor units."""

    currency: str
    lowest: int
    highest: int
    count: int


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """Number of products for each value of each filter, most frequent value first.

    A product counts for each of its sources, availabilities, colours and finishes, and for its category with all
    categories above. The counts of a filter ignore the filter's own values, but not those of other filters.

    Attributes:
        counted_products: Number of products that match all filters and were counted, the newest ones.
        is_complete: Whether all products were counted.
        total: Number of products that match all filters.
    """

    counted_products: int
    is_complete: bool
    brands: Sequence[tuple[str, int]] = ()
    statuses: Sequence[tuple[str, int]] = ()
    availabilities: Sequence[tuple[str, int]] = ()
    categories: Sequence[tuple[str, int]] = ()
    sources: Sequence[tuple[str, int]] = ()
    colours: Sequence[tuple[str, int]] = ()
    finishes: Sequence[tuple[str, int]] = ()
    completeness: Sequence[tuple[str, int]] = ()
    prices: Sequence[PriceCount] = ()
    total: TotalCount = NO_PRODUCTS


def list_most_frequent(count_by_value: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return the MAX_FILTER_VALUES most frequent values with their counts; equal counts are ordered by value."""
    return tuple(sorted(count_by_value.items(), key=lambda entry: (-entry[1], entry[0]))[:MAX_FILTER_VALUES])
