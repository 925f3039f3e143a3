"""Confirmation of a mapping with a person's edits (domain/mappings/confirmation.py), and valid settings of columns."""

from datetime import timedelta
from typing import Any

import pytest

from domain.ingestion.columns.plan import ReadPlan
from domain.ingestion.columns.settings import MAX_SETTING_CHARS, find_settings_for_field, validate_settings
from domain.ingestion.model import Column, FeedSettings, HeaderMapping, MappingTier
from domain.ingestion.vocabulary.fields import MONEY, is_field
from domain.kernel.errors import InvalidRequest, Unprocessable
from domain.mappings.confirmation import ELLIPSIS, FIELD_NAMES, apply_confirmation
from domain.mappings.model import ColumnEdit, SourceMapping, build_confirmation_change
from tests.support import builders

USD = FeedSettings("usd")
LATER = builders.MOMENT + timedelta(minutes=1)


def _create_mapping(*headers: str, **changes: Any) -> SourceMapping:
    return builders.mapping("src_1", *headers, **changes)


def _confirm(mapping: SourceMapping, *edits: ColumnEdit, settings: FeedSettings = USD) -> SourceMapping:
    return apply_confirmation(mapping, edits, settings, LATER)


def _find_faults(mapping: SourceMapping, *edits: ColumnEdit) -> set[tuple[str, str]]:
    with pytest.raises(InvalidRequest) as refused:
        _confirm(mapping, *edits)
    return {(fault.field, fault.code) for fault in refused.value.fields}


def test_a_mapping_can_be_confirmed_unchanged() -> None:
    mapping = _create_mapping("SKU", "Zorb")
    after = _confirm(mapping)
    assert (after.status, after.confirmed_at, after.updated_at) == ("confirmed", LATER, LATER)
    assert (after.columns, after.unmapped) == (mapping.columns, mapping.unmapped)
    assert apply_confirmation(after, (), USD, LATER + timedelta(days=1)) == after, "nothing new was confirmed"
    assert build_confirmation_change(mapping, after).after == {"status": "confirmed"}


def test_the_audit_entry_lists_the_changed_columns() -> None:
    mapping = _create_mapping("SKU", "Zorb", "Flim")
    change = build_confirmation_change(mapping, _confirm(mapping, ColumnEdit("title", 1)))
    before = {"position": 1, "column": "Zorb", "field": None, "reason": "unknown"}
    assert change.before == {"status": "proposed", "columns": [before]}
    assert [(one["column"], one["field"], one["tier"]) for one in change.after["columns"]] == [
        ("Zorb", "title", "person")
    ]


def test_columns_can_be_ignored() -> None:
    after = _confirm(_create_mapping("SKU", "Zorb"), ColumnEdit("title", 1), ColumnEdit(None, 0))
    assert [(c.position, c.field, c.tier) for c in after.columns] == [(1, "title", MappingTier.PERSON)]
    assert [(u.position, u.reason) for u in after.unmapped] == [(0, "ignored")]


def test_settings_are_kept_with_the_field() -> None:
    mapping = _create_mapping(
        "SKU", "W", columns=(Column(0, "SKU", "sku", {}), Column(1, "W", "dimensions.width", {"unit": "cm"}))
    )
    assert dict(_confirm(mapping, ColumnEdit("dimensions.width", 1)).columns[1].settings) == {"unit": "cm"}
    other = _confirm(mapping, ColumnEdit("dimensions.depth", 1), settings=FeedSettings())
    assert dict(other.columns[1].settings) == {}, "nothing proves a unit"
    given = _confirm(mapping, ColumnEdit("dimensions.width", 1, settings={"unit": "Inches"}))
    assert dict(given.columns[1].settings) == {"unit": "in"}


def test_settings_proved_by_samples_are_added_to_a_persons_edits() -> None:
    mapping = _create_mapping("SKU", "W", "P", samples=(("a", "31", "1.234,50"), ("b", "30", "1.000,00")))
    edits = ColumnEdit("dimensions.width", 1), ColumnEdit("cost", 2), ColumnEdit("sku", 0)
    after = _confirm(mapping, *edits)
    assert [dict(c.settings) for c in after.columns] == [{}, {"unit": "in", "unit_by": "market"}, {}]
    edited = _confirm(mapping, ColumnEdit("cost", 2, settings={"decimal": "dot"}))
    assert dict(edited.columns[1].settings) == {"decimal": "dot"}
    shown = _create_mapping("SKU", "W", samples=(("a", "31 cm"), ("b", "30"), ("c", f"9 mm and much more{ELLIPSIS}")))
    assert dict(_confirm(shown, ColumnEdit("dimensions.width", 1)).columns[1].settings) == {
        "unit": "cm", "unit_by": "column",
    }  # fmt: skip


