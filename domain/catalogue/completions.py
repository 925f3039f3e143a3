"""Completions of a search query: words of titles and brands, and variants by the prefix of a code."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.catalogue import search

WORDS = 8
"""Maximum number of completions for the last word."""
ITEMS = 24
"""Maximum number of variants that are listed by the prefix of a SKU or MPN."""
SHORTEST_CODE = 3
"""Minimum number of characters of a code prefix."""
BEYOND = "\U0010ffff"
"""The last code point; appended to a prefix, it sorts after every text with that prefix."""


@dataclass(frozen=True, slots=True)
class Completions:
    """The completions of a query.

    Attributes:
        words: Longer words that begin with the query's last word, in alphabetical order.
        variants: IDs of the variants whose SKU or MPN begins with the query.

    """

    words: Sequence[str]
    variants: Sequence[str]


def last_word(q: str) -> str:
    """Return the last word of a query; empty if the query ends with a space."""
    words = search.split(q)
    return words[-1] if words and q and not q[-1].isspace() else ""


def grown(q: str, completions: Completions) -> list[str]:
    """Return the query once per completion, with its last word completed."""
    others = search.split(q)[:-1]
    return [" ".join([*others, word]) for word in completions.words]
