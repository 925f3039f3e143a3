"""GTINs and manufacturer's numbers that several items of a feed state."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from domain.kernel.problems import Problem
from domain.runs.usecases import row_relations
from tests.unit.runs.test_bundles import _read_feed

HEADERS = ("SKU", "Title", "UPC", "MPN")
TABLE = ["AB-1", "Oslo Dining Table", "036000291452", "M-1"]
SOFA = ["AB-2", "Rome Sofa", "4006381333931", "M-2"]


def _find_problems(folder: Path, *tables: Sequence[list[Any]], headers: Sequence[str] = HEADERS) -> list[Problem]:
    _, problems, _ = _read_feed(folder, *tables, headers=headers)
    return [problem for problem in problems if problem.field in ("gtin", "mpn")]


def test_a_gtin_of_two_items_is_reported_once(tmp_path: Path) -> None:
    chair = ["AB-3", "Oslo Chair", "036000291452", "M-3"]
    (problem,) = _find_problems(tmp_path, [TABLE, SOFA, chair])
    assert (problem.problem, problem.sheet, problem.line, problem.column) == ("duplicate", "Sheet1", 4, "UPC")
    assert (problem.external_id, problem.value) == ("AB-3", "036000291452")
    assert "AB-1, AB-3" in problem.detail


def test_items_are_compared_across_sheets_but_not_with_themselves(tmp_path: Path) -> None:
    assert _find_problems(tmp_path, [TABLE, SOFA, TABLE], [SOFA]) == []
    (problem,) = _find_problems(tmp_path, [TABLE], [["AB-2", *SOFA[1:2], *TABLE[2:3], "M-2"]])
    assert problem.sheet == "Sheet2"


def test_variants_of_one_product_need_their_own_gtin_but_can_share_the_manufacturers_number(tmp_path: Path) -> None:
    headers = ("Handle", "Title", "Option1 Name", "Option1 Value", "SKU", "UPC", "MPN")
    rows = [["oslo", "Oslo Sofa", "Color", colour, f"AB-{colour}", "036000291452", "M-1"] for colour in ("Oak", "Ash")]
    (problem,) = _find_problems(tmp_path, rows, headers=headers)
    assert problem.field == "gtin"


@pytest.mark.parametrize(("title", "is_reported"), [("Oslo Dining Table Black", False), ("Rome Sofa", True)])
def test_similar_items_can_share_a_manufacturers_number(tmp_path: Path, title: str, *, is_reported: bool) -> None:
    other = ["AB-9", title, "", "M-1"]
    assert [problem.field for problem in _find_problems(tmp_path, [TABLE, other])] == ["mpn"] * is_reported


def test_blank_and_invalid_identifiers_are_not_shared(tmp_path: Path) -> None:
    rows = [[f"AB-{number}", f"Item {chr(65 + number)}", upc, "N/A"] for number, upc in enumerate(("", "", "000000000000", "000000000000"))]  # fmt: skip
    assert _find_problems(tmp_path, rows) == []


def test_identifiers_beyond_the_limits_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [TABLE, [SOFA[0], SOFA[1], TABLE[2], TABLE[3]]]
    monkeypatch.setattr(row_relations, "_MAX_IDENTIFIERS", 2)
    assert _find_problems(tmp_path, rows) == []
    monkeypatch.setattr(row_relations, "_MAX_IDENTIFIERS", 10)
    monkeypatch.setattr(row_relations, "_MAX_SHARED_IDENTIFIERS", 1)
    assert _find_problems(tmp_path, rows) == []


def test_identifiers_that_are_keys_are_not_compared(tmp_path: Path) -> None:
    rows = [["Oslo Table", "036000291452"], ["Rome Sofa", "036000291452"]]
    assert [
        problem
        for problem in _find_problems(tmp_path, rows, headers=("Title", "UPC"))
        if problem.problem == "duplicate"
    ] == []
