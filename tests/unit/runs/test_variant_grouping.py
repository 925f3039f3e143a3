"""Limits of variant grouping."""

import pytest

from domain.ingestion.columns.families import FamilyMember
from domain.runs.usecases import row_relations
from domain.runs.usecases.row_relations import VariantGrouping


def test_items_beyond_the_limit_stay_separate_and_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_relations, "_MAX_MEMBERS", 2)
    kin = VariantGrouping()
    for number in range(4):
        kin.add_row(f"A-{number}", FamilyMember("A / bed", (f"{number} in",), ""))
    kin.group_items()
    assert sorted(kin.product_key_by_item_key) == ["A-0", "A-1"]
    assert [problem.problem for problem in kin.find_problems()] == ["too_long"]


def test_nothing_is_grouped_without_capacity() -> None:
    kin = VariantGrouping()
    for number in range(2):
        kin.add_row(f"A-{number}", FamilyMember("A / bed", (f"{number} in",), ""))
    kin.group_items(keeps_separate=True)
    assert (kin.product_key_by_item_key, list(kin.find_problems())) == ({}, [])
