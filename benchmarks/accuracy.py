"""How often headers and measures of a folder are read right: `python -m benchmarks.accuracy FOLDER`.

The folder holds `measures.csv` and `headers*.csv` (benchmarks/references.py). One line a figure; `--rows` lists what went wrong.
"""

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from benchmarks.references import Header, judged_headers, judged_measure, rows_of, skipped
from domain.ingestion.model import FeedSettings

_CONFIDENT = 0.9


def main() -> None:
    """Read the folder and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path())
    parser.add_argument("--rows", action="store_true", help="list every header and measure that was not read right")
    parser.add_argument("--currency", help="of the headers' sources")
    options = parser.parse_args()
    for path in sorted(options.folder.rglob("headers*.csv")):
        headers = list(judged_headers(rows_of(path), FeedSettings(currency=options.currency)))
        _print_headers(path.name, headers, rows=options.rows)
    for path in sorted(options.folder.rglob("measures*.csv")):
        _print_measures(path.name, rows_of(path), listed=options.rows)


def _percent(part: int, whole: int) -> str:
    return f"{part / whole:.1%} ({part} of {whole})" if whole else "none"


def _counts(name: str, headers: Iterable[Header]) -> None:
    verdicts = Counter(header.verdict for header in headers)
    inside = verdicts["right"] + verdicts["missed"] + verdicts["wrong"]
    print(
        f"{name}: right {_percent(verdicts['right'], inside)}, wrong field {_percent(verdicts['wrong'], inside)}, "
        f"missed {_percent(verdicts['missed'], inside)}; without a field left alone "
        f"{_percent(verdicts['left'], verdicts['left'] + verdicts['taken'])}"
    )


def _print_headers(name: str, headers: list[Header], *, rows: bool) -> None:
    _counts(f"{name} all", headers)
    mapped = [header for header in headers if header.column]
    for tier in sorted({header.column.tier for header in mapped if header.column}):
        _counts(f"{name} tier {tier}", [header for header in mapped if header.column and header.column.tier == tier])
    sure = [header for header in mapped if header.column and header.column.confidence >= _CONFIDENT]
    bad = sum(header.verdict in ("wrong", "taken") for header in sure)
    print(f"{name} confident (>= {_CONFIDENT}): wrong {_percent(bad, len(sure))}")
    for low in (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98):
        bucket = [h for h in mapped if h.column and low <= h.column.confidence < _next(low)]
        good = sum(header.verdict in ("right", "left") for header in bucket)
        if bucket:
            print(f"{name} confidence {low} to {_next(low)}: right {_percent(good, len(bucket))}")
    for source in dict.fromkeys(header.row["source"] for header in headers):
        _counts(f"{name} vendor {source[:60]}", [header for header in headers if header.row["source"] == source])
    for family in sorted({_family(header) for header in headers}):
        _counts(f"{name} family {family}", [header for header in headers if _family(header) == family])
    if rows:
        for header in headers:
            if header.verdict not in ("right", "left"):
                field = f"{header.column.field} {header.column.confidence:.2f}" if header.column else "-"
                row = header.row
                print(
                    f"  {header.verdict:7}{row['header']!r:45}{row['field']:34}{field:34}{row['sample_values'][:40]!r}"
                )


def _next(low: float) -> float:
    steps = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 1.01)
    return steps[steps.index(low) + 1]


def _family(header: Header) -> str:
    return header.row["field"].split("|")[0].split(".")[0].split("[")[0].strip()


def _print_measures(name: str, rows: list[dict[str, str]], *, listed: bool) -> None:
    read = [(row, judged_measure(row)) for row in rows if skipped(row) is None]
    groups = {"all": read}
    for row, verdict in read:
        groups.setdefault(f"family {row['field']}", []).append((row, verdict))
    for row, verdict in read:
        groups.setdefault(f"vendor {row['source'][:60]}", []).append((row, verdict))
    for group, members in groups.items():
        counts = Counter(verdict for _, verdict in members)
        print(
            f"{name} {group}: exact {_percent(counts['exact'], len(members))}, within one hundredth "
            f"{_percent(counts['exact'] + counts['within'], len(members))}, wrong and told "
            f"{_percent(counts['told'], len(members))}, wrong and silent {_percent(counts['silent'], len(members))}"
        )
    if listed:
        for row, verdict in read:
            if verdict in ("told", "silent"):
                print(
                    f"  {verdict:7}{row['field']:12}{row['raw'][:60]!r:64}{row['unit_hint'][:24]:26}{row['expected_json'][:90]}"
                )


if __name__ == "__main__":
    main()
