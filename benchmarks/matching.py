"""How well and how fast items are matched: quality over folders with known pairs, time and memory over invented ones (`make bench-matching`)."""

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

from benchmarks.habits import metric, retold, things
from benchmarks.ingest import line
from domain.matching.features import MatchFeatures, fields_by_header, read_features, texts_by_field
from domain.matching.tables import LEFT, RIGHT, MatchIndex, matched

Pair = tuple[str, str]
Probabilities = Mapping[Pair, float]


def items(path: Path) -> Iterator[MatchFeatures]:
    """The items of a CSV file."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        known = fields_by_header(rows.fieldnames or ())
        for row in rows:
            yield read_features(row["id"], texts_by_field(row, known))


def pairs(path: Path) -> dict[Pair, str]:
    """The pairs of a file with their kind, if it tells one."""
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        return {(row["idA"], row["idB"]): row.get("kind", "") for row in csv.DictReader(file)}


def f1(right: int, told: int, true: int) -> float:
    """The harmonic mean of precision and recall."""
    return 2 * right / (told + true) if told + true else 0.0


def curve(found: Probabilities, true: Mapping[Pair, str]) -> tuple[float, float, float]:
    """The best F1 over all thresholds, the threshold, and the most recall at a precision of 0.99."""
    best = threshold = recall = 0.0
    right = 0
    ranked = sorted(found.items(), key=lambda entry: -entry[1])
    for told, (pair, probability) in enumerate(ranked, start=1):
        right += pair in true
        if told < len(ranked) and ranked[told][1] == probability:
            continue
        if (score := f1(right, told, len(true))) > best:
            best, threshold = score, probability
        if right >= 0.99 * told:
            recall = right / len(true)
    return best, threshold, recall


def calibration_error(found: Probabilities, true: Mapping[Pair, str]) -> float:
    """ECE: how far ten bins' probabilities are from their shares of matches, over pairs of 0.01 and more."""
    bins: dict[int, list[float]] = {}
    for pair, probability in found.items():
        one = bins.setdefault(min(int(probability * 10), 9), [0.0, 0.0])
        one[0] += probability
        one[1] += pair in true
    return sum(abs(said - was) for said, was in bins.values()) / max(1, len(found))


def quality(folder: Path) -> None:
    """The figures of one folder."""
    index = MatchIndex()
    for side, name in ((LEFT, "tableA.csv"), (RIGHT, "tableB.csv")):
        for item in items(folder / name):
            index.add(side, item)
    found = {(p.left, p.right): p.odds.probability for p in matched(index) if p.odds.probability >= 0.01}
    true = pairs(folder / "gold.csv")
    told = {pair for pair, probability in found.items() if probability >= 0.5}
    right = len(told & true.keys())
    best, threshold, recall = curve(found, true)
    name = folder.resolve().name
    line(f"{name}: F1 at 0.5", f"{f1(right, len(told), len(true)):.3f}")
    line(f"{name}: precision, recall at 0.5", f"{right / max(1, len(told)):.3f} {right / len(true):.3f}")
    line(f"{name}: best F1, at", f"{best:.3f} {threshold:.2f}")
    line(f"{name}: recall at precision 0.99", f"{recall:.3f}")
    line(f"{name}: calibration error (ECE)", f"{calibration_error(found, true):.3f}")
    apart = pairs(folder / "hard_negatives.csv")
    each, over = Counter(apart.values()), Counter(apart[pair] for pair in told & apart.keys())
    for kind, count in sorted(each.items()):
        line(f"{name}: siblings at 0.5 or over, {kind}", f"{100 * over[kind] / count:.2f}% of {count}")


def cost(count: int) -> None:
    """Time and memory for so many invented items, half on each side."""
    random = Random(1)
    gc.disable()
    made = things(random, count // 2)
    rows = ([metric(thing) for thing in made], [retold(random, thing) for thing in made])
    started = time.process_time()
    index = MatchIndex()
    for side, told in zip((LEFT, RIGHT), rows, strict=True):
        for at, row in enumerate(told):
            index.add(side, read_features(str(at), row))
    line("reading and indexing, CPU-s", f"{time.process_time() - started:.1f}")
    found = {(p.left, p.right): p.odds.probability for p in matched(index) if p.odds.probability >= 0.5}
    line(f"{2 * len(made)} items cold, CPU-s", f"{time.process_time() - started:.1f}")
    line("peak memory, MB (rows included)", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}")
    right = sum(a == b for a, b in found)
    line("F1 at 0.5 on invented items (not a yardstick)", f"{f1(right, len(found), len(made)):.3f}")


def main(argv: Sequence[str]) -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "folders", type=Path, nargs="*", help="with tableA.csv, tableB.csv, gold.csv, perhaps hard_negatives.csv"
    )
    options.add_argument("--generated", type=int, default=0, metavar="N", help="measure time over N invented items")
    given = options.parse_args(argv)
    for folder in given.folders:
        quality(folder)
    if given.generated:
        cost(given.generated)


if __name__ == "__main__":
    main(sys.argv[1:])
