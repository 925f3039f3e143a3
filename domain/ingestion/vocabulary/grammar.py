"""A header read by its words: what they stand for, alone and together, says which fields it may mean."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.ingestion.values.lengths import unit_named
from domain.ingestion.values.weights import weight_unit_named
from domain.ingestion.vocabulary.concepts import Word, known, words_of
from domain.ingestion.vocabulary.rules import RULES, Rule
from domain.kernel.money import EXPONENTS

_FIGURES: Final = re.compile(r"(?<=[^\W\d_])(?=\d)|(?<=\d)(?=[^\W\d_])")
_NO_CODES: Final = frozenset(("all", "top", "map", "cup", "try"))
_LOCAL_UNITS: Final = frozenset("руб р мм см кг г гр м zł zl kr kč kc".split())
_LETTERS: Final = {"w": "width", "b": "width", "d": "depth", "t": "depth", "h": "height", "l": "length"}
_HAVING_SIDES: Final = frozenset("package dims size overall item gross".split())
_BORNE: Final = frozenset("seat arm package".split())
_UNKNOWN_COSTS: Final = 18
_MISSPELT_COSTS: Final = 12
_MOST_UNKNOWN: Final = 3
_TRANSLATED_COSTS: Final = 9
_LANGUAGE: Final = frozenset(("lang",))


@dataclass(frozen=True, slots=True)
class Reading:
    """What the words of a header come to: fields with ranks, best first; `understood` when nothing was left over.

    An understood header without fields lies outside the catalogue. `spelt` is false when a word had to be put right.
    """

    fields: tuple[tuple[str, int], ...]
    understood: bool
    spelt: bool


NOT_READ: Final = Reading((), understood=False, spelt=True)


def _is_noise(word: str) -> bool:
    """Units and currencies beside the words."""
    if word in _LOCAL_UNITS:
        return True
    if word in EXPONENTS:
        return word not in _NO_CODES
    return bool(unit_named(word) or weight_unit_named(word)) and not known(word)


def words_in(text: str) -> list[Word]:
    """The words of a heading in plain form with their concepts; figures stand apart, units and currencies are left out."""
    apart = " ".join(word if known(word) else _FIGURES.sub(" ", word) for word in text.split())
    words = [word for word in words_of(apart) if not _is_noise(word.text)]
    last = apart.rpartition(" ")[2]
    if (side := _LETTERS.get(last)) and _HAVING_SIDES & frozenset().union(*(word.concepts for word in words)):
        words = [word for word in words if word.text != last]
        words.append(Word(last, frozenset((side,))))
    if len(words) == 2 and (side := _LETTERS.get(words[0].text)) and words[1].concepts & _BORNE:
        words[0] = Word(words[0].text, frozenset((side,)))
    return words


def _fits(rule: Rule, words: Sequence[Word], found: frozenset[str]) -> int | None:
    """How many unknown words the rule passes over; None when it does not fit."""
    if not all(group & found for group in rule.needs):
        return None
    wanted = frozenset().union(*rule.needs) | rule.allows
    unknown = sum(not word.concepts for word in words)
    if unknown and not rule.loose:
        return None
    if rule.anything:
        return unknown
    return unknown if all(not word.concepts or word.concepts & wanted for word in words) else None


def _translated(words: Sequence[Word]) -> int:
    """What a language beside other words costs: of `name` and `name_en` the plain one goes first."""
    return _TRANSLATED_COSTS if len(words) > 1 and any(word.concepts == _LANGUAGE for word in words) else 0


@lru_cache(maxsize=16384)
def read(text: str) -> Reading:
    """What a heading in plain form (`headings.plain_words`) says."""
    words = words_in(text)
    found = frozenset().union(*(word.concepts for word in words)) if words else frozenset()
    if not found or sum(not word.concepts for word in words) > _MOST_UNKNOWN:
        return NOT_READ
    spelt = all(word.sure for word in words if word.concepts)
    for rule in RULES:
        unknown = _fits(rule, words, found)
        if unknown is None:
            continue
        loss = unknown * _UNKNOWN_COSTS + (0 if spelt else _MISSPELT_COSTS) + _translated(words)
        senses = tuple((field, rank - loss) for field, rank in rule.senses if rank > loss)
        outside = rule.anything and not rule.senses
        return Reading(senses, understood=outside or not unknown, spelt=spelt)
    return NOT_READ
