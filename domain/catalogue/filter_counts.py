"""Numbers of products for each value by which a list of products can be filtered."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

MAX_COUNTED_PRODUCTS = 1_000
"""Maximum number of products that are counted, the newest first."""
MAX_FILTER_VALUES = 30
"""Maximum number of values listed for one filter: those with the most products."""


@dataclass(frozen=True, slots=True)
class FilterCounts:
    """Number of products for each value of each filter, most frequent value first.

    A product counts for each of its sources and availabilities, and for its category with all categories above.

    Attributes:
        counted_products: Number of products that were counted, the newest ones.
        is_complete: Whether all products that match the filter were counted.
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
    """Return the most frequent values of one filter with their counts.

    Args:
        term_counts: Search terms with their counts; the terms of other filters are ignored.
        make_term: Returns the search term of a value: the prefix of the filter's terms, followed by the value.
    """
    start = make_term("")
    return list_most_frequent(
        {found.removeprefix(start): count for found, count in term_counts if found.startswith(start)}
    )
