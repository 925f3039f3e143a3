"""Values beyond the bounds of a product are omitted deterministically and reported once for each field."""

from typing import Any

import pytest

from domain.catalogue.category_rules import MAX_PATH_LEVELS
from domain.catalogue.data_limits import json_size
from domain.catalogue.statements import ProductStatement
from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.proposal import map_declared_fields
from domain.ingestion.model import FeedSettings
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.records import parse_record
from domain.kernel.bounds import (
    MAX_AXES,
    MAX_ENTRY_CHARS,
    MAX_IMPORTED_VARIANTS,
    MAX_LIST_ENTRIES,
    MAX_OFFERS,
    PRODUCT_LIST_BYTES,
)
from domain.kernel.problems import Problem, ProblemKind

pytestmark = pytest.mark.slow

USD = FeedSettings(currency="usd")
FIELDS = {"Key": "sku", "Name": "title"}


def _read_product(rows: list[list[Any]], **columns: str) -> tuple[ProductStatement, list[Problem]]:
    """Read the rows of one product with the columns Key, Name and those given."""
    fields = FIELDS | {name.replace("_", " "): field for name, field in columns.items()}
    plan = ReadPlan(map_declared_fields(tuple(fields), tuple(fields.values())), USD)
    found = [normalise_rows("A-1", list(enumerate(rows, start=2)), plan, "Sheet1") for _ in range(2)]
    assert found[0] == found[1], "the same rows have the same result"
    return found[0]


def _build_words(count: int, length: int = 6) -> list[str]:
    return [f"w{number}".ljust(length, "x") for number in range(count)]


@pytest.mark.parametrize(("field", "mark"), [("tags", ","), ("features", "|")])
def test_a_list_keeps_its_first_entries(field: str, mark: str) -> None:
    words = _build_words(150_000)
    rows = [["A-1", "Sofa", mark.join(words[:100])], ["A-1", "", mark.join(words[100:])]]
    statement, problems = _read_product(rows, Long_list=field)
    assert statement.data[field] == words[:MAX_LIST_ENTRIES]  # type: ignore[literal-required]
    (problem,) = problems
    assert (problem.field, problem.problem) == (field, ProblemKind.TOO_LONG)
    assert (problem.sheet, problem.line, problem.column) == ("Sheet1", 3, "Long list")
    assert f"{150_000 - MAX_LIST_ENTRIES:,}" in problem.detail


def test_a_category_path_keeps_its_first_levels() -> None:
    levels = [f"Level {chr(ord('A') + number)}" for number in range(MAX_PATH_LEVELS + 2)]
    statement, problems = _read_product([["A-1", "Sofa", " > ".join(levels)]], Category="category_path")
    pushed, reported = parse_record({"product": {"external_id": "P1", "category_path": levels}, "variants": []}, USD)
    assert pushed is not None
    assert statement.data["category_path"] == pushed.data["category_path"] == levels[:MAX_PATH_LEVELS]
    assert [(one.field, one.problem) for one in problems] == [("category_path", ProblemKind.TOO_LONG)]
    assert [(one.field, one.problem) for one in reported] == [("product.category_path", ProblemKind.TOO_LONG)]
    assert all(
        "2 entries in category path" in one.detail and "at most 20" in one.detail for one in (*problems, *reported)
    )


def test_images_are_bounded_by_number_and_bytes() -> None:
    urls = [f"https://a.example/{number}.jpg" for number in range(20_000)]
    statement, problems = _read_product([["A-1", "Sofa", " ".join(urls)]], Images="media")
    assert [item["url"] for item in statement.data["media"]] == urls[:MAX_LIST_ENTRIES]
    assert [(problem.field, problem.column) for problem in problems] == [("media", "Images")]
    long = [f"https://a.example/{'x' * 1900}{number}.jpg" for number in range(MAX_LIST_ENTRIES)]
    statement, problems = _read_product([["A-1", "Sofa", " ".join(long)]], Images="media")
    assert len(problems) == 1
    assert 60 < len(statement.data["media"]) < MAX_LIST_ENTRIES
    assert json_size(statement.data["media"]) <= PRODUCT_LIST_BYTES + 2 * MAX_LIST_ENTRIES


