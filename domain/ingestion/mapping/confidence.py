"""How sure it is that a column means what it was taken for: by header, by likeness to other headers, by its values."""

from collections.abc import Sequence
from typing import Final

from domain.ingestion.mapping.evidence import Traits, supported
from domain.ingestion.vocabulary.likeness import likeness
from domain.ingestion.vocabulary.senses import PROMOTED, Sense

_LISTED: Final = 0.96
_READ: Final = 0.9
_SURMISED: Final = 0.65
_WITHOUT_VALUES: Final = 0.89
_STAND_IN: Final = 0.8
_FOR_WANT: Final = 0.7
_PLAIN: Final = 80
_OWN_NAME: Final = 95
_ALIKE: Final = 0.8


_EASILY_TAKEN: Final = frozenset(
    "price sale_price cost msrp product_key mpn title variant_title collection category_path category_path.0 category_path.1 features "
    "tags availability status axes axes.Size dimensions description quantity location finish google_category".split()
)
"""Fields that are easily taken for each other: other people's prices and numbers, names and texts, stock in words."""


def _plain(sense: Sense, others: int, like: float) -> bool:
    """Whether a header is the field's own name, and nothing else's."""
    if sense.listed and sense.score >= _OWN_NAME and not others and like > _ALIKE:
        return True
    return sense.field not in _EASILY_TAKEN and not sense.surmised and like > _ALIKE


def confidence_of(header: str, sense: Sense, options: Sequence[Sense], traits: Traits | None) -> float:
    """From 0 to 1. A header alone is never enough to be sure (0.9): its values must bear it out."""
    chance = _SURMISED if sense.surmised else _LISTED if sense.listed else _READ
    others = len({option.field for option in options if option.score > sense.score - 25}) - 1
    chance -= 0.08 * min(others, 2) + (0.05 if sense.score < _PLAIN else 0)
    like = likeness(header, sense.field)
    chance += (1 - chance) * like / 2 if like > 0 else like * 0.12
    if traits is None:
        chance = min(chance, _WITHOUT_VALUES)
    elif supported(sense.field, traits):
        chance += (1 - chance) / 2
    if not _plain(sense, others, like):
        chance = min(chance, _WITHOUT_VALUES)
    settings = dict(sense.settings)
    if "alternative" in settings or "fallback" in settings:
        chance = min(chance, _STAND_IN)
    if sense.score == PROMOTED:
        chance = min(chance, _FOR_WANT)
    return round(max(chance, 0.05), 3)
