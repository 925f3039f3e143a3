"""Runs the hand-worked parses of a reference folder, if one is present; `benchmarks.labelled_data` defines how they are judged."""

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


def _rows(name: str) -> list[dict[str, str]]:
    return read_csv_rows(Path(FOLDER) / "parsing" / name) if FOLDER else []


@pytest.mark.parametrize("row", _rows("measures.csv"), ids=lambda row: f"{row['field']}-{row['raw'][:40]}")
def test_measure_comes_out_as_worked_by_hand(row: dict[str, str]) -> None:
    if reason := find_skip_reason(row):
        pytest.skip(reason)
    assert evaluate_measure(row) in ("exact", "within"), parse_measure(row)


def _groups() -> list[list[dict[str, str]]]:
    """The headers of each source together, and each by itself."""
    rows = _rows("headers.csv")
    return [*group_by_source(rows).values(), *([row] for row in rows)]


@pytest.mark.parametrize("rows", _groups(), ids=lambda rows: f"{rows[0]['header'][:30]}-{len(rows)}")
def test_headers_mean_what_was_worked_by_hand(rows: list[dict[str, str]]) -> None:
    judged = evaluate_headers(rows, FeedSettings(currency="usd"))
    wrong = {
        header.row["header"]: header.column and header.column.field
        for header in judged
        if header.verdict in ("missed", "wrong")
    }
    assert wrong == {}
