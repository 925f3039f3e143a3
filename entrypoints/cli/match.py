"""`joinery match`: matching of two CSV files without a server."""

import csv
import gc
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

from domain.matching.features import MatchFeatures, fields_by_header, ignored_headers, read_features, texts_by_field
from domain.matching.scoring import Scored, evidence
from domain.matching.tables import LEFT, RIGHT, MatchIndex, matched
from entrypoints.errors import CommandError

_DELIMITERS = ",;\t"
_MAX_FIELD_SIZE = 1 << 24


def match(*, left: Path, right: Path, out: Path, explain: Path | None = None, least: float = 0.01) -> int:
    """Match the items of two CSV files, without a server.

    Requires no known pairs. Both files need a column id, and title (or name) or a code. Further columns that are used: brand,
    mpn, model, sku, gtin (ean, upc), price, currency, description, collection, colour, finish, width, depth, height,
    dim_unit, weight, weight_unit, pack, pieces. docs/matching.md describes the output.

    Args:
        left: one vendor's items
        right: the other vendor's items
        out: output file with idA,idB,probability
        explain: output file for the evidence, one JSON object per pair
        least: minimum probability of a pair
    """
    index = MatchIndex()
    gc.disable()  # there are no reference cycles, and the collector takes a fifth of the time
    try:
        for side, path in ((LEFT, left), (RIGHT, right)):
            for item in _read_items(path):
                index.add(side, item)
        pairs = (pair for pair in matched(index) if pair.odds.probability >= least)
        written = _write(pairs, index, out, explain)
    finally:
        gc.enable()
    print(f"{written} pairs of {len(index.items[LEFT])} and {len(index.items[RIGHT])} items", file=sys.stderr)
    return 0


def _read_items(path: Path) -> Iterator[MatchFeatures]:
    """Yield the items of a file. Raises CommandError for an unreadable file, missing columns, and blank or duplicate IDs."""
    seen: set[str] = set()
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows, key, field_by_header = _open_table(path, file)
            for number, row in enumerate(rows, start=2):
                id = (row.get(key) or "").strip()
                if not id:
                    raise CommandError(f"{path}: row {number} has no ID.")
                if id in seen:
                    raise CommandError(f"{path}: the ID {id} in row {number} is a duplicate. IDs must be unique.")
                seen.add(id)
                yield read_features(id, texts_by_field(row, field_by_header))
    except OSError as error:
        raise CommandError(f"{path} could not be read: {error.strerror}.") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise CommandError(f"{path} is not a CSV file in UTF-8: {error}.") from error


def _open_table(path: Path, file: TextIO) -> tuple[Iterable[dict[str, str]], str, dict[str, str]]:
    csv.field_size_limit(_MAX_FIELD_SIZE)
    start = file.readline()
    file.seek(0)
    rows = csv.DictReader(file, delimiter=max(_DELIMITERS, key=start.count))
    headers = [header for header in rows.fieldnames or () if header]
    key = next((header for header in headers if header.strip().lower() == "id"), None)
    if key is None:
        raise CommandError(f"{path} has no column id. Its columns are: {', '.join(headers) or 'none'}.")
    field_by_header = fields_by_header(headers)
    if not {"title", "mpn", "gtin", "model", "sku"} & set(field_by_header.values()):
        raise CommandError(f"{path} has neither a title (or name) nor a code (mpn, model, sku, gtin) for matching.")
    if unused := ignored_headers(headers, field_by_header):
        print(f"{path}: not used: {', '.join(unused)}", file=sys.stderr)
    return rows, key, field_by_header


def _write(pairs: Iterable[Scored], index: MatchIndex, out: Path, explain: Path | None) -> int:
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


def _explain_pair(pair: Scored, index: MatchIndex) -> dict[str, object]:
    """Return a pair with its evidence; its odds are 2 to the power of the prior plus all weights."""
    a, b = index.items[LEFT][pair.left], index.items[RIGHT][pair.right]
    parts = evidence(pair, a, b, index.weights)
    return {
        "idA": pair.left,
        "idB": pair.right,
        "probability": pair.odds.probability,
        "conflicts": pair.conflicts,
        "prior": index.weights.prior,
        "evidence": [
            {"comparison": p.comparison, "level": p.name, "weight": p.weight, "left": p.left, "right": p.right}
            for p in parts
        ],
    }
