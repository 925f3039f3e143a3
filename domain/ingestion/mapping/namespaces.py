"""Words that stand before many headers of one sheet and say nothing of the columns: a vendor's or a platform's name."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from domain.ingestion.vocabulary.concepts import is_filler, known
from domain.ingestion.vocabulary.headings import heading
from domain.ingestion.vocabulary.senses import NOT_DROPPED, Sense, senses

_FEWEST: Final = 2
_MOST_OF_SHEET: Final = 0.4
_WEAKER: Final = 10
_SHARED: Final = frozenset(
    "quantity title description brand collection category_path media gtin mpn lead_time_days availability".split()
)
"""What a column may be taken for behind a word that only a few headers share: `Bunk Width` is no piece's width."""


def without_namespaces(headers: Sequence[str], sensed: Sequence[tuple[Sense, ...]]) -> list[tuple[Sense, ...]]:
    """The senses of headers; of those without one, what the words behind an unknown first word say that others share."""
    words = [found[0].split() if (found := heading(header).readings) and found[0] else [] for header in headers]
    firsts = Counter(one[0] for one in words if len(one) > 1)
    many = {first: count / len(headers) >= _MOST_OF_SHEET for first, count in firsts.items() if count >= _FEWEST}
    return [
        options or (_behind(one, most=many[one[0]]) if len(one) > 1 and one[0] in many else ())
        for one, options in zip(words, sensed, strict=True)
    ]


def _behind(words: Sequence[str], *, most: bool) -> tuple[Sense, ...]:
    first = words[0]
    if known(first) or is_filler(first) or first in NOT_DROPPED or not first.isalnum() or first.isdecimal():
        return ()
    found = senses(" ".join(words[1:]))
    if not found or not (most or found[0].field in _SHARED):
        return ()
    return tuple(replace(sense, score=sense.score - _WEAKER, surmised=True, listed=False) for sense in found)
