"""Makes the weights of `domain/ingestion/vocabulary/senses.py`: `python -m benchmarks.header_weights [FILE …]`.

Learns from the vocabulary and from labelled headers (`benchmarks/labelled-headers.csv`, and any further files named: the columns
of benchmarks/references.py). The same input gives the same weights.
"""

import argparse
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.references import rows_of
from domain.ingestion.vocabulary.fields import parse_given
from domain.ingestion.vocabulary.senses import OUTSIDE, PHRASES, class_of, features, heading

LABELLED = Path(__file__).with_name("labelled-headers.csv")
WEIGHTS = Path(__file__).parents[1] / "domain/ingestion/data/weights.json"
_NAMES = {"media.url": "media", "media.alt": "media_alt", "media.position": "media_position"}
_ROUNDS, _RATE, _SMALL = 10, 0.3, 0.004
_SCALE = 0.02
_FEWEST = 3
"""Weights below this many units change nothing."""
_SEED = 20261122

Example = tuple[tuple[str, ...], str]


def _label(wanted: str) -> str:
    """The class of a label: its first answer, without the place in a family; what lies outside is OUTSIDE."""
    first = wanted.split("|", maxsplit=1)[0].strip()
    if first == "(product_key)":
        return "product_key"
    if first.startswith("(") or first == "external_key":
        return OUTSIDE
    plain = re.sub(r"\[\d+]", ".0", re.sub(r"\s*\(.*\)", "", first))
    return class_of(_NAMES.get(plain, plain))


def _examples(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    for form, options in PHRASES.items():
        name = parse_given(max(options, key=lambda option: option[1])[0])[0]
        yield form.replace("#", "1"), class_of(name)
    for path in paths:
        for row in rows_of(path):
            if "(unknowable)" not in row["field"]:
                yield heading(row["header"]).readings[0], _label(row["field"])


def train(examples: Sequence[Example]) -> tuple[list[str], dict[str, dict[int, float]]]:
    """Classes and weights by stochastic gradient descent; features that come once are left out."""
    classes = sorted({label for _, label in examples})
    number = {label: place for place, label in enumerate(classes)}
    common = {feature for feature, count in Counter(f for fs, _ in examples for f in fs).items() if count > 1}
    data = [([f for f in fs if f in common], number[label]) for fs, label in examples]
    weights: dict[str, dict[int, float]] = defaultdict(dict)
    chance = random.Random(_SEED)
    for turn in range(_ROUNDS):
        chance.shuffle(data)
        for found, label in data:
            _learn(weights, found, label, len(classes), _RATE / (1 + turn / 2))
    return classes, weights


def _learn(weights: dict[str, dict[int, float]], found: list[str], label: int, count: int, rate: float) -> None:
    scores = [0.0] * count
    for feature in found:
        for place, weight in weights[feature].items():
            scores[place] += weight
    most = max(scores)
    chances = [math.exp(score - most) for score in scores]
    total = sum(chances)
    for place, chance in enumerate(chances):
        error = (place == label) - chance / total
        if abs(error) < _SMALL:
            continue
        step = rate * error / math.sqrt(len(found) or 1)
        for feature in found:
            weights[feature][place] = weights[feature].get(place, 0.0) + step


def main() -> None:
    """Train and write the weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="*")
    options = parser.parse_args()
    examples = [(features(text), label) for text, label in _examples([LABELLED, *options.files])]
    classes, weights = train(examples)
    kept = {
        feature: {
            str(place): units
            for place, weight in sorted(found.items())
            if abs(units := round(weight / _SCALE)) >= _FEWEST
        }
        for feature, found in sorted(weights.items())
    }
    kept = {feature: found for feature, found in kept.items() if found}
    text = json.dumps({"scale": _SCALE, "classes": classes, "weights": kept}, ensure_ascii=False, separators=(",", ":"))
    WEIGHTS.write_text(text + "\n", encoding="utf-8")
    print(f"{len(examples)} examples, {len(classes)} classes, {len(kept)} features, {len(text)} bytes")


if __name__ == "__main__":
    main()
