"""Comparison of the values of a column with the possible meanings of its header, and the confidence in a meaning.

A meaning is a field with settings. The kinds of values, their effects on meanings and the contradictions are in `data/evidence.toml`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from domain.ingestion.data import load_patterns, load_toml, split_phrases
from domain.ingestion.values.dates import parse_lead_time
from domain.ingestion.values.quantities import parse_length_unit
from domain.ingestion.values.stock import parse_stock_word
from domain.ingestion.values.text import PLACEHOLDERS
from domain.ingestion.values.words import parse_gtin
from domain.ingestion.vocabulary.fields import IGNORE, MONEY, is_field
from domain.ingestion.vocabulary.header_meanings import (
    OUTSIDE_CATALOGUE,
    PROMOTED_SCORE,
    HeaderMeaning,
    classify_header,
    combine_concepts,
    compute_similarity,
    find_field_class,
    normalise_words,
    split_into_words,
)

_OTHER_STATUSES = frozenset("active yes no y n true false ja nein oui non si sí".split())
"""Words for stock that can also be the status of a product, or an answer."""
CONTRADICTED = "contradicted"
"""Field that marks a column whose values contradict every possible meaning of its header."""
_MAX_VALUES = 60
_MAX_VALUE_CHARS = 400
_MIN_VALUES_AGAINST_PRICE = 2
"""Minimum number of values in a column that can contradict a price; a single contradiction can be an error."""
_MIN_GTINS = 3
_MIN_GTIN_SHARE = 0.9
_INFERRED_SCORE = 62
_CLEAR_CATEGORY_SCORE = 60
_PHRASE_CONFIDENCE = 0.96
_READING_CONFIDENCE = 0.9
_GUESS_CONFIDENCE = 0.65
_MAX_WITHOUT_VALUES = 0.89
_MAX_ALTERNATIVE = 0.8
_MAX_PROMOTED = 0.7
_CLEAR_SCORE = 80
_CERTAIN_SCORE = 95
_HIGH_SIMILARITY = 0.8
_RIVAL_DISTANCE = 25
_MIN_DISPUTE_PROBABILITY = 0.5
_CONFUSABLE_FIELDS = frozenset(
    "price sale_price cost msrp product_key mpn title variant_title collection category_path category_path.0 category_path.1 "
    "features tags availability status axes axes.Size dimensions description quantity location finish google_category".split()
)
"""Fields that are easily confused, such as different prices, texts and codes."""
_DATA = load_toml("evidence")


def _create_phrase_test(text: str) -> Callable[[str], bool]:
    known = frozenset(map(normalise_words, split_phrases(text)))
    return lambda value: normalise_words(value) in known


def _names_stock(value: str) -> bool:
    """Return whether a value is a word for stock, apart from those that are also the status of a product."""
    stock = parse_stock_word(value)
    return stock is not None and stock.availability != "discontinued" and value.casefold() not in _OTHER_STATUSES


def _names_furniture(value: str) -> bool:
    """Return whether a value contains a word for furniture or a rug."""
    return bool(combine_concepts(split_into_words(normalise_words(value[:80]))) & {"furniture", "rug"})


_KINDS: Final[Mapping[str, Callable[[str], object]]] = {
    **{name: pattern.search for name, pattern in load_patterns("evidence").items()},
    **{name: _create_phrase_test(text) for name, text in _DATA["words"].items()},
    "gtins": lambda value: parse_gtin(value).value,
    "units": parse_length_unit,
    "furnished": _names_furniture,
    "terms": lambda value: parse_lead_time(value).value is not None and not value.isdecimal(),
    "stock_words": _names_stock,
}


class ValueStatistics(dict[str, float]):
    """Statistics of the values of a column: the proportion, from 0 to 1, of values of each kind, such as `gtins`.

    A proportion is computed when it is first read. The entry `count` is the number of values.
    """

    def __init__(self, values: Sequence[str]) -> None:
        super().__init__(count=len(values))
        self._values = values

    def __missing__(self, kind: str) -> float:
        """Compute and store the proportion of values of a kind."""
        self[kind] = sum(map(bool, map(_KINDS[kind], self._values))) / len(self._values)
        return self[kind]


@dataclass(frozen=True, slots=True)
class _ProportionLimits:
    """Limits for the proportions of kinds of values in a column.

    Attributes:
        least: The minimum proportion by kind.
        below: The proportion by kind that must not be reached.
    """

    least: Mapping[str, float] = field(default_factory=dict)
    below: Mapping[str, float] = field(default_factory=dict)

    def are_met_by(self, statistics: ValueStatistics) -> bool:
        """Return whether all proportions are within the limits."""
        return all(statistics[kind] >= share for kind, share in self.least.items()) and all(
            statistics[kind] < share for kind, share in self.below.items()
        )


@dataclass(frozen=True, slots=True)
class _Adjustment(_ProportionLimits):
    """Rule that changes the possible meanings of a column because of its values (table `adjust` in evidence.toml).

    Attributes:
        first: The fields of the best meaning to which the rule applies; if empty, all fields.
        among: Groups of fields separated by `|`; the meanings must contain a field of each group.
        without: The fields that the meanings must not contain.
        weaker_than: The score that the best meaning must not reach.
        becomes: The field that replaces the field of the best meaning, or an empty string.
        adds: The field to add as another meaning, or an empty string.
        score: The score of the changed or added meaning; 0 means the score of the best meaning.
        scores: New scores of other meanings by field; 0 removes a meaning.
        alone: Whether all other meanings are removed.
    """

    first: Sequence[str] = ()
    among: Sequence[str] = ()
    without: Sequence[str] = ()
    weaker_than: int = 1_000
    becomes: str = ""
    adds: str = ""
    score: int = 0
    scores: Mapping[str, int] = field(default_factory=dict)
    alone: bool = False

    def applies_to(self, meanings: Sequence[HeaderMeaning], statistics: ValueStatistics) -> bool:
        """Return whether the rule applies to a column."""
        fields = {sense.field for sense in meanings}
        return (
            (not self.first or meanings[0].field in self.first)
            and meanings[0].score < self.weaker_than
            and all(not fields.isdisjoint(names.split("|")) for names in self.among)
            and fields.isdisjoint(self.without)
            and self.are_met_by(statistics)
        )

    def apply(self, meanings: Sequence[HeaderMeaning]) -> tuple[HeaderMeaning, ...]:
        """Apply the rule to the meanings of a column, and return the result, best first."""
        name = self.becomes or self.adds
        changed = replace(meanings[0], field=name, score=self.score or meanings[0].score)
        changed_meanings, other_meanings = ((changed,) if name else ()), (meanings[1:] if self.becomes else meanings)
        rescored = [replace(sense, score=self.scores.get(sense.field, sense.score)) for sense in other_meanings]
        senses = (
            changed_meanings if self.alone else (*changed_meanings, *(sense for sense in rescored if sense.score > 0))
        )
        return tuple(sorted(senses, key=lambda sense: -sense.score))


_ADJUSTMENTS = tuple(_Adjustment(**row) for row in _DATA["adjust"])


def _load_limits_by_field() -> dict[str, list[_ProportionLimits]]:
    found: dict[str, list[_ProportionLimits]] = {}
    for row in _DATA["values"]:
        for name in row["fields"]:
            found.setdefault(name, []).append(_ProportionLimits(row.get("least", {}), row.get("below", {})))
    return found


_VALUES = _load_limits_by_field()


def compute_value_statistics(samples: Sequence[str]) -> ValueStatistics | None:
    """Return statistics of the first values of a column, or None if all of them are blank."""
    cut = (sample.strip()[:_MAX_VALUE_CHARS] for sample in samples[:_MAX_VALUES])
    values = [value for value in cut if value and value.lower() not in PLACEHOLDERS]
    return ValueStatistics(values) if values else None


def _find_limits(field_path: str) -> Sequence[_ProportionLimits]:
    """Return alternative limits for the values of a field; empty if the field can have any value.

    The values must be within at least one of the alternatives.
    """
    names = (
        (field_path, f"*.{field_path.rpartition('.')[2]}", f"{field_path.partition('.')[0]}.*")
        if "." in field_path
        else (field_path,)
    )
    return next(filter(None, map(_VALUES.get, names)), ())


def is_contradicted(field_path: str, statistics: ValueStatistics) -> bool:
    """Return whether the values of a column contradict a field."""
    alternatives = _find_limits(field_path)
    return bool(alternatives) and not any(limits.are_met_by(statistics) for limits in alternatives)


def is_confirmed(field_path: str, statistics: ValueStatistics) -> bool:
    """Return whether the values of a column confirm a field; False for a field that can have any value."""
    return bool(_find_limits(field_path)) and not is_contradicted(field_path, statistics)


def filter_meanings(
    meanings: tuple[HeaderMeaning, ...], statistics: ValueStatistics | None
) -> tuple[HeaderMeaning, ...]:
    """Return the possible meanings of a column after a comparison with the values of the column, best first.

    Contradicted meanings are removed, and other meanings can be adjusted. If the values contradict all meanings, the
    result is one meaning with the field CONTRADICTED. If the header has no meaning and the values are GTINs, the result
    is the meaning `gtin`.

    Args:
        meanings: The possible meanings of the header, best first.
        statistics: The statistics of the values, or None for a column without values.
    """
    if statistics is None:
        if meanings and meanings[0].field == "category_path" and meanings[0].score < _CLEAR_CATEGORY_SCORE:
            return ()
        is_title = bool(meanings) and meanings[0].field == "title"
        return tuple(sense for sense in meanings if not is_title or sense.field != "collection")
    for row in _ADJUSTMENTS:
        if meanings and row.applies_to(meanings, statistics):
            meanings = row.apply(meanings)
    if not meanings:
        are_gtins = statistics["count"] >= _MIN_GTINS and statistics["gtins"] > _MIN_GTIN_SHARE
        return (HeaderMeaning("gtin", _INFERRED_SCORE, is_guess=True),) if are_gtins else ()
    unchecked_fields = MONEY if statistics["count"] < _MIN_VALUES_AGAINST_PRICE else frozenset((IGNORE,))
    remaining = tuple(
        meaning
        for meaning in meanings
        if meaning.field in unchecked_fields
        or meaning.field == IGNORE
        or not is_contradicted(meaning.field, statistics)
    )
    return remaining or (replace(meanings[0], score=1, field=CONTRADICTED),)


def find_differing_field(header: str, field_path: str, statistics: ValueStatistics | None) -> str | None:
    """Return the field, or IGNORE, that the classification of a header assigns instead of a field; None if it does not disagree.

    Args:
        header: The header.
        field_path: The field that the header is mapped to.
        statistics: The statistics of the values, or None. If they confirm the field, or contradict the other one, the result is None.
    """
    label, probability = classify_header(header)
    other = IGNORE if label == OUTSIDE_CATALOGUE else label
    if probability < _MIN_DISPUTE_PROBABILITY or label == find_field_class(field_path) or not is_field(other):
        return None
    if statistics is not None and (is_confirmed(field_path, statistics) or is_contradicted(other, statistics)):
        return None
    return other


def estimate_confidence(
    header: str, chosen: HeaderMeaning, meanings: Sequence[HeaderMeaning], statistics: ValueStatistics | None
) -> float:
    """Estimate the probability, from 0 to 1, that the chosen meaning of a column is correct.

    From 0.9 a meaning counts as certain; this requires values that confirm the meaning.

    Args:
        header: The header.
        chosen: The chosen meaning.
        meanings: All possible meanings of the column.
        statistics: The statistics of the values, or None for a column without values.
    """
    confidence = (
        _GUESS_CONFIDENCE if chosen.is_guess else _PHRASE_CONFIDENCE if chosen.is_phrase else _READING_CONFIDENCE
    )
    rival_count = len({option.field for option in meanings if option.score > chosen.score - _RIVAL_DISTANCE}) - 1
    confidence -= 0.08 * min(rival_count, 2) + (0.05 if chosen.score < _CLEAR_SCORE else 0)
    similarity = compute_similarity(header, chosen.field)
    confidence += (1 - confidence) * similarity / 2 if similarity > 0 else similarity * 0.12
    is_confirmed_by_values = statistics is not None and is_confirmed(chosen.field, statistics)
    confidence += (1 - confidence) / 2 if is_confirmed_by_values else 0
    is_certain_phrase = chosen.is_phrase and chosen.score >= _CERTAIN_SCORE and not rival_count
    is_distinct = chosen.field not in _CONFUSABLE_FIELDS and not chosen.is_guess
    if statistics is None or similarity <= _HIGH_SIMILARITY or not (is_certain_phrase or is_distinct):
        confidence = min(confidence, _MAX_WITHOUT_VALUES)
    if {"alternative", "fallback"} & dict(chosen.settings).keys():
        confidence = min(confidence, _MAX_ALTERNATIVE)
    if chosen.score == PROMOTED_SCORE:
        confidence = min(confidence, _MAX_PROMOTED)
    return round(max(confidence, 0.05), 3)
