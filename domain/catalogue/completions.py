"""Completions of a search query: words of titles and brands, and variants whose code starts with the query."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.catalogue import search_terms

MAX_WORD_COMPLETIONS = 8
"""Maximum number of completions for the last word."""
MAX_CODE_COMPLETIONS = 24
"""Maximum number of variants that are listed because their SKU or MPN starts with the query."""
MIN_CODE_CHARS = 3
"""Minimum number of characters for completing a code."""
PREFIX_END = "\U0010ffff"
"""The last code point; appended to a prefix, it sorts after every text with that prefix."""


@dataclass(frozen=True, slots=True)
class Completions:
    """Completions of a query.

    Attributes:
        words: Longer words that begin with the query's last word, in alphabetical order.
        variants: IDs of the variants whose SKU or MPN begins with the query.

    """

    words: Sequence[str]
    variants: Sequence[str]


def last_word(q: str) -> str:
    """Return the last word of a query, or an empty string if the query ends with a space."""
    words = search_terms.split_into_words(q)
    return words[-1] if words and q and not q[-1].isspace() else ""


def complete_query(q: str, completions: Completions) -> list[str]:
    """Return one query for each completion of the last word, with the last word replaced by the completion."""
    others = search_terms.split_into_words(q)[:-1]
    return [" ".join([*others, word]) for word in completions.words]
