"""Replacements of cells and ignored kinds of problems of columns, and default units of a source."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.mapping.columns import add_inferred_settings
from domain.ingestion.mapping.learned import ConfirmedMapping, LearnedMappings, compute_header_digest
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier
from domain.ingestion.normalisation import normalise_rows
from domain.kernel.json_values import to_json_value
from domain.kernel.problems import ProblemKind
from domain.mappings.column_preview import preview_column
from domain.mappings.confirmation import apply_confirmation
from domain.mappings.model import ColumnEdit, build_confirmation_change, restore_mapping
from domain.runs.sheets import compute_salt
from tests.support import builders

NOW = datetime(2026, 11, 20, tzinfo=UTC)
HEADERS = ("Nr", "EK", "Holz")
EUR = FeedSettings(currency="eur")


def build_mapping(**changes: Any) -> HeaderMapping:
    """Return a mapping of a number, a price with the changes, and a material."""
    price = replace(Column(1, "EK", "cost", {}), **changes)
    return HeaderMapping(HEADERS, (Column(0, "Nr", "sku", {}), price, Column(2, "Holz", "materials", {})), ())


def read(mapping: HeaderMapping, cells: list[Any], settings: FeedSettings = EUR) -> Any:
    plan = ReadPlan(mapping, settings)
    return normalise_rows("A-1", [(7, plan.replace_values(cells))], plan)


def test_problems_contain_the_text_of_their_cell() -> None:
    _, [problem] = read(build_mapping(), ["A-1", "auf Anfrage", "Eiche"])
    assert (problem.line, problem.column, problem.value) == (7, "EK", "auf Anfrage")
    _, [problem] = read(build_mapping(), ["A-1", "x" * 201, "Eiche"])
    assert problem.value is None, "long texts are omitted"


def test_a_value_is_replaced_by_a_blank_cell_regardless_of_case() -> None:
    statement, problems = read(build_mapping(values={"Auf  anfrage": ""}), ["A-1", "auf Anfrage ", "Eiche"])
    assert problems == [] and "offer.cost" in statement.blank_fields
    statement, problems = read(build_mapping(values={"n/a": "99,50"}), ["A-1", "N/A", "Eiche"])
    assert problems == [] and statement.variants[0].offers[0].data["cost"] == 9950


def test_replacements_apply_to_other_types_of_cells_and_to_short_rows() -> None:
    statement, _ = read(build_mapping(values={"0": "12"}), ["A-1", 0])
    assert statement.variants[0].offers[0].data["cost"] == 1200
    assert ReadPlan(build_mapping(values={"x": "1"}), EUR).replace_values(["A-1"]) == ["A-1"]


def test_an_ignored_kind_of_problem_is_not_reported_in_its_column() -> None:
    mapping = build_mapping(ignored_problems=(ProblemKind.UNREADABLE,))
    assert read(mapping, ["A-1", "auf Anfrage", "Eiche"])[1] == []
    _, [problem] = read(mapping, ["A-1", "99,50", "Eiche"], FeedSettings())
    assert problem.problem == ProblemKind.UNKNOWN_CURRENCY, "other kinds are reported"


def test_rows_are_read_again_only_if_a_replacement_or_an_ignored_kind_changes() -> None:
    plain = build_mapping()
    salts = {
        compute_salt(mapping, EUR)
        for mapping in (
            plain, build_mapping(values={}), build_mapping(values={"x": ""}), build_mapping(values={"x": "1"}),
            build_mapping(ignored_problems=(ProblemKind.MISSING,)),
        )
    }  # fmt: skip
    assert len(salts) == 4


def test_an_edit_keeps_the_replacements_unless_the_field_changes() -> None:
    mapping = replace(builders.mapping("src", *HEADERS), columns=build_mapping(values={"x": ""}).columns, unmapped=())
    same = apply_confirmation(mapping, [ColumnEdit("cost", 1, settings={"currency": "usd"})], EUR, NOW)
    other = apply_confirmation(mapping, [ColumnEdit("price", 1)], EUR, NOW)
    assert (same.columns[1].values, other.columns[1].values) == ({"x": ""}, {})
    kinds = (ProblemKind.UNREADABLE, ProblemKind.MISSING, ProblemKind.MISSING)
    edited = apply_confirmation(mapping, [ColumnEdit("cost", 1, values={"y": "1"}, ignored_problems=kinds)], EUR, NOW)
    assert edited.columns[1].values == {"y": "1"}
    assert edited.columns[1].ignored_problems == (ProblemKind.MISSING, ProblemKind.UNREADABLE)
    change = build_confirmation_change(mapping, edited)
    audited = to_json_value(change.before)
    assert restore_mapping(edited, audited, NOW).columns == mapping.columns


@pytest.mark.parametrize(("is_own", "values"), [(True, {"x": ""}), (False, {})])
def test_replacements_are_learned_within_a_source(is_own: bool, values: dict[str, str]) -> None:
    columns = build_mapping(values={"x": ""}, tier=MappingTier.PERSON).columns
    known = ConfirmedMapping(compute_header_digest(HEADERS), is_own, HEADERS, columns)
    table = HeaderMapping(("Neu", *HEADERS), (), ())
    unmapped = builders.mapping("src", *table.headers).unmapped
    applied = LearnedMappings([known]).apply_to(
        replace(table, unmapped=(replace(unmapped[0], position=0, column="Neu"), *unmapped)), [], EUR
    )
    [cost] = [column for column in applied.columns if column.field == "cost"]
    assert (cost.tier, dict(cost.values)) == (MappingTier.LEARNED, values)


def test_default_units_apply_to_columns_without_a_unit() -> None:
    columns = [
        Column(0, "B", "dimensions.width", {}),
        Column(1, "T", "dimensions.depth", {"unit": "mm"}),
        Column(2, "H", "dimensions.height", {}),
        Column(3, "kg", "weight", {}),
    ]
    settings = FeedSettings(length_unit="cm", weight_unit="lb")
    found = add_inferred_settings(columns, [["80"], ["400"], ["75 in", "70 in"], ["12"]], settings)
    assert [column.settings.get("unit") for column in found] == ["cm", "mm", "in", "lb"]
    assert found[0].settings["unit_by"] == "source"


def test_a_preview_reads_the_currency_in_another_column() -> None:
    mapping = builders.mapping("src", "EK", "Währung", samples=(("99.00", "EUR"),))
    mapping = replace(mapping, columns=(Column(1, "Währung", "currency", {}),))
    [result] = preview_column(mapping, Column(0, "EK", "cost", {}), FeedSettings())
    assert result.problem is None and result.values == (("cost", 9900),)
