"""Checks of mapped columns for repeated and missing fields, and detection of units and number formats in samples."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain, pairwise
from typing import Any

from domain.ingestion.data import invert_table, load_toml
from domain.ingestion.model import Column, FeedSettings, UnmappedColumn
from domain.ingestion.values.dates import detect_date_order
from domain.ingestion.values.money import detect_decimal_mark
from domain.ingestion.values.quantities import (
    parse_amount_at,
    parse_length_unit,
    parse_weight_unit,
)
from domain.ingestion.vocabulary.fields import COMBINED_FIELDS, KEYS, MONEY
from domain.kernel.units import INCHES_BY_UNIT, POUNDS_BY_UNIT

_STOCK_FIELDS = MONEY | {"quantity", "availability", "lead_time_days", "discontinued"}
_FALLBACK_FIELDS = frozenset(
    "weight colour finish dimensions gtin description brand google_category availability".split()
)
_FALLBACK_PREFIXES = ("dimensions.", "rug.", "compliance.", "cartons.")

SECOND_FIELD = "second_field"
"""Setting with the field that a second reader of the header, such as the classification, assigns to the column."""
CERTAIN_CONFIDENCE = 0.9
"""Confidence from which a field counts as certain, so that it needs no second reader."""
_MAX_DISPUTED_CONFIDENCE = 0.79

_WORDS_OF_NOTES = re.compile(r"\d+|[^\W\d_]+|[€£]")
_UNIT_BY_WORD = invert_table(load_toml("units")["notes"])
_CURRENCY_BY_WORD = invert_table(load_toml("currencies")["notes"])

ColumnEntry = Column | UnmappedColumn
ColumnTarget = tuple[str, str]
"""Target of a column: the field, and the text of `join_target_settings`."""


def find_column_target(column: Column) -> ColumnTarget:
    """Return the target of a column: field, and location with the axis and the option.

    Only one column may have a target, unless `allows_several_columns` is true for the field. A column that is not read
    (`is_alternative`) has a target of its own: the field and its position.
    """
    if column.is_alternative:
        return column.field, f"column {column.position}"
    return column.field, join_target_settings(column.settings)


def join_target_settings(settings: Mapping[str, Any]) -> str:
    """Return the location, axis, option and column of a unit as one text, which distinguishes columns of one field."""
    return "\n".join(str(settings.get(name, "")) for name in ("location", "axis", "option", "applies_to")).strip()


def allows_several_columns(field: str) -> bool:
    """Return whether several columns can have the field, because their values are combined or the later ones are fallbacks."""
    return field in COMBINED_FIELDS or field in _FALLBACK_FIELDS or field.startswith(_FALLBACK_PREFIXES)


def add_second_field(column: Column, field: str) -> Column:
    """Return the column with the different field of a second reader as a setting, and a confidence below 0.8."""
    confidence = min(column.confidence, _MAX_DISPUTED_CONFIDENCE)
    return replace(column, confidence=confidence, settings={**column.settings, SECOND_FIELD: field})


def find_missing_data(columns: Iterable[Column], stream: str) -> tuple[str, ...]:
    """Return the names of the required data that no column contains: `key`, `stock`, both or none.

    `key` is missing if no column identifies items, and `stock` if the stream is `stock` and no column contains stock or prices.
    """
    fields = {column.field for column in columns if not column.is_alternative}
    missing = []
    if not fields & {*KEYS, "title"}:
        missing.append("key")
    if stream == "stock" and not fields & _STOCK_FIELDS:
        missing.append("stock")
    return tuple(missing)


def find_repeated_columns(columns: Iterable[Column]) -> list[Column]:
    """Return the columns with the same field and location as an earlier column, although only one column can have these."""
    taken: set[ColumnTarget] = set()
    repeats = []
    for column in columns:
        if find_column_target(column) in taken and not allows_several_columns(column.field):
            repeats.append(column)
        taken.add(find_column_target(column))
    return repeats


def combine_entries(columns: Iterable[Column], unmapped: Iterable[UnmappedColumn]) -> dict[int, ColumnEntry]:
    """Combine the columns with a field and the columns without a field, by position."""
    entries: Iterable[ColumnEntry] = chain(unmapped, columns)
    return {one.position: one for one in entries}


def split_entries(entries: Mapping[int, ColumnEntry]) -> tuple[tuple[Column, ...], tuple[UnmappedColumn, ...]]:
    """Separate the columns with a field from the columns without a field; both are returned in the order of positions."""
    ordered = [entries[position] for position in sorted(entries)]
    mapped = tuple(one for one in ordered if isinstance(one, Column))
    return mapped, tuple(one for one in ordered if isinstance(one, UnmappedColumn))


_UNIT_AFTER_NUMBER = re.compile(r"\d\s*([^\W\d_]+\b|\"|\u201d|\u2033)")
_NUMBER_WITH_BOTH_MARKS = re.compile(r"\d{1,3}(?:(\.)\d{3})+,\d+|\d{1,3}(?:,\d{3})+\.\d+")
_ENDS_IN_THOUSANDTHS = re.compile(r"[.,]\d{3}\s*$")
_LARGEST_CM = Decimal(400)
_LARGEST_INCHES = Decimal(200)
_MIN_SHARE = 0.5


def _is_weight(field: str) -> bool:
    return field.rpartition(".")[2] == "weight"


def _is_length(field: str) -> bool:
    has_length = field == "rug.pile_height" or field.startswith(("dimensions", "cartons."))
    return has_length and not field.endswith((".weight", ".count"))


def _presume_unit(column: Column, samples: Sequence[str], settings: FeedSettings) -> str | None:
    """Return the unit to presume for numbers without one, which depends on the currency of the source; None if ambiguous."""
    if settings.currency is None:
        return None
    customary = settings.currency == "usd"
    if column.field == "rug.pile_height" and not customary:
        return None
    if _is_weight(column.field):
        return "lb" if customary else "kg"
    most = max((found.value for sample in samples if (found := parse_amount_at(sample.strip(), 0))), default=None)
    if customary:
        return "in" if most is None or most <= _LARGEST_INCHES else None
    # Metric sheets are in cm or mm; furniture longer than four metres means that the sheet is not in cm.
    return "cm" if most is not None and most <= _LARGEST_CM else None


def _find_units(column: Column, samples: Sequence[str]) -> set[str]:
    """Return the units next to the numbers in the samples of a column.

    The set is empty if fewer than half of the samples contain a unit, because the unit then does not apply to the others.
    """
    named = parse_weight_unit if _is_weight(column.field) else parse_length_unit
    filled = [sample for sample in samples if sample.strip()]
    cells = [{unit for match in _UNIT_AFTER_NUMBER.finditer(sample) if (unit := named(match[1]))} for sample in filled]
    return set().union(*cells) if sum(map(bool, cells)) >= _MIN_SHARE * len(cells) else set()


def _is_metric(columns: Sequence[Column], samples: Sequence[Sequence[str]]) -> bool:
    """Return whether some columns of a table are in metric units and none in inches, feet or pounds."""
    units = {column.settings.get("unit") for column in columns if "unit_by" not in column.settings}
    for column in columns:
        if _is_weight(column.field) or _is_length(column.field):
            units |= _find_units(column, samples[column.position])
    return bool(units & {"cm", "mm", "kg"}) and not units & {"in", "ft", "lb"}


def _find_clear_marks(sample: str) -> Iterator[str]:
    """Yield the decimal mark if a sample is a number with two different marks (`1.800,000`)."""
    if match := _NUMBER_WITH_BOTH_MARKS.fullmatch(sample.strip()):
        yield "comma" if match[1] == "." else "dot"


def _infer_settings(
    column: Column, samples: Sequence[str], settings: FeedSettings, all_fields: set[str], table_mark: str | None
) -> dict[str, str]:
    """Infer settings of a column (unit, decimal mark or date order) from its samples or the currency of the source.

    Args:
        column: The column.
        samples: The first values of the column.
        settings: The settings of the source.
        all_fields: The fields of all columns.
        table_mark: The decimal mark of all numbers with two different marks in the table, or None.
    """
    if column.field == "quantity":
        return {"decimal": table_mark} if table_mark and any(map(_ENDS_IN_THOUSANDTHS.search, samples)) else {}
    if column.field in MONEY:
        mark = detect_decimal_mark(list(samples))
        return {"decimal": mark} if mark and mark != settings.decimal else {}
    if column.field.endswith(".eta"):
        order = detect_date_order(list(samples))
        return {"order": order} if order else {}
    weighs = _is_weight(column.field)
    if not (weighs or _is_length(column.field)) or "unit" in column.settings:
        return {}
    if ("weight_unit" if weighs else "dimension_unit") in all_fields:
        return {}
    if units := _find_units(column, samples):
        # If some cells of a column state a unit, and always the same, bare numbers are in that unit as well.
        return {"unit": units.pop(), "unit_by": "column"} if len(units) == 1 else {}
    if unit := settings.weight_unit if weighs else settings.length_unit:
        return {"unit": unit, "unit_by": "source"}
    unit = _presume_unit(column, samples, settings)
    return {"unit": unit, "unit_by": "market"} if unit else {}


def find_stated_settings(notes: str) -> dict[str, str]:
    """Return the currency and the units that the text above a table states, as settings of the source by name.

    A unit after a number belongs to that number. Several currencies or units contradict each other, so none is returned.
    """
    words = _WORDS_OF_NOTES.findall(notes)
    following = {word.lower() for before, word in pairwise(("", *words)) if not before.isdecimal()}
    units = {_UNIT_BY_WORD[word] for word in following & _UNIT_BY_WORD.keys()}
    stated = {
        "currency": {_CURRENCY_BY_WORD[word] for word in words if word in _CURRENCY_BY_WORD},
        "length_unit": units.intersection(INCHES_BY_UNIT),
        "weight_unit": units.intersection(POUNDS_BY_UNIT),
    }
    return {name: values.pop() for name, values in stated.items() if len(values) == 1}


def complete_settings(settings: FeedSettings, notes: str) -> FeedSettings:
    """Return the settings with those that the text above a table states, where the source has none."""
    stated = find_stated_settings(notes)
    return replace(settings, **{name: value for name, value in stated.items() if getattr(settings, name) is None})


def add_inferred_settings(
    columns: Sequence[Column], samples: Sequence[Sequence[str]], settings: FeedSettings
) -> list[Column]:
    """Return the columns with additional settings (unit, decimal mark, date order) that are inferred from their samples.

    Lengths and weights without any unit have the default unit of the source (`unit_by: source`). Without a default unit, a
    unit is presumed from the currency of the source (`unit_by: market`); people can change this setting. If the source has
    no currency either, no unit is presumed.

    Args:
        columns: The columns.
        samples: The first values of each column, by position.
        settings: The settings of the source.
    """
    all_fields = {column.field for column in columns}
    if settings.currency == "usd" and _is_metric(columns, samples):
        # Metric goods are also sold in dollars: figures without a unit are then reported, not read as inches.
        settings = replace(settings, currency=None)
    marks = {mark for column in samples for sample in column for mark in _find_clear_marks(sample)}
    mark = marks.pop() if len(marks) == 1 else None
    inferred = [_infer_settings(column, samples[column.position], settings, all_fields, mark) for column in columns]
    return [
        replace(column, settings={**column.settings, **inferred_settings}) if inferred_settings else column
        for column, inferred_settings in zip(columns, inferred, strict=True)
    ]
