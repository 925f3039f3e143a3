"""Quality of matching for folders with known matches, time and memory for generated items (`make bench-matching`)."""

import argparse
import csv
import gc
import resource
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from random import Random

from benchmarks.generated_furniture import generate_items, render_for_maker, render_for_vendor
from benchmarks.ingest import print_figure
from domain.matching.features import (
    MatchFeatures,
    compute_features_from_texts,
    find_fields_by_header,
    select_texts_by_field,
)
from domain.matching.tables import LEFT, RIGHT, MatchIndex, match_sides

Pair = tuple[str, str]
Probabilities = Mapping[Pair, float]


def read_items(path: Path) -> Iterator[MatchFeatures]:
    """Read the items of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        fields = find_fields_by_header(rows.fieldnames or ())
        for row in rows:
            yield compute_features_from_texts(row["id"], select_texts_by_field(row, fields))


def read_pairs(path: Path) -> dict[Pair, str]:
    """Read the pairs of a file with their kinds, which are empty if the file has none; without a file there are no pairs."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["idA"], row["idB"]): row.get("kind", "") for row in csv.DictReader(file)}


def compute_f1(correct_count: int, predicted_count: int, match_count: int) -> float:
    """Return the harmonic mean of precision and recall.

    Args:
        correct_count: Number of predicted pairs that are matches.
        predicted_count: Number of predicted pairs.
        match_count: Number of matches.
    """
    return 2 * correct_count / (predicted_count + match_count) if predicted_count + match_count else 0.0


def compute_best_threshold(probabilities: Probabilities, matches: Mapping[Pair, str]) -> tuple[float, float, float]:
    """Return the best F1 over all thresholds, its threshold, and the highest recall at a precision of at least 0.99."""
    best_f1 = threshold = recall = 0.0
    correct_count = 0
    ranked = sorted(probabilities.items(), key=lambda entry: -entry[1])
    for predicted_count, (pair, probability) in enumerate(ranked, start=1):
        correct_count += pair in matches
        if predicted_count < len(ranked) and ranked[predicted_count][1] == probability:
            continue
        if (score := compute_f1(correct_count, predicted_count, len(matches))) > best_f1:
            best_f1, threshold = score, probability
        if correct_count >= 0.99 * predicted_count:
            recall = correct_count / len(matches)
    return best_f1, threshold, recall


def compute_calibration_error(probabilities: Probabilities, matches: Mapping[Pair, str]) -> float:
    """Return the expected calibration error (ECE) of pairs with a probability of at least 0.01, in ten bins."""
    bins: dict[int, list[float]] = {}
    for pair, probability in probabilities.items():
        bin_sums = bins.setdefault(min(int(probability * 10), 9), [0.0, 0.0])
        bin_sums[0] += probability
        bin_sums[1] += pair in matches
    return sum(abs(probability_sum - match_count) for probability_sum, match_count in bins.values()) / max(
        1, len(probabilities)
    )


def print_quality(folder: Path) -> None:
    """Print the quality of matching for a folder with known matches."""
    index = MatchIndex()
    for side, name in ((LEFT, "tableA.csv"), (RIGHT, "tableB.csv")):
        for item in read_items(folder / name):
            index.add(side, item)
    probabilities = {
        (pair_score.left, pair_score.right): pair_score.odds.probability
        for pair_score in match_sides(index)
        if pair_score.odds.probability >= 0.01
    }
    matches = read_pairs(folder / "gold.csv")
    predicted = {pair for pair, probability in probabilities.items() if probability >= 0.5}
    correct_count = len(predicted & matches.keys())
    best_f1, threshold, recall = compute_best_threshold(probabilities, matches)
    name = folder.resolve().name
    print_figure(f"{name}: F1 at 0.5", f"{compute_f1(correct_count, len(predicted), len(matches)):.3f}")
    print_figure(
        f"{name}: precision and recall at 0.5",
        f"{correct_count / max(1, len(predicted)):.3f} {correct_count / len(matches):.3f}",
    )
    print_figure(f"{name}: best F1, and its threshold", f"{best_f1:.3f} {threshold:.2f}")
    print_figure(f"{name}: recall at precision 0.99", f"{recall:.3f}")
    print_figure(f"{name}: calibration error (ECE)", f"{compute_calibration_error(probabilities, matches):.3f}")
    non_matches = read_pairs(folder / "hard_negatives.csv")
    non_match_counts, predicted_counts = (
        Counter(non_matches.values()),
        Counter(non_matches[pair] for pair in predicted & non_matches.keys()),
    )
    for kind, count in sorted(non_match_counts.items()):
        print_figure(
            f"{name}: non-matches at 0.5 or more, {kind}", f"{100 * predicted_counts[kind] / count:.2f}% of {count}"
        )


def print_costs(count: int) -> None:
    """Print time and memory for matching generated items, half of them on each side."""
    random = Random(1)
    gc.disable()
    items = generate_items(random, count // 2)
    rows = ([render_for_maker(item) for item in items], [render_for_vendor(random, item) for item in items])
    started = time.process_time()
    index = MatchIndex()
    for side, texts in zip((LEFT, RIGHT), rows, strict=True):
        for number, row in enumerate(texts):
            index.add(side, compute_features_from_texts(str(number), row))
    print_figure("reading and indexing, CPU s", f"{time.process_time() - started:.1f}")
    probabilities = {
        (pair_score.left, pair_score.right): pair_score.odds.probability
        for pair_score in match_sides(index)
        if pair_score.odds.probability >= 0.5
    }
    print_figure(f"{2 * len(items)} items, reading to result, CPU s", f"{time.process_time() - started:.1f}")
    print_figure("peak memory, MiB (rows included)", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
    correct_count = sum(left_id == right_id for left_id, right_id in probabilities)
    print_figure(
        "F1 at 0.5 for generated items (only a sanity check)",
        f"{compute_f1(correct_count, len(probabilities), len(items)):.3f}",
    )


def main(argv: Sequence[str]) -> None:
    """Measure the folders and generated items that the arguments name."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "folders",
        type=Path,
        nargs="*",
        help="folders with tableA.csv, tableB.csv, gold.csv and optionally hard_negatives.csv",
    )
    options.add_argument(
        "--generated", type=int, default=0, metavar="N", help="measure time and memory for N generated items"
    )
    arguments = options.parse_args(argv)
    for folder in arguments.folders:
        print_quality(folder)
    if arguments.generated:
        print_costs(arguments.generated)


if __name__ == "__main__":
    main(sys.argv[1:])
