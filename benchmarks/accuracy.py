"""Measurement of how accurately headers, measures and files are read: `python -m benchmarks.accuracy FOLDER`.

The folder contains `measures*.csv` and `headers*.csv` (benchmarks/labelled_data.py), and files with an `*.expected.json`
(benchmarks/expected_readings.py). With `--rows`, each error is listed as well.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks.expected_readings import evaluate_folder, format_table
from benchmarks.labelled_data import (
    EvaluatedHeader,
    evaluate_headers,
    evaluate_measure,
    find_skip_reason,
    read_csv_rows,
)
from domain.ingestion.model import FeedSettings

_HIGH_CONFIDENCE = 0.9


def main() -> None:
    """Evaluate all files of the folder and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    parser.add_argument("--rows", action="store_true", help="list every header and measure that was read incorrectly")
    parser.add_argument("--currency", help="default currency of the sources of the headers")
    options = parser.parse_args()
    for path in sorted(options.folder.rglob("headers*.csv")):
        headers = list(evaluate_headers(read_csv_rows(path), FeedSettings(currency=options.currency)))
        _print_headers(path.name, headers, rows=options.rows)
    for path in sorted(options.folder.rglob("measures*.csv")):
        _print_measures(path.name, read_csv_rows(path), listed=options.rows)
    all_values = []
    for name, values in evaluate_folder(options.folder):
        all_values += values
        print(name, *format_table(values), sep="\n")
        for value in values if options.rows else ():
            if value.verdict != "right":
                print(f"  {value.verdict:<10}{value.place:<60}expected {value.expected!r}, read {value.actual!r}")
    if all_values:
        print("All files", *format_table(all_values), sep="\n")


def _format_percentage(count: int, total: int) -> str:
    return f"{count / total:.1%} ({count} of {total})" if total else "none"


def _print_verdicts(name: str, headers: Iterable[EvaluatedHeader]) -> None:
    verdicts = Counter(header.verdict for header in headers)
    mappable_count = verdicts["right"] + verdicts["missed"] + verdicts["wrong"]
    print(
        f"{name}: correct {_format_percentage(verdicts['right'], mappable_count)}, wrong field {_format_percentage(verdicts['wrong'], mappable_count)}, "
        f"missed {_format_percentage(verdicts['missed'], mappable_count)}; headers without a field ignored "
        f"{_format_percentage(verdicts['ignored'], verdicts['ignored'] + verdicts['spurious'])}"
    )


def _print_headers(name: str, headers: list[EvaluatedHeader], *, rows: bool) -> None:
    _print_verdicts(f"{name} all", headers)
    mapped = [header for header in headers if header.column]
    for tier in sorted({header.column.tier for header in mapped if header.column}):
        _print_verdicts(
            f"{name} tier {tier}", [header for header in mapped if header.column and header.column.tier == tier]
        )
    confident = [header for header in mapped if header.column and header.column.confidence >= _HIGH_CONFIDENCE]
    error_count = sum(header.verdict in ("wrong", "spurious") for header in confident)
    print(
        f"{name} with confidence of at least {_HIGH_CONFIDENCE}: wrong {_format_percentage(error_count, len(confident))}"
    )
    for low in (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98):
        group = [h for h in mapped if h.column and low <= h.column.confidence < _upper_bound(low)]
        correct_count = sum(header.verdict in ("right", "ignored") for header in group)
        if group:
            print(
                f"{name} confidence {low} to {_upper_bound(low)}: correct {_format_percentage(correct_count, len(group))}"
            )
    for source in dict.fromkeys(header.row["source"] for header in headers):
        _print_verdicts(
            f"{name} vendor {source[:60]}", [header for header in headers if header.row["source"] == source]
        )
    for root_field in sorted({_root_field(header) for header in headers}):
        _print_verdicts(
            f"{name} field {root_field}", [header for header in headers if _root_field(header) == root_field]
        )
    if rows:
        for header in headers:
            if header.verdict not in ("right", "ignored"):
                field = f"{header.column.field} {header.column.confidence:.2f}" if header.column else "-"
                row = header.row
                print(
                    f"  {header.verdict:10}{row['header']!r:45}{row['field']:34}{field:34}{row['sample_values'][:40]!r}"
                )


def _upper_bound(low: float) -> float:
    steps = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.01)
    return steps[steps.index(low) + 1]


def _root_field(header: EvaluatedHeader) -> str:
    return header.row["field"].split("|")[0].split(".")[0].split("[")[0].strip()


def _print_measures(name: str, rows: list[dict[str, str]], *, listed: bool) -> None:
    evaluated = [(row, evaluate_measure(row)) for row in rows if find_skip_reason(row) is None]
    groups = {"all": evaluated}
    for row, verdict in evaluated:
        groups.setdefault(f"kind {row['field']}", []).append((row, verdict))
    for row, verdict in evaluated:
        groups.setdefault(f"vendor {row['source'][:60]}", []).append((row, verdict))
    for group, members in groups.items():
        counts = Counter(verdict for _, verdict in members)
        print(
            f"{name} {group}: exact {_format_percentage(counts['exact'], len(members))}, within one hundredth "
            f"{_format_percentage(counts['exact'] + counts['within'], len(members))}, wrong with a problem "
            f"{_format_percentage(counts['reported'], len(members))}, wrong without a problem {_format_percentage(counts['unreported'], len(members))}"
        )
    if listed:
        for row, verdict in evaluated:
            if verdict in ("reported", "unreported"):
                print(
                    f"  {verdict:12}{row['field']:12}{row['raw'][:60]!r:64}{row['unit_hint'][:24]:26}{row['expected_json'][:90]}"
                )


if __name__ == "__main__":
    main()
