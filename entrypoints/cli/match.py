"""`joinery match`: matching of two CSV files without a server."""

import csv
import gc
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, TextIO

from cyclopts import Parameter

from domain.matching.features import (
    MatchFeatures,
    compute_features_from_texts,
    find_fields_by_header,
    list_ignored_headers,
    select_texts_by_field,
)
from domain.matching.scoring import ScoredCandidate, build_evidence
from domain.matching.tables import LEFT, RIGHT, MatchIndex, match_sides
from entrypoints.errors import CommandError

_DELIMITERS = ",;\t"
_MAX_FIELD_SIZE = 1 << 24


def match(
    *,
    left: Path,
    right: Path,
    out: Path,
    explain: Path | None = None,
    least: Annotated[float, Parameter(alias="--min-probability")] = 0.01,
) -> int:
    """Match the items of two CSV files, without a server.

    Both files need the column `id`, and at least one of title (or name), mpn, model, sku and gtin (ean, upc). Further
    columns that are used: brand, price, currency, description, collection, category, colour, finish, width, depth,
    height, dim_unit, weight, weight_unit, pack, pieces. docs/matching.md describes the output.

    Args:
        left: CSV file with one vendor's items.
        right: CSV file with the other vendor's items.
        out: Output file with the columns idA, idB and probability.
        explain: Output file for the evidence of each pair, one JSON object per line.
        least: Minimum probability of a pair in the output.
    """
    index = MatchIndex()
    gc.disable()  # the code creates no reference cycles, and collecting takes a fifth of the time
    try:
        for side, path in ((LEFT, left), (RIGHT, right)):
            for item in _read_items(path):
                index.add(side, item)
        pairs = (pair for pair in match_sides(index) if pair.odds.probability >= least)
        written = _write_pairs(pairs, index, out, explain)
    finally:
        gc.enable()
    item_counts = f"{len(index.items[LEFT])} items in {left} and {len(index.items[RIGHT])} items in {right}"
    print(f"Wrote {written} pairs to {out}, from {item_counts}.", file=sys.stderr)
    return 0


def _read_items(path: Path) -> Iterator[MatchFeatures]:
    """Yield the items of a CSV file.

    Raises CommandError if the file is unreadable or lacks a column, or if an ID is empty or occurs twice.
    """
    ids: set[str] = set()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows, key, field_by_header = _open_table(path, file)
            for number, row in enumerate(rows, start=2):
                id = (row.get(key) or "").strip()
                if not id:
                    raise CommandError(f"{path}: row {number} has no ID.")
                if id in ids:
                    raise CommandError(f"{path}: the ID {id} in row {number} is a duplicate. IDs must be unique.")
                ids.add(id)
                yield compute_features_from_texts(id, select_texts_by_field(row, field_by_header))
    except OSError as error:
        raise CommandError(f"{path} could not be read: {error.strerror}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise CommandError(f"{path} is not a CSV file in UTF-8: {error}.") from error


def _open_table(path: Path, file: TextIO) -> tuple[Iterable[dict[str, str]], str, dict[str, str]]:
    """Read the header line of an open CSV file, and print a message about ignored columns.

    Args:
        path: The file's path, for messages.
        file: The open file.

    Returns:
        The rows, the header of the ID column, and the field of each header.

    Raises:
        CommandError: The file lacks a column.
    """
    csv.field_size_limit(_MAX_FIELD_SIZE)
    start = file.readline()
    file.seek(0)
    rows = csv.DictReader(file, delimiter=max(_DELIMITERS, key=start.count))
    headers = [header for header in rows.fieldnames or () if header]
    key = next((header for header in headers if header.strip().lower() == "id"), None)
    if key is None:
        raise CommandError(f"{path} has no column `id`. Its columns are: {', '.join(headers) or 'none'}.")
    field_by_header = find_fields_by_header(headers)
    if not {"title", "mpn", "gtin", "model", "sku"} & set(field_by_header.values()):
        raise CommandError(f"{path} has neither a title (or name) nor a code (mpn, model, sku, gtin) for matching.")
    if unused := list_ignored_headers(headers, field_by_header):
        print(f"{path}: ignored columns: {', '.join(unused)}", file=sys.stderr)
    return rows, key, field_by_header


def _write_pairs(pairs: Iterable[ScoredCandidate], index: MatchIndex, out: Path, explain: Path | None) -> int:
    """Write the pairs to `out`, and their evidence to `explain` if it is a path; return the number of pairs."""
    count = 0
    try:
        with ExitStack() as open_files:
            table = csv.writer(
                open_files.enter_context(out.open("w", encoding="utf-8", newline="")), lineterminator="\n"
            )
            explanations = open_files.enter_context(explain.open("w", encoding="utf-8")) if explain else None
            table.writerow(("idA", "idB", "probability"))
            for pair in pairs:
                count += 1
                table.writerow((pair.left, pair.right, f"{pair.odds.probability:.9f}"))
                if explanations:
                    explanations.write(json.dumps(_explain_pair(pair, index), ensure_ascii=False) + "\n")
    except OSError as error:
        raise CommandError(f"{error.filename} could not be written: {error.strerror}.") from error
    return count


def _explain_pair(pair: ScoredCandidate, index: MatchIndex) -> dict[str, object]:
    """Return a pair and its evidence as JSON.

    `prior` is the prior log2 odds. The prior and the weights of the evidence add up to the log2 odds of `probability`.
    """
    left_item, right_item = index.items[LEFT][pair.left], index.items[RIGHT][pair.right]
    evidence = build_evidence(pair, left_item, right_item, index.weights)
    return {
        "idA": pair.left,
        "idB": pair.right,
        "probability": pair.odds.probability,
        "conflicts": pair.conflicts,
        "prior": index.weights.prior,
        "evidence": [
            {
                "comparison": comparison.comparison,
                "level": comparison.name,
                "weight": comparison.weight,
                "left": comparison.left,
                "right": comparison.right,
            }
            for comparison in evidence
        ],
    }
