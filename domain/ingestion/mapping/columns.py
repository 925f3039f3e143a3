"""Columns of a mapping: repeated fields, missing fields, and the formats of values."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import chain

from domain.ingestion.model import Column, FeedSettings, Unmapped
from domain.ingestion.values.dates import order_shown
from domain.ingestion.values.money import decimal_shown
from domain.ingestion.values.quantities import amount_at, unit_named, weight_unit_named
from domain.ingestion.vocabulary.fields import FAMILIES, KEYS, MONEY

_STOCK_FACTS = MONEY | {"quantity", "availability", "lead_time_days", "discontinued"}
_FALLBACKS = frozenset("weight colour finish dimensions gtin description brand google_category availability".split())
_FALLBACKS_HEADS = ("dimensions.", "rug.", "compliance.", "cartons.")

Entry = Column | Unmapped
Slot = tuple[str, str]
"""A field and its location (blank for none)."""


def slot_of(column: Column) -> Slot:
    """Return the slot that a column fills; one that is an `alternative` fills only a slot of its own."""
    if column.is_alternative:
        return column.field, f"column {column.position}"
    return column.field, column.setting("location") or ""


def may_repeat(field: str) -> bool:
    """Return whether several columns can have the field, because they add to each other or are fallbacks."""
    return field in FAMILIES or field in _FALLBACKS or field.startswith(_FALLBACKS_HEADS)


def missing(columns: Iterable[Column], stream: str) -> tuple[str, ...]:
    """Return the required facts without a column: "key" if no column identifies a row, "stock" if a stock feed states none."""
    fields = {column.field for column in columns if not column.is_alternative}
    lacking = []
    if not fields & {*KEYS, "title"}:
        lacking.append("key")
    if stream == "stock" and not fields & _STOCK_FACTS:
        lacking.append("stock")
    return tuple(lacking)


def repeated(columns: Iterable[Column]) -> list[Column]:
    """Return the columns that state again what an earlier column states and only one can state."""
    taken: set[Slot] = set()
    repeats = []
    for column in columns:
        if slot_of(column) in taken and not may_repeat(column.field):
            repeats.append(column)
        taken.add(slot_of(column))
    return repeats


def by_position(columns: Iterable[Column], unmapped: Iterable[Unmapped]) -> dict[int, Entry]:
    """Return the columns with and without a field by position."""
    entries: Iterable[Entry] = chain(unmapped, columns)
    return {one.position: one for one in entries}


def parted(entries: Mapping[int, Entry]) -> tuple[tuple[Column, ...], tuple[Unmapped, ...]]:
    """Return the columns with a field and those without, each in order of position."""
    ordered = [entries[position] for position in sorted(entries)]
    mapped = tuple(one for one in ordered if isinstance(one, Column))
    return mapped, tuple(one for one in ordered if isinstance(one, Unmapped))


_UNIT_AFTER_NUMBER = re.compile(r"\d\s*([^\W\d_]+\b|\"|\u201d|\u2033)")
_LARGEST_CM = Decimal(400)
_LARGEST_INCHES = Decimal(200)
_MIN_SHARE = 0.5


def _is_weight(name: str) -> bool:
    return name.rpartition(".")[2] == "weight"


def _is_length(name: str) -> bool:
    named = name == "rug.pile_height" or name.startswith(("dimensions", "cartons."))
    return named and not name.endswith((".weight", ".count"))


def _unit_by_market(column: Column, samples: Sequence[str], settings: FeedSettings) -> str | None:
    """Return the unit that a market's trade uses without stating it; None if that is ambiguous."""
    if settings.currency is None:
        return None
    customary = settings.currency == "usd"
    if column.field == "rug.pile_height" and not customary:
        return None
    if _is_weight(column.field):
        return "lb" if customary else "kg"
    most = max((found.value for sample in samples if (found := amount_at(sample.strip(), 0))), default=None)
    if customary:
        return "in" if most is None or most <= _LARGEST_INCHES else None
    # Metric sheets are in cm or mm; furniture longer than four metres means that the sheet is not in cm.
    return "cm" if most is not None and most <= _LARGEST_CM else None


def _units_stated(column: Column, samples: Sequence[str]) -> set[str]:
    """Return the units beside the numbers of a column's samples.

    The set is empty if only a few cells state a unit, which then does not apply to the others.
    """
    named = weight_unit_named if _is_weight(column.field) else unit_named
    filled = [sample for sample in samples if sample.strip()]
    cells = [{unit for match in _UNIT_AFTER_NUMBER.finditer(sample) if (unit := named(match[1]))} for sample in filled]
    return set().union(*cells) if sum(map(bool, cells)) >= _MIN_SHARE * len(cells) else set()


def _is_metric(columns: Sequence[Column], samples: Sequence[Sequence[str]]) -> bool:
    """Return whether some columns are in metric units and none in inches, feet or pounds."""
    units = {column.settings.get("unit") for column in columns if "unit_by" not in column.settings}
    for column in columns:
        if _is_weight(column.field) or _is_length(column.field):
            units |= _units_stated(column, samples[column.position])
    return bool(units & {"cm", "mm", "kg"}) and not units & {"in", "ft", "lb"}


def _proven(column: Column, samples: Sequence[str], settings: FeedSettings, stated: set[str]) -> dict[str, str]:
    """Return the settings that a column's samples or its market prove; `stated` are the fields of all columns."""
    if column.field in MONEY:
        mark = decimal_shown(list(samples))
        return {"decimal": mark} if mark and mark != settings.decimal else {}
    if column.field.endswith(".eta"):
        order = order_shown(list(samples))
        return {"order": order} if order else {}
    weighs = _is_weight(column.field)
    if not (weighs or _is_length(column.field)) or "unit" in column.settings:
        return {}
    if ("weight_unit" if weighs else "dimension_unit") in stated:
        return {}
    if units := _units_stated(column, samples):
        # If some cells of a column state a unit, and always the same, bare numbers are in that unit as well.
        return {"unit": units.pop(), "unit_by": "column"} if len(units) == 1 else {}
    unit = _unit_by_market(column, samples, settings)
    return {"unit": unit, "unit_by": "market"} if unit else {}


def with_proven_settings(
    columns: Sequence[Column], samples: Sequence[Sequence[str]], settings: FeedSettings
) -> list[Column]:
    """Return `columns` with the settings that their samples prove.

    A measure without any unit gets the unit of the market (`unit_by: market`, from the source's currency), which people can
    change in the mapping; without a currency it has no unit.
    """
    stated = {column.field for column in columns}
    if settings.currency == "usd" and _is_metric(columns, samples):
        # Metric goods are also sold in dollars: figures without a unit are then reported, not read as inches.
        settings = replace(settings, currency=None)
    proven = [_proven(column, samples[column.position], settings, stated) for column in columns]
    return [
        replace(column, settings={**column.settings, **shown}) if shown else column
        for column, shown in zip(columns, proven, strict=True)
    ]
