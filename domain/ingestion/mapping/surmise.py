"""What the likeness of a header to others adds: a meaning for one that no rule reads, doubt or trust for the rest."""

from dataclasses import replace
from typing import Final

from domain.ingestion.vocabulary.fields import IGNORE, KEYS, MONEY
from domain.ingestion.vocabulary.headings import heading
from domain.ingestion.vocabulary.likeness import OUTSIDE, likeliest
from domain.ingestion.vocabulary.senses import Sense, settings_of

_LIKE_ENOUGH: Final = 0.75
_UNLIKE: Final = 0.5
_RANK: Final = 52
_ONE_CLASS: Final = {
    "category_path.0": "category_path",
    "category_path.1": "category_path",
    "category_path.2": "category_path",
    "media.hero": "media",
    IGNORE: OUTSIDE,
}
_NEVER: Final = MONEY | frozenset((*KEYS, OUTSIDE, "axes", "components", "cartons"))
"""What is not surmised: what keys and prices an item must be said."""


def likeness(header: str, field: str) -> float:
    """How far a header is like those of a field: from -1 (surely another's) to 1 (surely its)."""
    label, chance = likeliest(heading(header).readings[0])
    return chance if label == _class_of(field) else -chance


def _class_of(field: str) -> str:
    name = _ONE_CLASS.get(field, field)
    head, _, tail = name.partition(".")
    if head in ("cartons", "incoming") and tail:
        return f"{head}.0.{tail.partition('.')[2]}"
    return f"{head}.0" if head in ("option_name", "option_value") else name


def by_likeness(header: str, options: tuple[Sense, ...]) -> tuple[Sense, ...]:
    """The senses of a header; where words were left over, only what the header as a whole is like."""
    if options and not options[0].surmised:
        return options
    label, chance = likeliest(heading(header).readings[0])
    if not options:
        if label in _NEVER or chance < _LIKE_ENOUGH:
            return ()
        return (Sense(label, _RANK + round(10 * chance), settings_of(label, header), surmised=True),)
    if label == _class_of(options[0].field):
        return tuple(replace(sense, rank=sense.rank + 10) for sense in options)
    return () if chance >= _UNLIKE else options
