"""Manually labelled measures and headers of a reference folder, if it exists; `benchmarks.labelled_data` evaluates them."""

import os
from pathlib import Path

import pytest

from benchmarks.labelled_data import (
    evaluate_headers,
    evaluate_measure,
    find_skip_reason,
    group_by_source,
    parse_measure,
    read_csv_rows,
)
from domain.ingestion.model import FeedSettings

FOLDER = os.environ.get("JOINERY_REFERENCE_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="JOINERY_REFERENCE_DATA names no folder with reference parses")


def _read_rows(name: str) -> list[dict[str, str]]:
    return read_csv_rows(Path(FOLDER) / "parsing" / name) if FOLDER else []


@pytest.mark.parametrize("row", _read_rows("measures.csv"), ids=lambda row: f"{row['field']}-{row['raw'][:40]}")
def test_measures_agree_with_their_labels(row: dict[str, str]) -> None:
    if reason := find_skip_reason(row):
        pytest.skip(reason)
    assert evaluate_measure(row) in ("exact", "within"), parse_measure(row)


def _group_headers() -> list[list[dict[str, str]]]:
    """Return the headers of each source together, and each header separately."""
    rows = _read_rows("headers.csv")
    return [*group_by_source(rows).values(), *([row] for row in rows)]


@pytest.mark.parametrize("rows", _group_headers(), ids=lambda rows: f"{rows[0]['header'][:30]}-{len(rows)}")
def test_headers_agree_with_their_labels(rows: list[dict[str, str]]) -> None:
    judged = evaluate_headers(rows, FeedSettings(currency="usd"))
    wrong = {
        header.row["header"]: header.column and header.column.field
        for header in judged
        if header.verdict in ("missed", "wrong")
    }
    assert wrong == {}
