"""Training of the weights of `domain/ingestion/vocabulary/header_meanings.py`: `python -m benchmarks.header_weights [FILE …]`.

The examples are the vocabulary, the labelled headers of `benchmarks/labelled-headers.csv`, and further files in that
format (benchmarks/labelled_data.py). The same input gives the same weights.
"""

import argparse
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.labelled_data import read_csv_rows
from domain.ingestion.vocabulary.fields import parse_declared_field
from domain.ingestion.vocabulary.header_meanings import (
    OUTSIDE_CATALOGUE,
    PHRASES,
    extract_header_features,
    find_field_class,
    normalise_header,
)

LABELLED_HEADERS = Path(__file__).with_name("labelled-headers.csv")
WEIGHTS = Path(__file__).parents[1] / "domain/ingestion/data/weights.json"
_FIELD_NAMES = {"media.url": "media", "media.alt": "media_alt", "media.position": "media_position"}
_EPOCHS, _LEARNING_RATE, _MIN_ERROR = 10, 0.3, 0.004
_SCALE = 0.02
_MIN_UNITS = 3
"""Weights with fewer units of `_SCALE` are not stored."""
_SEED = 20261122

Example = tuple[tuple[str, ...], str]


def _find_class(label: str) -> str:
    """Return the class of a label's first accepted field, without its index.

    Labels in round brackets have the class OUTSIDE_CATALOGUE, except the product key.
    """
    field = label.split("|", maxsplit=1)[0].strip()
    if field == "(product_key)":
        return "product_key"
    if field.startswith("(") or field == "external_key":
        return OUTSIDE_CATALOGUE
    without_index = re.sub(r"\[\d+]", ".0", re.sub(r"\s*\(.*\)", "", field))
    return find_field_class(_FIELD_NAMES.get(without_index, without_index))


def _read_examples(paths: Sequence[Path]) -> Iterator[tuple[str, str]]:
    for phrase, options in PHRASES.items():
        name = parse_declared_field(max(options, key=lambda option: option[1])[0])[0]
        yield phrase.replace("#", "1"), find_field_class(name)
    for path in paths:
        for row in read_csv_rows(path):
            if "(unknowable)" not in row["field"]:
                yield normalise_header(row["header"]).plain_texts[0], _find_class(row["field"])


def train(examples: Sequence[Example]) -> tuple[list[str], dict[str, dict[int, float]]]:
    """Compute classes and weights by stochastic gradient descent; features that occur only once are ignored."""
    classes = sorted({label for _, label in examples})
    index_by_class = {label: index for index, label in enumerate(classes)}
    frequent_features = {
        feature
        for feature, count in Counter(feature for features, _ in examples for feature in features).items()
        if count > 1
    }
    data = [
        ([feature for feature in features if feature in frequent_features], index_by_class[label])
        for features, label in examples
    ]
    weights: dict[str, dict[int, float]] = defaultdict(dict)
    random_source = random.Random(_SEED)
    for epoch in range(_EPOCHS):
        random_source.shuffle(data)
        for active_features, label in data:
            _update_weights(weights, active_features, label, len(classes), _LEARNING_RATE / (1 + epoch / 2))
    return classes, weights


def _update_weights(
    weights: dict[str, dict[int, float]], features: list[str], label: int, class_count: int, rate: float
) -> None:
    scores = [0.0] * class_count
    for feature in features:
        for index, weight in weights[feature].items():
            scores[index] += weight
    highest_score = max(scores)
    exponentials = [math.exp(score - highest_score) for score in scores]
    total = sum(exponentials)
    for index, exponential in enumerate(exponentials):
        error = (index == label) - exponential / total
        if abs(error) < _MIN_ERROR:
            continue
        step = rate * error / math.sqrt(len(features) or 1)
        for feature in features:
            weights[feature][index] = weights[feature].get(index, 0.0) + step


def main() -> None:
    """Train the weights and write them to the data file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", type=Path, nargs="*")
    options = parser.parse_args()
    examples = [
        (extract_header_features(text), label) for text, label in _read_examples([LABELLED_HEADERS, *options.files])
    ]
    classes, weights = train(examples)
    stored_weights = {
        feature: {
            str(index): units
            for index, weight in sorted(weights_by_class.items())
            if abs(units := round(weight / _SCALE)) >= _MIN_UNITS
        }
        for feature, weights_by_class in sorted(weights.items())
    }
    stored_weights = {
        feature: weights_by_class for feature, weights_by_class in stored_weights.items() if weights_by_class
    }
    text = json.dumps(
        {"scale": _SCALE, "classes": classes, "weights": stored_weights}, ensure_ascii=False, separators=(",", ":")
    )
    WEIGHTS.write_text(text + "\n", encoding="utf-8")
    print(f"{len(examples)} examples, {len(classes)} classes, {len(stored_weights)} features, {len(text)} bytes")


if __name__ == "__main__":
    main()
