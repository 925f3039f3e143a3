"""What headers that no rule reads are most like: a linear model over letters and concepts.

Multinomial logistic regression over the 3- to 5-grams of a heading's words, whole words and their concepts. The weights
(`weights.json`) are made by `python -m benchmarks.header_weights` from the vocabulary and headers that were labelled by hand.
"""

import json
import math
from collections.abc import Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Final

from domain.ingestion.vocabulary.grammar import words_in

OUTSIDE: Final = "outside"
"""The class of headers for which the catalogue has no field."""
_GRAMS: Final = (3, 4, 5)
_LONGEST: Final = 80


def features(text: str) -> tuple[str, ...]:
    """The features of a heading in plain form, each once."""
    return tuple(dict.fromkeys(_features(text[:_LONGEST])))


def _features(text: str) -> Iterator[str]:
    yield "*"
    words = text.split()
    for word in words:
        edged = f"^{word}$"
        for size in _GRAMS:
            for at in range(len(edged) - size + 1):
                yield edged[at : at + size]
        yield f"w={word}"
    for read in words_in(text):
        for concept in sorted(read.concepts):
            yield f"c={concept}"
        if not read.concepts:
            yield "c="
    if words:
        yield f"last={words[-1]}"


@cache
def _weights() -> tuple[tuple[str, ...], Mapping[str, Mapping[str, int]], float]:
    """The classes, each feature's weights by the class's number, and what a weight of 1 is worth."""
    data = json.loads(resources.files(__package__).joinpath("weights.json").read_text(encoding="utf-8"))
    return tuple(data["classes"]), data["weights"], data["scale"]


@lru_cache(maxsize=8192)
def likeliest(text: str) -> tuple[str, float]:
    """The class (a field, or OUTSIDE) that a heading in plain form is most like, and its probability."""
    classes, weights, scale = _weights()
    scores = [0.0] * len(classes)
    for feature in features(text):
        for number, weight in weights.get(feature, {}).items():
            scores[int(number)] += weight
    best = max(range(len(classes)), key=scores.__getitem__)
    total = sum(math.exp((score - scores[best]) * scale) for score in scores)
    return classes[best], 1 / total
