"""Fields of pushed records have bounds; values beyond them are reported, and the rest is kept."""

from typing import Any

import pytest

from domain.ingestion.model import FeedSettings
from domain.ingestion.records import parse_record
from domain.ingestion.values.text import MAX_TITLE
from domain.kernel.bounds import MAX_ENTRY_CHARS, MAX_LIST_ENTRIES
from domain.kernel.problems import ProblemKind

LONG = "x" * (MAX_TITLE + 1)
ENTRY = "x" * (MAX_ENTRY_CHARS + 1)


def build_product_record(**data: Any) -> dict[str, Any]:
    """Return a record of a product with the data."""
    return {"product": {"external_id": "P1", **data}, "variants": []}


def build_variant_record(**data: Any) -> dict[str, Any]:
    """Return a record of a variant with the data."""
    return {"product": {"external_id": "P1"}, "variants": [{"external_id": "V1", **data}]}


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (build_product_record(title=LONG), "product.title"),
        (build_product_record(features=["short", ENTRY]), "product.features"),
        (build_product_record(tags=["a"] * (MAX_LIST_ENTRIES + 1)), "product.tags"),
        (build_product_record(media=["https://a.example/1.jpg"] * (MAX_LIST_ENTRIES + 1)), "product.media"),
        (build_product_record(media=[{"url": "https://a.example/1.jpg", "alt": ENTRY}]), "product.media"),
        (build_product_record(description="x" * 70_000), "product.description"),
        (build_variant_record(axes={LONG: "a"}), "variants.0.axes"),
        (build_variant_record(axes={str(at): "a" for at in range(MAX_LIST_ENTRIES + 1)}), "variants.0.axes"),
        (build_variant_record(components=[{"name": "Leg"}] * (MAX_LIST_ENTRIES + 1)), "variants.0.components"),
        (
            build_variant_record(offers=[{"location": str(at), "quantity": 1} for at in range(MAX_LIST_ENTRIES + 1)]),
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
        build_product_record(title="Sofa", features=["short", ENTRY], media=["https://a.example/1.jpg"] * 501),
        FeedSettings(),
    )
    assert statement is not None
    assert statement.data["title"] == "Sofa"
    assert statement.data["features"] == ["short"]
    assert len(statement.data["media"]) == MAX_LIST_ENTRIES


@pytest.mark.parametrize("measure", [{"hundredths_in": None, "given": None}, {"given": None}, {"hundredths_in": None}])
def test_null_members_of_a_measure_are_ignored(measure: dict[str, Any]) -> None:
    """Programs that write every member of a measure set unused members to null."""
    width = {"value": 31.5, "unit": "in", **measure}
    statement, problems = parse_record(build_variant_record(dimensions={"width": width}), FeedSettings())
    assert statement is not None and not problems
    assert statement.variants[0].data["dimensions"]["width"]["hundredths_in"] == 3150
