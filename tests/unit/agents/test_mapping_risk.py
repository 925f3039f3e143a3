"""Proof, improvement and risk of column mappings."""

from dataclasses import replace
from typing import Any

import pytest

from domain.agents.mapping_proof import assess_risk, build_proof, is_improvement
from domain.events.model import Event, FieldChange
from domain.ingestion.model import Column, MappingTier
from domain.proposals.model import ProofSample, Risk
from domain.runs.replay import ReplayResult

EMPTY = ReplayResult(0, 0, 0, (), 0, None)
BEFORE = ReplayResult(10, 10, 4, (), 0, None)
CERTAIN = [Column(0, "SKU", "sku", {})]


def _event(type: str, path: str, old: Any, new: Any) -> Event:
    return Event(type, "var_1", 2, {}, fields=(FieldChange(path, old, new),))


def _assess(before: ReplayResult, after: ReplayResult, columns: list[Column] = CERTAIN) -> Risk:
    return assess_risk(build_proof("run_1", before, after), columns, before, after)


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (replace(BEFORE, items=11, problems=9), True),
        (replace(BEFORE, items=9, problems=0), False),
        (replace(BEFORE, problems=3), True),
        (BEFORE, False),
        (replace(BEFORE, events=[_event("variant.updated", "data.colour", None, "oak")]), True),
        (replace(BEFORE, problems=5, events=[_event("variant.updated", "data.colour", None, "oak")]), False),
    ],
)
def test_a_mapping_must_improve_the_import(after: ReplayResult, expected: bool) -> None:
    assert is_improvement(build_proof("run_1", BEFORE, after)) is expected


def test_the_proof_lists_what_only_the_mapping_changes_once_per_path() -> None:
    colour, title = (
        _event("variant.updated", "data.colour", None, "oak"),
        _event("product.updated", "data.title", "a", "b"),
    )
    others = [_event("variant.updated", f"data.axes.{n}", None, n) for n in range(20)]
    proof = build_proof(
        "run_1", replace(BEFORE, events=[title]), replace(BEFORE, events=[title, colour, colour, *others])
    )
    assert proof.samples[:2] == (ProofSample("data.colour", None, "oak"), ProofSample("data.axes.0", None, 0))
    assert len(proof.samples) == 10


def test_more_products_or_less_problems_without_harm_have_low_risk() -> None:
    assert _assess(EMPTY, replace(BEFORE, events=[_event("offer.created", "price", None, 100)])) == Risk.LOW
    assert _assess(BEFORE, replace(BEFORE, problems=0)) == Risk.LOW


@pytest.mark.parametrize("tier", [MappingTier.MODEL, MappingTier.FUZZY])
def test_an_uncertain_column_has_no_low_risk(tier: MappingTier) -> None:
    columns = [*CERTAIN, Column(1, "Zorb", "materials", {}, tier)]
    assert _assess(BEFORE, replace(BEFORE, problems=0), columns) == Risk.NORMAL


@pytest.mark.parametrize("path", ["price", "currency", "data.sku", "data.gtin", "data.title"])
def test_changes_of_prices_and_identities_have_no_low_risk(path: str) -> None:
    after = replace(BEFORE, problems=0, events=[_event("offer.changed", path, "1", "2")])
    assert _assess(BEFORE, after) == Risk.NORMAL


def test_withdrawals_and_mere_additions_have_no_low_risk() -> None:
    assert _assess(BEFORE, replace(BEFORE, problems=0, withdrawn=1)) == Risk.NORMAL
    assert (
        _assess(BEFORE, replace(BEFORE, events=[_event("variant.updated", "data.colour", None, "oak")])) == Risk.NORMAL
    )