def test_columns_are_named_by_position_or_exact_header() -> None:
    mapping = _create_mapping("SKU", "Zorb", "Zorb", "")
    assert _confirm(mapping, ColumnEdit("title", column="SKU"), ColumnEdit("sku", 1)).columns[0].field == "title"
    assert _find_faults(mapping, ColumnEdit("title", column="Zorb")) == {("columns.0.position", "required")}
    assert _find_faults(mapping, ColumnEdit("title", column="zorb")) == {("columns.0.column", "invalid_value")}
    assert _find_faults(mapping, ColumnEdit("title")) == {("columns.0.column", "required")}
    assert _find_faults(mapping, ColumnEdit("title", 4)) == {("columns.0.position", "too_large")}
    assert _find_faults(mapping, ColumnEdit("title", 1, "SKU")) == {("columns.0.column", "invalid_value")}
    assert _find_faults(mapping, ColumnEdit("title", 1), ColumnEdit("brand", 1, "Zorb")) == {("columns.1", "duplicate")}
    assert _confirm(mapping, ColumnEdit("title", column="")).columns[1].position == 3


@pytest.mark.parametrize(
    "field", ["skuu", "", "ignore", "dimensions", "dimensions.girth", "cartons.1.colour", "SKU", "x" * 200]
)
def test_unknown_fields_are_refused(field: str) -> None:
    if is_field(field) and field != "ignore":
        assert _confirm(_create_mapping("SKU", "Zorb"), ColumnEdit(field, 1)).columns[1].field == field
        return
    assert _find_faults(_create_mapping("SKU", "Zorb"), ColumnEdit(field, 1)) == {("columns.0.field", "invalid_value")}


def test_similar_fields_are_suggested() -> None:
    for wrong, right in (("width", "dimensions.width"), ("titel", "title"), ("color", "colour"), ("qty", "quantity")):
        with pytest.raises(InvalidRequest, match=f"`{right}`"):
            _confirm(_create_mapping("SKU", "Zorb"), ColumnEdit(wrong, 1))


def test_exclusive_fields_are_assigned_once() -> None:
    mapping = _create_mapping("SKU", "Zorb", "Flim")
    with pytest.raises(Unprocessable, match=r"sku: `SKU` \(position 0\), `Zorb` \(position 1\)"):
        _confirm(mapping, ColumnEdit("sku", 1))
    at = [ColumnEdit("quantity", n, settings={"location": place}) for n, place in ((1, "NJ"), (2, "CA"))]
    assert len(_confirm(mapping, *at).columns) == 3
    with pytest.raises(Unprocessable):
        _confirm(mapping, *(ColumnEdit("quantity", n, settings={"location": "NJ"}) for n in (1, 2)))
    assert len(_confirm(mapping, ColumnEdit("media", 1), ColumnEdit("media", 2)).columns) == 3


def test_required_fields_must_be_mapped() -> None:
    with pytest.raises(Unprocessable, match="sku, variant_key"):
        _confirm(_create_mapping("SKU", "Zorb"), ColumnEdit(None, 0))
    stock = FeedSettings("usd", stream="stock")
    with pytest.raises(Unprocessable, match="quantity"):
        _confirm(_create_mapping("SKU", "Zorb"), settings=stock)
    assert _confirm(_create_mapping("SKU", "Zorb"), ColumnEdit("quantity", 1), settings=stock).status == "confirmed"


@pytest.mark.parametrize("field", FIELD_NAMES)
def test_every_selectable_field_has_a_reader(field: str) -> None:
    """The reader accepts all valid settings of the field."""
    good = {"unit": "cents" if field in MONEY else "kg" if field.endswith("weight") else "days" if field == "lead_time_days" else "in", "order": "dmy" if field.endswith("eta") else "wdh",
            "location": "NJ", "currency": "usd", "decimal": "comma", "price_code": "A", "fallback": "1", "option": "PG 1", "axis": "PG", "applies_to": "Width"}  # fmt: skip
    assert is_field(field)
    settings, faults = validate_settings(field, {name: good[name] for name in find_settings_for_field(field)}, {})
    assert not faults
    mapping = HeaderMapping(("SKU", "Zorb"), (Column(0, "SKU", "sku", {}), Column(1, "Zorb", field, settings)), ())
    assert ReadPlan(mapping, USD).read_product_key(["A1", "x"]) in ("A1", "x")


@pytest.mark.parametrize(
    ("field", "settings"),
    [
        ("cost", {"currency": "zzz"}), ("cost", {"decimal": "point"}), ("cost", {"unit": "in"}), ("sku", {"unit": "in"}),
        ("weight", {"unit": "in"}), ("dimensions", {"unit": "kg"}), ("dimensions", {"order": "wwd"}), ("dimensions", {"order": "xyz"}),
        ("dimensions.width", {"order": "wdh"}), ("incoming.0.eta", {"order": "ymd"}), ("lead_time_days", {"unit": "months"}),
        ("quantity", {"location": " "}), ("cost", {"price_code": ""}), ("sku", {"fallback": "first"}), ("cost", {"location": "x" * (MAX_SETTING_CHARS + 1)}),
    ],
)  # fmt: skip
def test_unknown_settings_are_refused(field: str, settings: dict[str, str]) -> None:
    read, faults = validate_settings(field, settings, {})
    assert read == {} and [fault.name for fault in faults] == list(settings)


def test_current_settings_are_accepted() -> None:
    proposed = {"unit": "in", "unit_by": "market"}
    assert validate_settings("dimensions.width", proposed, proposed) == (proposed, [])
    assert len(validate_settings("dimensions.width", proposed, {})[1]) == 1
