"""How values are written, where they prove it: units, decimal marks and the order of dates."""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from domain.ingestion.model import Column, FeedSettings
from domain.ingestion.values.amounts import amount_at
from domain.ingestion.values.dates import order_shown
from domain.ingestion.values.lengths import unit_named
from domain.ingestion.values.money import decimal_shown
from domain.ingestion.values.weights import weight_unit_named
from domain.ingestion.vocabulary.fields import MONEY

_BESIDE: Final = re.compile(r"\d\s*([^\W\d_]+\b|\"|\u201d|\u2033)")
_LARGEST_CM: Final = Decimal(400)
_LARGEST_INCHES: Final = Decimal(200)
_MOST_CELLS: Final = 0.5


def _is_weight(name: str) -> bool:
    return name.rpartition(".")[2] == "weight"


def _is_length(name: str) -> bool:
    named = name == "rug.pile_height" or name.startswith(("dimensions", "cartons."))
    return named and not name.endswith((".weight", ".count"))


def _unit_by_market(column: Column, samples: Sequence[str], settings: FeedSettings) -> str | None:
    """Return the unit that a market's trade writes when it writes none; None where even that leaves two open."""
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
    # Metric sheets are in cm or in mm; furniture beyond four metres means that this one is not in cm.
    return "cm" if most is not None and most <= _LARGEST_CM else None


def _units_stated(column: Column, samples: Sequence[str]) -> set[str]:
    """Return the units that stand beside the numbers of a column's samples.

    Where only a few cells have a unit of their own it says nothing of the others: none are returned.
    """
    named = weight_unit_named if _is_weight(column.field) else unit_named
    filled = [sample for sample in samples if sample.strip()]
    cells = [{unit for match in _BESIDE.finditer(sample) if (unit := named(match[1]))} for sample in filled]
    return set().union(*cells) if sum(map(bool, cells)) >= _MOST_CELLS * len(cells) else set()


def _is_metric(columns: Sequence[Column], samples: Sequence[Sequence[str]]) -> bool:
    """Return whether some columns are in centimetres, millimetres or kilograms and none in inches or pounds."""
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
    if beside := _units_stated(column, samples):
        # Where some cells of a column name their unit, and all the same one, the bare numbers among them are in it too.
        return {"unit": beside.pop(), "unit_by": "column"} if len(beside) == 1 else {}
    unit = _unit_by_market(column, samples, settings)
    return {"unit": unit, "unit_by": "market"} if unit else {}


def with_proven_settings(
    columns: Sequence[Column], samples: Sequence[Sequence[str]], settings: FeedSettings
) -> list[Column]:
    """Return `columns` with settings that their samples prove.

    A measure without any unit gets the one its market writes (`unit_by: market`, from the source's currency), there for
    a person to confirm or change with the mapping; without a currency it stays without unit.
    """
    stated = {column.field for column in columns}
    if settings.currency == "usd" and _is_metric(columns, samples):
        # Dollars are charged for metric goods, too: what has no unit of its own is told, not read as inches.
        settings = replace(settings, currency=None)
    proven = [_proven(column, samples[column.position], settings, stated) for column in columns]
    return [
        replace(column, settings={**column.settings, **shown}) if shown else column
        for column, shown in zip(columns, proven, strict=True)
    ]
