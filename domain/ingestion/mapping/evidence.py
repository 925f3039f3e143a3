"""Evidence from a column's values for or against the senses of its header, and the confidence of both together.

The kinds of values, their effects on senses and the contradictions are in `data/evidence.toml`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from domain.ingestion.data import expressions, load, phrases
from domain.ingestion.values.quantities import unit_named
from domain.ingestion.values.text import PLACEHOLDERS
from domain.ingestion.values.words import parse_gtin
from domain.ingestion.vocabulary.fields import IGNORE, MONEY
from domain.ingestion.vocabulary.senses import PROMOTED, Sense, concepts_in, likeness, plain_words, words_of

CONTRADICTED = "contradicted"
"""Field of a column whose values contradict every sense of its header."""
_MAX_VALUES = 60
_LONGEST = 400
_FEWEST_PRICES = 2
"""Minimum number of values to contradict a price: a single value that is not a price can be an error."""
_FEWEST_GTINS = 3
_GTINS = 0.9
_PROVEN = 62
_PLAIN_CATEGORY = 60
_LISTED = 0.96
_READ = 0.9
_BY_GUESS = 0.65
_WITHOUT_VALUES = 0.89
_STAND_IN = 0.8
_PROMOTED_MOST = 0.7
_PLAIN = 80
_OWN_NAME = 95
_ALIKE = 0.8
_RIVALS = 25
_EASILY_TAKEN = frozenset(
    "price sale_price cost msrp product_key mpn title variant_title collection category_path category_path.0 category_path.1 "
    "features tags availability status axes axes.Size dimensions description quantity location finish google_category".split()
)
"""Fields that are easily confused: prices and numbers of other parties, names and texts, stock in words."""
_DATA = load("evidence")


def _one_of(text: str) -> Callable[[str], bool]:
    known = frozenset(map(plain_words, phrases(text)))
    return lambda value: plain_words(value) in known


def _names_furniture(value: str) -> bool:
    return bool(concepts_in(words_of(plain_words(value[:80]))) & {"furniture", "rug"})


_KINDS: Final[Mapping[str, Callable[[str], object]]] = {
    **{name: pattern.search for name, pattern in expressions("evidence").items()},
    **{name: _one_of(text) for name, text in _DATA["words"].items()},
    "gtins": lambda value: parse_gtin(value).value,
    "units": unit_named,
    "furnished": _names_furniture,
}


class Traits(dict[str, float]):
    """Shares, from 0 to 1, of a column's values by kind, computed on first use, and the `count` of values."""

    def __init__(self, values: Sequence[str]) -> None:
        super().__init__(count=len(values))
        self._values = values

    def __missing__(self, kind: str) -> float:
        """Compute and store the share of a kind."""
        self[kind] = sum(map(bool, map(_KINDS[kind], self._values))) / len(self._values)
        return self[kind]


@dataclass(frozen=True, slots=True)
class _Shares:
    """Bounds on the shares of kinds of values."""

    least: Mapping[str, float] = field(default_factory=dict)
    below: Mapping[str, float] = field(default_factory=dict)

    def fit(self, traits: Traits) -> bool:
        return all(traits[kind] >= share for kind, share in self.least.items()) and all(
            traits[kind] < share for kind, share in self.below.items()
        )


@dataclass(frozen=True, slots=True)
class _Adjustment(_Shares):
    """A row of `adjust`."""

    first: Sequence[str] = ()
    among: Sequence[str] = ()
    without: Sequence[str] = ()
    weaker_than: int = 1_000
    becomes: str = ""
    adds: str = ""
    score: int = 0
    scores: Mapping[str, int] = field(default_factory=dict)
    alone: bool = False

    def applies(self, options: Sequence[Sense], traits: Traits) -> bool:
        fields = {sense.field for sense in options}
        return (
            (not self.first or options[0].field in self.first)
            and options[0].score < self.weaker_than
            and all(not fields.isdisjoint(names.split("|")) for names in self.among)
            and fields.isdisjoint(self.without)
            and self.fit(traits)
        )

    def adjusted(self, options: Sequence[Sense]) -> tuple[Sense, ...]:
        """Return the senses as the row changes them, strongest first."""
        name = self.becomes or self.adds
        changed = replace(options[0], field=name, score=self.score or options[0].score)
        head, rest = ((changed,) if name else ()), (options[1:] if self.becomes else options)
        scored = [replace(sense, score=self.scores.get(sense.field, sense.score)) for sense in rest]
        senses = head if self.alone else (*head, *(sense for sense in scored if sense.score > 0))
        return tuple(sorted(senses, key=lambda sense: -sense.score))


