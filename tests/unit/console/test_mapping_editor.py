"""Fields and settings in the editor of column mappings."""

from dataclasses import replace
from typing import Any

import pytest

from domain.ingestion.columns.settings import find_settings_for_field
from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.vocabulary.fields import split_field
from domain.mappings.confirmation import FIELD_NAMES
from entrypoints.console.mapping_editor import build_table, parse_field_name, read_defaults
from entrypoints.console.rendering import LABELS, format_field_name, list_field_labels
from entrypoints.console.request import FormData
from entrypoints.console.translation import LANGUAGES, use_language
from tests.support import builders


def build(**values: Any) -> Any:
    """Return the editor of the headers `Nr` and `Holz` with a form."""
    mapping = builders.mapping("src", "Nr", "Holz")
    form = FormData([(name.replace("__", "."), value) for name, value in values.items()])
    return build_table(form, mapping, FeedSettings(), builders.MOMENT, fix=form.get("fix"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_field_has_a_label_of_its_own(language: str) -> None:
    use_language(language)
    labels = list_field_labels()
    assert {split_field(name)[0] for name in FIELD_NAMES} == labels.keys()
    assert len({label.casefold() for label in labels.values()}) == len(labels)
    use_language("en")


def test_every_setting_has_a_label() -> None:
    names = {name for field in FIELD_NAMES for name in find_settings_for_field(field)}
    assert names == LABELS["column_settings"].keys()


@pytest.mark.parametrize(
    ("text", "part", "field", "shown"),
    [
        ("width", "", "dimensions.width", "Width"),
        ("dimensions.width", "", "dimensions.width", "Width"),
        (" Carton  WIDTH ", "2", "cartons.1.width", "Carton width 2"),
        ("Carton width", "x", "cartons.0.width", "Carton width 1"),
        ("Option value", "3", "option_value.2", "Option value 3"),
        ("Variant option", "", "axes.Holz", "Variant option Holz"),
        ("Variant option", "Bezug", "axes.Bezug", "Variant option Bezug"),
        ("nonsense", "", "nonsense", "nonsense"),
    ],
)
def test_fields_are_entered_as_labels_or_names(text: str, part: str, field: str, shown: str) -> None:
    assert parse_field_name(text, part, "Holz") == field
    assert format_field_name(field) == shown


def test_a_form_without_changes_has_no_edits() -> None:
    assert build().edits == []
    assert build(field__0__0="SKU (item number)", field__0__1="").edits == []


def test_the_columns_of_a_proposal_are_unchanged_by_their_own_form() -> None:
    fields = [name for name in FIELD_NAMES if name not in ("category", "axes.Size")]
    headers = [f"Column {number}" for number in range(len(fields))]
    columns = tuple(Column(place, headers[place], field, {}) for place, field in enumerate(fields))
    mapping = replace(builders.mapping("src", *headers), columns=columns, unmapped=())
    first = build_table(FormData([]), mapping, FeedSettings(), builders.MOMENT, max_columns=200)
    inputs = {"field": lambda column: column.choice.text, "part": lambda column: column.choice.part}
    pairs = [(f"{name}.{column.key}", get(column)) for column in first.columns for name, get in inputs.items()]
    assert build_table(FormData(pairs), mapping, FeedSettings(), builders.MOMENT).edits == []


def test_an_edit_contains_what_changes() -> None:
    table = build(field__0__1="Materials", from__0__1="beech nat.", to__0__1="beech")
    assert list(table.edits) == [{"position": 1, "field": "materials", "values": {"beech nat.": "beech"}}]
    assert table.edited.columns[1].values == {"beech nat.": "beech"}
    excluded = build(field__0__0="", field__0__1="sku")
    assert [(edit["position"], edit["field"]) for edit in excluded.edits] == [(0, None), (1, "sku")]


def test_settings_of_the_previous_field_are_dropped() -> None:
    table = build(field__0__1="Materials", set__0__1__unit="cm", set__0__1__currency="eur")
    assert list(table.edits) == [{"position": 1, "field": "materials"}]


def test_an_invalid_setting_is_the_error_of_its_column() -> None:
    table = build(field__0__1="Cost price (net)", set__0__1__currency="zzz")
    assert table.edited is None and "currency" in table.columns[1].error and not table.error


def test_two_columns_of_one_field_are_an_error_of_the_table() -> None:
    table = build(field__0__1="sku")
    assert table.edited is None and "can have only one column" in table.error


@pytest.mark.parametrize(
    ("values", "edit"),
    [
        ({"fix": "column:0.0"}, {"position": 0, "field": None}),
        ({"fix": "unreadable:0.0"}, {"position": 0, "field": "sku", "ignored_problems": ["unreadable"]}),
        (
            {"fix": "value:0.0", "fix__cell__0__0": "n/a", "fix__text__0__0": ""},
            {"position": 0, "field": "sku", "values": {"n/a": ""}},
        ),
    ],
)
def test_fixes_change_one_column(values: dict[str, str], edit: dict[str, Any]) -> None:
    assert next(iter(build(**values, field__0__1="title").edits)) == edit


@pytest.mark.parametrize("fix", ["nonsense", "value:0.0", "value:9.9", "unknown:0.0", ":0.0"])
def test_unknown_fixes_change_nothing(fix: str) -> None:
    assert build(fix=fix).edits == []


def test_defaults_are_restricted_to_known_values() -> None:
    form = FormData([("currency", "EUR"), ("decimal", "auto"), ("default_length_unit", "furlong")])
    config = {"warehouse": "Nord", "decimal": "dot", "default_weight_unit": "kg"}
    assert read_defaults(form, config) == {"warehouse": "Nord", "currency": "eur", "default_weight_unit": "kg"}
    assert read_defaults(FormData([("fix.currency", "CHF")]), config, "currency") == config | {"currency": "chf"}
