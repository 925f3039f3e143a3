"""The fields of pushed records have bounds; what exceeds them is reported and the rest is kept."""

from typing import Any

import pytest

from domain.ingestion.model import FeedSettings
from domain.ingestion.records import parse_record
from domain.ingestion.values.text import MAX_TITLE
from domain.kernel.bounds import MAX_ENTRY_CHARS, MAX_LIST_ENTRIES
from domain.kernel.problems import ProblemKind

LONG = "x" * (MAX_TITLE + 1)
ENTRY = "x" * (MAX_ENTRY_CHARS + 1)


def product(**data: Any) -> dict[str, Any]:
    """A record of a product with this data."""
    return {"product": {"external_id": "P1", **data}, "variants": []}


def variant(**data: Any) -> dict[str, Any]:
    """A record of a variant with this data."""
    return {"product": {"external_id": "P1"}, "variants": [{"external_id": "V1", **data}]}


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (product(title=LONG), "product.title"),
        (product(features=["short", ENTRY]), "product.features"),
        (product(tags=["a"] * (MAX_LIST_ENTRIES + 1)), "product.tags"),
        (product(media=["https://a.example/1.jpg"] * (MAX_LIST_ENTRIES + 1)), "product.media"),
        (product(media=[{"url": "https://a.example/1.jpg", "alt": ENTRY}]), "product.media"),
        (product(description="x" * 70_000), "product.description"),
        (variant(axes={LONG: "a"}), "variants.0.axes"),
        (variant(axes={str(at): "a" for at in range(MAX_LIST_ENTRIES + 1)}), "variants.0.axes"),
        (variant(components=[{"name": "Leg"}] * (MAX_LIST_ENTRIES + 1)), "variants.0.components"),
        (
            variant(offers=[{"location": str(at), "quantity": 1} for at in range(MAX_LIST_ENTRIES + 1)]),
            "variants.0.offers",
        ),
    ],
)
def test_values_beyond_the_bounds_are_reported(record: dict[str, Any], field: str) -> None:
    statement, problems = parse_record(record, FeedSettings())
    assert statement is not None
    assert [(problem.field, problem.problem) for problem in problems] == [(field, ProblemKind.TOO_LONG)]


def test_values_within_the_bounds_are_kept() -> None:
    statement, _ = parse_record(
        product(title="Sofa", features=["short", ENTRY], media=["https://a.example/1.jpg"] * 501), FeedSettings()
    )
    assert statement is not None
    assert statement.data["title"] == "Sofa"
    assert statement.data["features"] == ["short"]
    assert len(statement.data["media"]) == MAX_LIST_ENTRIES


@pytest.mark.parametrize("measure", [{"hundredths_in": None, "given": None}, {"given": None}, {"hundredths_in": None}])
def test_members_that_are_null_are_none(measure: dict[str, Any]) -> None:
    """Programs that write every member of a measure leave those null that they do not use."""
    width = {"value": 31.5, "unit": "in", **measure}
    statement, problems = parse_record(variant(dimensions={"width": width}), FeedSettings())
    assert statement is not None and not problems
    assert statement.variants[0].data["dimensions"]["width"]["hundredths_in"] == 3150
