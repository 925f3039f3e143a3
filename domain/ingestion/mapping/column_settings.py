"""What the samples of a column prove about reading it: decimal mark, order of dates, units by the source's market."""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Final

from domain.ingestion.model import Column, Context
from domain.ingestion.values.amounts import amount_at
from domain.ingestion.values.dates import order_shown
from domain.ingestion.values.lengths import unit_named
from domain.ingestion.values.money import decimal_shown
from domain.ingestion.values.weights import weight_unit_named
from domain.ingestion.vocabulary.fields import MONEY

_LENGTHS: Final = ("dimensions", "cartons.")
_BESIDE: Final = re.compile(r"\d\s*([^\W\d_]+\b|\"|\u201d|\u2033)")
_LARGEST_CM: Final = Decimal(400)


def _is_weight(name: str) -> bool:
    return name == "weight" or name.endswith(".weight")


def _is_length(name: str) -> bool:
    return name == "rug.pile_height" or (name.startswith(_LENGTHS) and not name.endswith((".weight", ".count")))


def _unit_by_market(column: Column, samples: Sequence[str], context: Context) -> str | None:
    """The unit that a market's trade writes when it writes none; None where even that leaves two open."""
    if context.currency is None:
        return None
    customary = context.currency == "usd"
    if column.field == "rug.pile_height" and not customary:
        return None
    if _is_weight(column.field):
        return "lb" if customary else "kg"
    if customary:
        return "in"
    values = [found.value for sample in samples if (found := amount_at(sample.strip(), 0))]
    # Metric sheets are in cm or in mm; furniture beyond four metres means that this one is not in cm.
    return "cm" if values and max(values) <= _LARGEST_CM else None


def _units_stated(samples: Sequence[str], weighs: bool) -> set[str]:
    """The units that stand beside the numbers of a column's samples."""
    named = weight_unit_named if weighs else unit_named
    beside = [match[1] for sample in samples for match in _BESIDE.finditer(sample)]
    return {unit for word in beside if (unit := named(word))}


def _with_unit(column: Column, samples: Sequence[str], context: Context, stated: set[str]) -> Column:
    if "unit" in column.settings or ("weight_unit" if _is_weight(column.field) else "dimension_unit") in stated:
        return column
    beside = _units_stated(samples, _is_weight(column.field))
    if beside:
        # Where some cells of a column name their unit, and all the same one, the bare numbers among them are in it too.
        return (
            replace(column, settings={**column.settings, "unit": beside.pop(), "unit_by": "column"})
            if len(beside) == 1
            else column
        )
    unit = _unit_by_market(column, samples, context)
    return replace(column, settings={**column.settings, "unit": unit, "unit_by": "market"}) if unit else column


def with_evidence(columns: Sequence[Column], samples: Sequence[Sequence[str]], context: Context) -> list[Column]:
    """`columns` with settings that their samples prove.

    A measure without any unit gets the one its market writes (`unit_by: market`, from the source's currency), there for
    a person to confirm or change with the mapping; without a currency it stays without unit.
    """
    stated = {column.field for column in columns}
    out: list[Column] = []
    for column in columns:
        values = samples[column.position]
        if column.field in MONEY and (mark := decimal_shown(list(values))) and mark != context.decimal:
            column = replace(column, settings={**column.settings, "decimal": mark})
        elif column.field.endswith(".eta") and (order := order_shown(list(values))):
            column = replace(column, settings={**column.settings, "order": order})
        elif _is_weight(column.field) or _is_length(column.field):
            column = _with_unit(column, values, context, stated)
        out.append(column)
    return out
