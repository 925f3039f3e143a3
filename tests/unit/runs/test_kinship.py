"""Families within bounds."""

import pytest

from domain.ingestion.columns.families import Member
from domain.runs.usecases import relations
from domain.runs.usecases.relations import Kinship


def test_items_beyond_the_most_stay_apart_and_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relations, "_MOST_MEMBERS", 2)
    kin = Kinship()
    for number in range(4):
        kin.look(f"A-{number}", Member("A / bed", (f"{number} in",), ""))
    kin.settle()
    assert sorted(kin.keys) == ["A-0", "A-1"]
    assert [problem.problem for problem in kin.told()] == ["too_long"]


def test_nobody_is_brought_together_without_room() -> None:
    kin = Kinship()
    for number in range(2):
        kin.look(f"A-{number}", Member("A / bed", (f"{number} in",), ""))
    kin.settle(apart=True)
    assert (kin.keys, list(kin.told())) == ({}, [])
