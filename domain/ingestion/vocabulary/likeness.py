"""What headers that no rule reads are most like: a linear model over letters and concepts.

Multinomial logistic regression over the 3- to 5-grams of a heading's words, whole words and their concepts. The weights
(`data/weights.json`) are made by `python -m benchmarks.header_weights` from the vocabulary and headers that were labelled by hand.
"""

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Final

from domain.ingestion.data import read
from domain.ingestion.vocabulary.concepts import words_in
from domain.ingestion.vocabulary.fields import IGNORE, KEYS, MONEY
from domain.ingestion.vocabulary.headings import heading
from domain.ingestion.vocabulary.senses import Sense, settings_of

OUTSIDE: Final = "outside"
"""The class of headers for which the catalogue has no field."""
_GRAMS: Final = (3, 4, 5)
_LONGEST: Final = 80
_LIKE_ENOUGH: Final = 0.75
_UNLIKE: Final = 0.5
_SCORE: Final = 52
_BORNE_OUT: Final = 10
_PLACE: Final = re.compile(r"\.\d+")
_CLASSES: Final = {"media.hero": "media", "category_path.0": "category_path", IGNORE: OUTSIDE}
_NEVER: Final = MONEY | {*KEYS, OUTSIDE, "axes", "components", "cartons"}
"""What is not surmised: what keys and prices an item must be said."""


def features(text: str) -> tuple[str, ...]:
    """Return the features of a heading in plain form, each once."""
    return tuple(dict.fromkeys(_features(text[:_LONGEST])))


def _features(text: str) -> Iterator[str]:
    yield "*"
    words = text.split()
    for word in words:
        edged = f"^{word}$"
        yield from (edged[at : at + size] for size in _GRAMS for at in range(len(edged) - size + 1))
        yield f"w={word}"
    for one in words_in(text):
        yield from (f"c={concept}" for concept in sorted(one.concepts) or ("",))
    if words:
        yield f"last={words[-1]}"


@cache
def _weights() -> tuple[tuple[str, ...], Mapping[str, Mapping[str, int]], float]:
    """Return the classes, each feature's weights by the class's number, and what a weight of 1 is worth."""
    data = json.loads(read("weights.json"))
    return tuple(data["classes"]), data["weights"], data["scale"]


@lru_cache(maxsize=8192)
def likeliest(header: str) -> tuple[str, float]:
    """Return the class (a field, or OUTSIDE) that a header is most like, and its probability."""
    classes, weights, scale = _weights()
    scores = [0.0] * len(classes)
    for feature in features(heading(header).readings[0]):
        for number, weight in weights.get(feature, {}).items():
            scores[int(number)] += weight
    best = max(range(len(classes)), key=scores.__getitem__)
    total = sum(math.exp((score - scores[best]) * scale) for score in scores)
    return classes[best], 1 / total


def class_of(field: str) -> str:
    """Return the class of headers that a field is learned as: one for all places of a numbered family."""
    name = _PLACE.sub(".0", field)
    return _CLASSES.get(name, name)


def likeness(header: str, field: str) -> float:
    """Return how far a header is like those of a field: from -1 (surely another's) to 1 (surely its)."""
    label, chance = likeliest(header)
    return chance if label == class_of(field) else -chance


def by_likeness(header: str, options: tuple[Sense, ...]) -> tuple[Sense, ...]:
    """Return the senses of a header; where words were left over, only what the header as a whole is like."""
    if options and not options[0].surmised:
        return options
    label, chance = likeliest(header)
    if not options:
        known = label not in _NEVER and chance >= _LIKE_ENOUGH
        surmised = Sense(label, _SCORE + round(10 * chance), settings_of(label, header), surmised=True)
        return (surmised,) if known else ()
    if label == class_of(options[0].field):
        return tuple(replace(sense, score=sense.score + _BORNE_OUT) for sense in options)
    return () if chance >= _UNLIKE else options