_ADJUSTMENTS = tuple(_Adjustment(**row) for row in _DATA["adjust"])


def _read_values() -> dict[str, list[_Shares]]:
    found: dict[str, list[_Shares]] = {}
    for row in _DATA["values"]:
        for name in row["fields"]:
            found.setdefault(name, []).append(_Shares(row.get("least", {}), row.get("below", {})))
    return found


_VALUES = _read_values()


def traits_of(samples: Sequence[str]) -> Traits | None:
    """Return the traits of a column's first values, or None if all are blank."""
    cut = (sample.strip()[:_LONGEST] for sample in samples[:_MAX_VALUES])
    values = [value for value in cut if value and value.lower() not in PLACEHOLDERS]
    return Traits(values) if values else None


def _expected(name: str) -> Sequence[_Shares]:
    """Return the possible kinds of a field's values; empty if any value is possible."""
    names = (name, f"*.{name.rpartition('.')[2]}", f"{name.partition('.')[0]}.*") if "." in name else (name,)
    return next(filter(None, map(_VALUES.get, names)), ())


def contradicted(name: str, traits: Traits) -> bool:
    """Return whether a column's values contradict the field."""
    expected = _expected(name)
    return bool(expected) and not any(shares.fit(traits) for shares in expected)


def supported(name: str, traits: Traits) -> bool:
    """Return whether a column's values have the kind that the field expects; False if any value is possible."""
    return bool(_expected(name)) and not contradicted(name, traits)


def by_evidence(options: tuple[Sense, ...], traits: Traits | None) -> tuple[Sense, ...]:
    """Return the senses that a column's values allow, strongest first; without any sense, one that they prove."""
    if traits is None:
        if options and options[0].field == "category_path" and options[0].score < _PLAIN_CATEGORY:
            return ()
        titled = bool(options) and options[0].field == "title"
        return tuple(sense for sense in options if not titled or sense.field != "collection")
    for row in _ADJUSTMENTS:
        if options and row.applies(options, traits):
            options = row.adjusted(options)
    if not options:
        proven = traits["count"] >= _FEWEST_GTINS and traits["gtins"] > _GTINS
        return (Sense("gtin", _PROVEN, surmised=True),) if proven else ()
    lenient = MONEY if traits["count"] < _FEWEST_PRICES else frozenset((IGNORE,))
    remaining = tuple(
        s for s in options if s.field in lenient or s.field == IGNORE or not contradicted(s.field, traits)
    )
    return remaining or (replace(options[0], score=1, field=CONTRADICTED),)


def confidence_of(header: str, sense: Sense, options: Sequence[Sense], traits: Traits | None) -> float:
    """Return the confidence of a sense, from 0 to 1.

    A header alone never reaches 0.9, which counts as certain: its values must support the sense.
    """
    chance = _BY_GUESS if sense.surmised else _LISTED if sense.listed else _READ
    others = len({option.field for option in options if option.score > sense.score - _RIVALS}) - 1
    chance -= 0.08 * min(others, 2) + (0.05 if sense.score < _PLAIN else 0)
    like = likeness(header, sense.field)
    chance += (1 - chance) * like / 2 if like > 0 else like * 0.12
    borne_out = traits is not None and supported(sense.field, traits)
    chance += (1 - chance) / 2 if borne_out else 0
    own_name = sense.listed and sense.score >= _OWN_NAME and not others
    unlike_others = sense.field not in _EASILY_TAKEN and not sense.surmised
    if traits is None or like <= _ALIKE or not (own_name or unlike_others):
        chance = min(chance, _WITHOUT_VALUES)
    if {"alternative", "fallback"} & dict(sense.settings).keys():
        chance = min(chance, _STAND_IN)
    if sense.score == PROMOTED:
        chance = min(chance, _PROMOTED_MOST)
    return round(max(chance, 0.05), 3)
