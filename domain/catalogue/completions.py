"""What a query that is still being typed may grow into: whole words of titles and brands, and items by the beginning of a code."""

from collections.abc import Sequence
from dataclasses import dataclass

from domain.catalogue import search

WORDS = 8
"""Words that are offered for the one that is being typed."""
ITEMS = 24
"""Variants that are told by the beginning of a SKU or MPN."""
SHORTEST_CODE = 3
"""Characters from which on the beginning of a code is looked for."""
BEYOND = "\U0010ffff"
"""Behind everything that begins as what it is put to."""


@dataclass(frozen=True, slots=True)
class Completions:
    """`words` begin with the query's last word and are longer, in their order; `variants` have a SKU or MPN that begins with the query."""

    words: Sequence[str]
    variants: Sequence[str]


def last_word(q: str) -> str:
    """Return the word that is being typed; empty if the query ends with a space."""
    words = search.split(q)
    return words[-1] if words and q and not q[-1].isspace() else ""


def grown(q: str, completions: Completions) -> list[str]:
    """Return the query once per completion, with its last word completed."""
    others = search.split(q)[:-1]
    return [" ".join([*others, word]) for word in completions.words]