def test_only_the_entry_that_is_too_long_is_omitted() -> None:
    words = ["soft", "y" * (MAX_ENTRY_CHARS + 1), "warm"]
    statement, problems = _read_product([["A-1", "Sofa", "|".join(words)]], Features="features")
    assert statement.data["features"] == ["soft", "warm"]
    assert [(problem.field, problem.column) for problem in problems] == [("features", "Features")]


def test_lists_of_a_variant_are_bounded() -> None:
    materials = ", ".join(_build_words(3_000))
    axes = {f"axis {number}": "x" * 50 for number in range(3_000)}
    statement, problems = _read_product([["A-1", "Sofa", materials, axes]], Materials="materials", Options="axes")
    (variant,) = statement.variants
    assert len(variant.data["materials"]) <= MAX_LIST_ENTRIES
    assert len(variant.data["axes"]) == MAX_AXES
    assert {(problem.field, problem.line, problem.column) for problem in problems} == {
        ("materials", 2, "Materials"),
        ("axes", 2, "Options"),
    }


def test_variants_beyond_the_limit_are_omitted_and_counted_once() -> None:
    fields = {"Group": "product_key", "Key": "sku", "Name": "title", "Qty": "quantity", "Place": "location"}
    plan = ReadPlan(map_declared_fields(tuple(fields), tuple(fields.values())), USD)
    rows = [
        (line, ["P-1", f"V-{line // 2}", "Sofa", "3", ("NJ", "LA")[line % 2]])
        for line in range(2, 2 * MAX_IMPORTED_VARIANTS + 22)
    ]
    statement, problems = normalise_rows("P-1", rows, plan)
    assert len(statement.variants) == MAX_IMPORTED_VARIANTS
    assert statement.variants[-1].key == f"V-{MAX_IMPORTED_VARIANTS}"
    (problem,) = (problem for problem in problems if problem.field != "axes")
    assert (problem.field, problem.line) == ("variants", 2 * MAX_IMPORTED_VARIANTS + 2)
    assert "10 entries in variants exceed a limit and were left out" in problem.detail


def test_locations_of_a_variant_are_bounded() -> None:
    rows = [["A-1", "Sofa", "3", f"Store {number}"] for number in range(MAX_OFFERS + 40)]
    statement, problems = _read_product(rows, Qty="quantity", Place="location")
    assert [len(variant.offers) for variant in statement.variants] == [MAX_OFFERS]
    assert [(problem.field, problem.line) for problem in problems] == [("offers", MAX_OFFERS + 2)]


def test_records_have_the_same_bounds_as_rows() -> None:
    long = ["x" * 1_000 + str(number) for number in range(400)]
    media = [{"url": f"https://a.example/{number}.jpg", "alt": "y" * 1_500} for number in range(200)]
    variants = [
        {"external_id": f"V-{number}", "axes": {f"a{at}": "z" * 900 for at in range(500 if number < 3 else 1)}}
        for number in range(MAX_IMPORTED_VARIANTS + 5)
    ]
    record = {"product": {"external_id": "P-1", "features": long, "media": media}, "variants": variants}
    statement, problems = parse_record(record, USD, 7)
    assert statement is not None
    assert len(statement.variants) == MAX_IMPORTED_VARIANTS
    assert json_size(statement.data["features"]) <= PRODUCT_LIST_BYTES + MAX_LIST_ENTRIES
    assert json_size(statement.data["media"]) <= PRODUCT_LIST_BYTES + MAX_LIST_ENTRIES
    assert sorted(problem.field for problem in problems) == [
        "product.features", "product.media", "variants", "variants.axes",
    ]  # fmt: skip
    assert {problem.line for problem in problems} == {7}


def test_realistic_values_are_unchanged() -> None:
    urls = [f"https://cdn.shop.example/s/files/1/0001/products/sofa-{number}.jpg?v=1700000000" for number in range(250)]
    tags = _build_words(250, 30)
    row = ["A-1", "Sofa", " ".join(urls), ",".join(tags)]
    statement, problems = _read_product([row], Images="media", Tags="tags")
    assert problems == []
    assert len(statement.data["media"]) == 250
    assert statement.data["tags"] == tags
