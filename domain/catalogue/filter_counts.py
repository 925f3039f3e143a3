"""Numbers of products for each value by which a list of products can be filtered."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

MAX_COUNTED_PRODUCTS = 1_000
"""Maximum number of products that are counted, the newest first."""
MAX_FILTER_VALUES = 30
"""Maximum number of values listed for one filter: those with the most products."""


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """The number of products for each value of each filter, most frequent value first.

    The newest `counted_products` products are counted.

    `is_complete`: there are no older products. A product counts for each of its sources and availabilities, and for its
    category with all categories above.
    """

    counted_products: int
    is_complete: bool
    brands: Sequence[tuple[str, int]] = ()
    statuses: Sequence[tuple[str, int]] = ()
    availabilities: Sequence[tuple[str, int]] = ()
    categories: Sequence[tuple[str, int]] = ()
    sources: Sequence[tuple[str, int]] = ()


def list_most_frequent(count_by_value: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    """Return the MAX_FILTER_VALUES most frequent values with their counts; equal counts are ordered by value."""
    return tuple(sorted(count_by_value.items(), key=lambda entry: (-entry[1], entry[0]))[:MAX_FILTER_VALUES])


def count_values(
    term_counts: Iterable[tuple[str, int]], make_term: Callable[[str], str]
) -> tuple[tuple[str, int], ...]:
    """Return the most frequent values of one filter with their counts, from the counts of search terms of all kinds.

    `make_term` returns the search term of a value; search terms with other prefixes are ignored.
    """
    start = make_term("")
    return list_most_frequent(
        {found.removeprefix(start): count for found, count in term_counts if found.startswith(start)}
    )
